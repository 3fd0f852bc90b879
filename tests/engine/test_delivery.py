"""A notice reaches everybody in their own language, each once, whatever happens to the mails of others."""

from collections import Counter
from dataclasses import replace
from datetime import timedelta

import pytest
from django.core.mail import EmailMessage

from automation.catalog.action import Outcome
from automation.engine import delivery
from automation.engine.effects import EffectCall
from automation.models import Notice
from automation.outbound.answers import Failing, OutboundError
from automation.store import timers
from automation.store.timers import NewTimer
from tests.engine.world import World, make_world
from tests.factories import MembershipFactory

pytestmark = pytest.mark.django_db
LANGUAGES = ("de", "en", "fr")


class MailServer:
    """Takes mails, but for those of some languages; an effect is done for real, without a thread."""

    def __init__(self) -> None:
        self.failing: dict[str, Failing] = {}
        self.asked: Counter[str] = Counter()
        self.taken: list[str] = []

    def mail(self, message: EmailMessage) -> None:
        """As the door does it: one who is asked for is in a mail alone."""
        (address,) = message.to
        self.asked[address[:2]] += 1
        if address[:2] in self.failing:
            raise OutboundError("No.", failing=self.failing[address[:2]])
        self.taken.append(address[:2])

    def answer(self, call: EffectCall) -> Outcome:
        """What the runner asks for each effect."""
        call.door.outbound = self
        return call.act(call.door)


@pytest.fixture
def server() -> MailServer:
    return MailServer()


@pytest.fixture
def world(server: MailServer) -> World:
    world = make_world()
    world.answer = server.answer
    addresses = [f"{language}@example.com" for language in LANGUAGES]
    for language, address in zip(LANGUAGES, addresses, strict=True):
        member = MembershipFactory(tenant=world.tenant, role="admin", language=language)
        member.user.email = address
        member.user.save()
    with world.acting():
        notice = Notice.objects.create(kind="x", subject="y", period="z", title="Boo", recipients=addresses)
    timers.set_timers([NewTimer(world.tenant.pk, "deliver", None, subject_id=notice.pk)])
    world.adopt_timers()
    return world


def told(world: World) -> Notice:
    with world.acting():
        return Notice.objects.get()


def again_in_hand(world: World, lost: int = 1) -> None:
    """The delivery as it is taken up after its worker died."""
    rows = world.runner.timers
    for row in [one for one in rows._rows.values() if one.kind == "deliver"]:
        rows._put(replace(row, lost=lost), rows.clock)


def sent(world: World) -> bool:
    return told(world).sent_at is not None


def test_each_language_has_one_mail(world: World, server: MailServer) -> None:
    world.run()
    assert sorted(server.taken) == list(LANGUAGES)
    assert sent(world)


def test_a_mail_that_fails_is_tried_again_and_those_that_went_are_not(world: World, server: MailServer) -> None:
    server.failing = {"en": "retry"}
    world.run_until_held()
    assert (sorted(server.taken), sent(world)) == (["de", "fr"], False)
    world.pass_time(timedelta(minutes=1))
    assert server.asked["en"] > 1
    server.failing = {}
    world.run()
    assert (sorted(server.taken), sent(world)) == (["de", "en", "fr"], True)
    assert (server.asked["de"], server.asked["fr"]) == (1, 1)


def test_a_mail_that_is_refused_holds_up_no_other(world: World, server: MailServer) -> None:
    server.failing = {"de": "rejected"}
    world.run()
    assert (sorted(server.taken), server.asked["de"], sent(world)) == (["en", "fr"], 1, False)
    assert sorted(told(world).mailed.items()) == [("0", "refused"), ("1", "sent"), ("2", "sent")]
    assert told(world).given_up_at is not None
    assert len(told(world).not_told) == 1
    assert told(world).error


def test_a_mail_is_given_up_after_twenty_tries_over_nine_hours(world: World, server: MailServer) -> None:
    server.failing = {"de": "maybe", "fr": "retry"}
    began = world.runner.timers.now()
    world.run()
    assert server.asked == {"de": delivery.TRIES, "en": 1, "fr": delivery.TRIES}
    assert timedelta(hours=8) < world.runner.timers.now() - began < timedelta(hours=10)
    assert told(world).mailed == {"0": "given up", "1": "sent", "2": "given up"}


def test_a_mail_whose_worker_died_is_the_only_one_that_goes_again(world: World, server: MailServer) -> None:
    def dies_in_the_second(call: EffectCall) -> Outcome:
        done = server.answer(call)
        if len(server.taken) == 2:
            raise KeyboardInterrupt
        return done

    world.answer = dies_in_the_second
    with pytest.raises(KeyboardInterrupt):
        world.run()
    world.answer = server.answer
    again_in_hand(world)
    world.run()
    again = server.taken[1]
    assert server.asked == {one: 1 + (one == again) for one in LANGUAGES}
    assert sent(world)


def test_a_notice_that_no_mail_can_be_made_of_is_given_up(
    world: World, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def compose(*_args: object, **_more: object) -> None:
        raise ValueError("a text of this release is broken")

    monkeypatch.setattr(delivery, "compose", compose)
    again_in_hand(world, lost=5)
    world.run()
    assert not [row for row in world.runner.timers._rows.values() if row.kind == "deliver"]
    assert not sent(world)
    notice = told(world)
    assert (notice.is_waiting, notice.given_up_at is not None) == (False, True)
    assert "a text of this release is broken" in notice.error


def test_a_mail_that_ends_its_workers_is_given_up_and_the_others_go(world: World, server: MailServer) -> None:
    again_in_hand(world, lost=5)
    world.run()
    assert sorted(server.taken) == ["en", "fr"]
    assert told(world).mailed["0"] == "refused"
