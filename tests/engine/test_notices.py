"""People are told once, however often it happens."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.core.mail import EmailMessage
from django.utils.translation import get_language
from factories import MembershipFactory, UserFactory
from operating import Place, make_rule
from operating import place as new_place

from automation.engine import notices
from automation.engine.notice_mails import compose
from automation.models import Notice, Rule, Timer
from automation.store import clock
from automation.store.waves import NewNotice

pytestmark = pytest.mark.django_db
GUESTS = ("de", "de", "fr")
NOW = datetime(2027, 3, 4, 10, 15, tzinfo=UTC)


def death(rule: Rule, *, error: str = "503 from the pager", now: datetime = NOW, run_id: int = 5) -> NewNotice:
    return notices.dead_letter_notice(
        tenant_id=rule.tenant_id,
        rule_id=rule.pk,
        rule_name=rule.name,
        run_id=run_id,
        step_path="page",
        reason="exhausted",
        error=error,
        now=now,
    )


def mail(notice: Notice) -> EmailMessage:
    """The one mail of a notice."""
    (sent,) = compose(notice)
    return sent


def test_the_owner_and_the_admins_are_told(acme: Place) -> None:
    owner = MembershipFactory(tenant=acme.tenant, role="editor")
    MembershipFactory(tenant=acme.tenant, role="publisher")
    rule = make_rule(acme.tenant, owner=owner.user)

    assert death(rule).recipients == sorted([acme.admin.user.email, owner.user.email])


def test_who_left_is_not_told(acme: Place) -> None:
    owner = MembershipFactory(tenant=acme.tenant, is_active=False)
    MembershipFactory(tenant=acme.tenant, role="admin", user=UserFactory(is_active=False))
    stranger = new_place()
    rule = make_rule(acme.tenant, owner=owner.user)

    assert death(rule).recipients == [acme.admin.user.email]
    assert death(make_rule(acme.tenant, owner=stranger.admin.user)).recipients == [acme.admin.user.email]


def test_one_rule_and_error_make_one_notice_in_an_hour(acme: Place) -> None:
    rule = make_rule(acme.tenant)
    for run_id in range(1, 38):
        notices.tell([death(rule, error=f"503 from the pager for 'T-{run_id}'", run_id=run_id)])

    notice = Notice.objects.get()
    assert notice.cases == 37
    assert "run 1 " in notice.text
    assert Timer.objects.get().subject_id == notice.pk
    assert Timer.objects.get().kind == "deliver"


def test_another_error_another_rule_and_another_hour_are_told_again(acme: Place) -> None:
    rule, other = make_rule(acme.tenant), make_rule(acme.tenant, name="Other")
    notices.tell([death(rule), death(rule, error="refused address")])
    notices.tell([death(other)])
    notices.tell([death(rule, now=NOW + timedelta(hours=1))])

    assert Notice.objects.count() == 4


def test_the_next_mail_says_how_often_it_happened_since(acme: Place) -> None:
    rule = make_rule(acme.tenant)
    for _ in range(5):
        notices.tell([death(rule)])
    notices.tell([death(rule, now=NOW + timedelta(hours=1))])
    first, second = Notice.objects.order_by("id")

    assert "since the last mail" not in mail(first).body
    assert "5 times since the last mail" in mail(second).body


def test_the_mail_has_one_line_of_subject_and_the_same_id_each_time(acme: Place) -> None:
    rule = make_rule(acme.tenant, name="Bcc: all\r\nof you")
    notices.tell([death(rule)])
    notice = Notice.objects.get()

    sent = mail(notice)

    assert "\n" not in sent.subject
    assert "\r" not in sent.subject
    assert sent.to == [acme.admin.user.email]
    assert sent.extra_headers["Message-ID"] == mail(notice).extra_headers["Message-ID"]
    assert sent.extra_headers["Auto-Submitted"] == "auto-generated"
    assert sent.message()["Subject"]


def test_a_tenant_in_whose_mail_nobody_is_still_sees_the_notice(acme: Place) -> None:
    acme.admin.user.email = ""
    acme.admin.user.save()
    rule = make_rule(acme.tenant)

    notices.tell([death(rule)])

    assert Notice.objects.get().recipients == []


def test_a_held_rule_is_told_once_a_day(acme: Place) -> None:
    rule = make_rule(acme.tenant)

    def held(now: datetime) -> NewNotice:
        return notices.rule_held_notice(
            tenant_id=rule.tenant_id, rule_id=rule.pk, rule_name=rule.name, reason="rate", now=now
        )

    notices.tell([held(NOW), held(NOW + timedelta(hours=8))])
    notices.tell([held(NOW + timedelta(days=1))])

    assert list(Notice.objects.order_by("id").values_list("period", "cases")) == [("2027-03-04", 2), ("2027-03-05", 1)]


def test_an_event_that_was_set_aside_is_told_to_the_admins(acme: Place) -> None:
    notices.tell(
        [notices.event_set_aside_notice(tenant_id=acme.tenant.pk, event_id=9, error="it crashed", now=clock.now())]
    )

    assert Notice.objects.get().recipients == [acme.admin.user.email]


def test_the_mail_names_the_tenant_and_leads_to_the_run(acme: Place, settings: Any) -> None:
    settings.AUTOMATION_SITE = "https://desk.example.com/"
    notices.tell([death(make_rule(acme.tenant), run_id=41)])

    sent = mail(Notice.objects.get())

    tenant = acme.tenant
    assert sent.subject.startswith(f"[{tenant.name}] ")
    assert f"https://desk.example.com/t/{tenant.slug}/runs/41/\n" in sent.body
    assert f"Tenant: {tenant.name}\nhttps://desk.example.com/t/{tenant.slug}/notices/\n" in sent.body


def test_without_the_address_of_the_site_the_mail_has_no_link(acme: Place) -> None:
    notices.tell([death(make_rule(acme.tenant))])

    body = mail(Notice.objects.get()).body

    assert f"Tenant: {acme.tenant.name}" in body
    assert "/t/" not in body


def test_everybody_is_told_in_their_own_language(acme: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notices, "_", lambda text: f"{get_language()}: {text}")
    german, another, french = (MembershipFactory(tenant=acme.tenant, role="admin", language=one) for one in GUESTS)
    MembershipFactory(tenant=acme.tenant, language="es")  # nobody whom it goes to
    silent = MembershipFactory(tenant=acme.tenant, role="admin", language="it", user=UserFactory(email=""))

    notices.tell([death(make_rule(acme.tenant))])

    notice = Notice.objects.get()
    assert (notice.title[:4], sorted(notice.said)) == ("en: ", ["de", "fr", "it"])
    sent = {tuple(sorted(one.to)): one for one in compose(notice)}
    addresses = [tuple(sorted(one.user.email for one in some)) for some in ([acme.admin], [german, another], [french])]
    assert set(sent) == set(addresses)
    assert [sent[to].body[:4] for to in addresses] == ["en: ", "de: ", "fr: "]
    assert len({one.extra_headers["Message-ID"] for one in sent.values()}) == 3
    assert notice.said_in(silent.language)[0].startswith("it: ")
    assert notice.said_in("es") == (notice.title, notice.text)


def test_what_is_gone_and_what_a_limit_says_is_in_their_language_too(
    acme: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    MembershipFactory(tenant=acme.tenant, role="admin", language="de")
    rule = make_rule(acme.tenant)
    words: Any = {"tenant_id": acme.tenant.pk, "now": NOW}
    off = notices.rule_off_notice(
        rule_id=rule.pk, rule_name="Off", reason="x", problems=lambda: [f"problem in {get_language()}"], **words
    )
    limit = notices.limit_notice(limit="rules", percent=80, words=lambda: f"used in {get_language()}", **words)
    for notice, word in ((off, "problem"), (limit, "used")):
        assert f"{word} in en" in notice.text
        assert f"{word} in de" in notice.said["de"][1]
