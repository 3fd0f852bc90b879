"""No secret in any kept text."""

import base64
import json
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from automation.outbound import Masker

SECRET = 'S3cret/with+odd "chars"&=ü'


@pytest.mark.case("P05")
@pytest.mark.parametrize(
    "disguise",
    [
        SECRET,
        quote(SECRET),
        quote(SECRET, safe=""),
        quote_plus(SECRET),
        json.dumps(SECRET),
        base64.b64encode(SECRET.encode()).decode(),
        base64.urlsafe_b64encode(SECRET.encode()).decode().rstrip("="),
        SECRET.encode().hex(),
    ],
)
def test_a_secret_is_masked_in_every_disguise(disguise: str) -> None:
    masked = Masker([SECRET])(f"before {disguise} after")
    assert SECRET not in masked
    assert disguise not in masked
    assert masked.startswith("before ")
    assert masked.endswith(" after")


@pytest.mark.case("P05")
@given(st.text("abcdefXYZ019_-/+=", min_size=10, max_size=40), st.text(max_size=9), st.text(max_size=9))
def test_a_secret_inside_a_longer_base64_text_is_masked(secret: str, before: str, after: str) -> None:
    encoded = base64.b64encode(f"{before}:{secret}:{after}".encode("utf-8", "replace")).decode()
    assert encoded not in Masker([secret])(f"Authorization: Basic {encoded}")


def test_a_text_without_secrets_stays_as_it_is() -> None:
    assert Masker(["token-abc", ""])("nothing to see") == "nothing to see"
    assert Masker(["a"])("a cat") == "a cat"
