"""Which addresses may be called."""

import ipaddress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from automation.conf import load, problems
from automation.outbound import Policy, check_url
from automation.outbound.addresses import parse, parse_address, refused

HOSTILE = [
    "http://example.com/hook",
    "ftp://example.com/hook",
    "file:///etc/passwd",
    "gopher://example.com:443/_x",
    "javascript:alert(1)",
    "//example.com/hook",
    "example.com/hook",
    "https://",
    "https:///path",
    "",
    "https://127.0.0.1/",
    "https://127.1/",
    "https://2130706433/",
    "https://0x7f000001/",
    "https://0x7f.1/",
    "https://0177.0.0.1/",
    "https://017700000001/",
    "https://127.0.0.1./",
    "https://localhost/",
    "https://LOCALHOST/",
    "https://localhost./",
    "https://foo.localhost/",
    "https://0.0.0.0/",
    "https://0/",
    "https://[::1]/",
    "https://[::]/",
    "https://[0:0:0:0:0:0:0:1]/",
    "https://[::ffff:127.0.0.1]/",
    "https://[::ffff:169.254.169.254]/",
    "https://[::ffff:a9fe:a9fe]/",
    "https://[::127.0.0.1]/",
    "https://[::ffff:0:127.0.0.1]/",
    "https://[64:ff9b::7f00:1]/",
    "https://[2002:7f00:1::]/",
    "https://[2001:0:7f00:1::]/",
    "https://[fec0::1]/",
    "https://[fe80::1]/",
    "https://[fe80::1%25eth0]/",
    "https://[fd00:ec2::254]/",
    "https://[ff02::1]/",
    "https://169.254.169.254/latest/meta-data/",
    "https://168.63.129.16/",
    "https://100.100.100.200/",
    "https://100.64.0.1/",
    "https://192.0.0.192/",
    "https://10.0.0.1/",
    "https://172.16.5.4/",
    "https://192.168.1.1/",
    "https://192.168.257/",
    "https://224.0.0.1/",
    "https://255.255.255.255/",
    "https://240.0.0.1/",
    "https://1.2.3.4.5/",
    "https://256.256.256.256/",
    "https://①②⑦.⓪.⓪.①/",
    "https://127。0。0。1/",
    "https://\uff11\uff12\uff17.0.0.1/",
    "https://ⓛocalhost/",
    "https://%31%32%37.0.0.1/",
    "https://user@example.com/",
    "https://user:pass@example.com/",
    "https://example.com@127.0.0.1/",
    "https://127.0.0.1\\@example.com/",
    "https://example.com\\.evil.com/",
    "https://exa mple.com/",
    "https://example.com/\r\nX-Injected: 1",
    "https://example.com/\x00",
    "https://example.com\t/",
    "https://example.com:22/",
    "https://example.com:6379/",
    "https://example.com:80/",
    "https://example.com:0/",
    "https://example.com:99999/",
    "https://example.com:abc/",
    "https://postgres/",
    "https://printer.local/",
    "https://metadata.google.internal/",
    "https://router.lan/",
    "https://nas.home.arpa/",
    "https://-example.com/",
    "https://exa..mple.com/",
    "https://" + "a" * 64 + ".com/",
    "https://example.com/" + "a" * 3000,
]
FINE = [
    "https://example.com/hook",
    "https://example.com:8443/hook?a=b#c",
    "https://EXAMPLE.com./hook",
    "https://bücher.example/hook",
    "https://8.8.8.8/hook",
    "https://[2606:4700:4700::1111]/hook",
    "https://sub_domain.example.com/hook",
]


@pytest.mark.case("W01")
@pytest.mark.parametrize("url", HOSTILE)
def test_a_hostile_address_is_refused_when_it_is_saved(url: str) -> None:
    assert check_url(url, allow_loopback=False)


@pytest.mark.parametrize("url", FINE)
def test_an_ordinary_address_is_fine(url: str) -> None:
    assert check_url(url, allow_loopback=False) is None


@pytest.mark.parametrize(
    "url", ["http://127.0.0.1:8099/x", "http://localhost:1/", "http://[::1]:8099/", "https://127.0.0.1/"]
)
def test_loopback_is_fine_where_the_installation_allows_it(url: str) -> None:
    assert check_url(url, allow_loopback=True) is None


@pytest.mark.parametrize(
    "url", ["http://example.com/", "https://10.0.0.1/", "https://example.com:8099/", "http://0.0.0.0/"]
)
def test_allowing_loopback_allows_nothing_else(url: str) -> None:
    assert check_url(url, allow_loopback=True)


@pytest.mark.case("W01")
def test_the_operator_can_open_one_private_network() -> None:
    policy = Policy(allowed_networks=(ipaddress.ip_network("10.20.0.0/16"),))
    assert check_url("https://10.20.1.1/", False, policy=policy) is None
    assert check_url("https://10.21.1.1/", False, policy=policy)
    assert check_url("http://10.20.1.1/", False, policy=policy)


def test_the_installations_settings_open_networks_and_name_its_own_hosts(settings: Any) -> None:
    settings.AUTOMATION_ALLOWED_NETWORKS = "10.20.0.0/16, fd00:20::/32"
    settings.AUTOMATION_SITE = "https://Desk.example.com/"
    settings.ALLOWED_HOSTS = ["*", "localhost", ".northwind.example"]
    assert [check_url(f"https://{host}/", False) for host in ("10.20.1.1", "[fd00:20::1]", "a.example")] == [None] * 3
    own = ("desk.example.com", "northwind.example", "www.northwind.example")
    assert {check_url(f"https://{host}/", False) for host in own} == {"The address is this product's own."}
    assert check_url("https://notnorthwind.example/", False) is None
    settings.AUTOMATION_ALLOWED_NETWORKS = "10.20.0.1/16"
    assert [one for one in problems(load(), queue_timeout=1000, queue_retry=2000) if "networks" in one]


def test_the_products_own_name_is_refused() -> None:
    assert check_url("https://desk.example.com/", False, policy=Policy(own_hosts=frozenset({"desk.example.com"})))


@given(st.integers(min_value=0, max_value=2**32 - 1))
def test_every_spelling_of_an_address_is_judged_alike(number: int) -> None:
    address = ipaddress.IPv4Address(number)
    target = parse("https://example.com/")
    expected = refused(address, target, Policy())
    mapped = ipaddress.IPv6Address(f"::ffff:{address}")
    assert refused(mapped, target, Policy()) == expected
    for host in (str(address), str(number), hex(number), f"[::ffff:{address}]"):
        assert (check_url(f"https://{host}/", False) is None) == (expected is None)
    if not address.is_global:
        assert expected


@given(st.ip_addresses(v=6))
def test_no_address_outside_global_unicast_is_called(address: ipaddress.IPv6Address) -> None:
    if address.ipv4_mapped is None and address not in ipaddress.ip_network("2000::/3"):
        assert refused(address, parse("https://example.com/"), Policy())


@given(st.text(max_size=80))
def test_any_text_gets_an_answer(text: str) -> None:
    check_url(text, allow_loopback=False)
    check_url(f"https://{text}", allow_loopback=False)


def test_a_zone_of_a_resolved_address_is_ignored() -> None:
    assert parse_address("fe80::1%eth0") == ipaddress.IPv6Address("fe80::1")
