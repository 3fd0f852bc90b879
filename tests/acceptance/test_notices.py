"""People hear of a step that failed for good: once in the records, at least once by mail, whoever dies on the way."""

import pytest
from acceptance.harness.clusters import alive
from acceptance.harness.scenario import webhook
from acceptance.harness.waiting import until
from acceptance.harness.world import World

pytestmark = pytest.mark.acceptance


@pytest.mark.fault(50)
def test_a_notice_whose_worker_died_while_sending_is_sent_all_the_same(world: World) -> None:
    hook, mail = world.server("webhooks"), world.server("smtp")
    hook.prescribe(400, last="repeat")
    site = world.site()
    site.connect(hook.url)
    site.rule([webhook()])
    (ticket,) = site.tickets(1)
    told = {"EMAIL_URL": f"smtp://127.0.0.1:{mail.port}"}
    world.cluster(1, pool="spare", **told)
    cluster = world.cluster(1, fail="effect.replied:kill@2", **told)  # the first is the call itself
    (pump,) = cluster.pumps()

    site.change(ticket, priority="urgent")
    until(lambda: not alive(pump), within=30, about="the worker's death", told=world.tails)
    site.move_to("spare")
    cluster.end()
    assert [one["reason"] for one in site.letters()] == ["rejected"]
    sent = "SELECT count(*) FROM automation_notice WHERE sent_at IS NOT NULL"
    until(lambda: world.db.value(sent), within=30, about="the notice", told=world.tails)

    notice = world.db.row("SELECT * FROM automation_notice")
    assert (notice["cases"], notice["recipients"]) == (1, [site.member.user.email])
    entries = mail.entries()
    assert len(entries) == 2, "at least once: the first mail was taken before the worker died"
    assert len({entry["key"] for entry in entries}) == 1
    assert site.timers() == []
    world.check(reaped=1)


@pytest.mark.fault(50)
def test_many_failures_alike_are_one_notice_with_a_count(world: World) -> None:
    hook, mail = world.server("webhooks"), world.server("smtp")
    hook.prescribe(400, last="repeat")
    site = world.site()
    site.connect(hook.url)
    site.rule([webhook()])
    tickets = site.tickets(20)
    world.cluster(2, EMAIL_URL=f"smtp://127.0.0.1:{mail.port}")
    site.change_all(tickets, priority="urgent")
    until(lambda: len(site.letters()) == 20, within=60, about="all dead letters", told=world.tails)
    world.quiet()

    notices = world.db.rows("SELECT * FROM automation_notice")
    assert sum(one["cases"] for one in notices) == 20
    assert len(mail.entries()) == len(notices) <= 2  # two where the hour ended meanwhile
    world.check()
