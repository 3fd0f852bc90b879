"""Each committed change is matched once, however late or in which order commits arrive, and whoever dies meanwhile."""

import signal
import threading
from typing import Any

import pytest
from acceptance.harness.clusters import SWEEP, Cluster, alive
from acceptance.harness.scenario import note, put, step, webhook
from acceptance.harness.waiting import until
from acceptance.harness.world import World
from django.db import connection, transaction

from automation.engine import rules
from automation.engine.posting import DifferentBody, post_event

pytestmark = pytest.mark.acceptance
HEALED_AFTER = 5.0  # seconds that an event must be old


@pytest.mark.fault(24)
def test_a_change_whose_process_died_before_arming_is_found_by_the_sweep(world: World) -> None:
    site = world.site()
    rule = site.rule([note()], fields=["priority"])
    (ticket,) = site.tickets(1)
    world.cluster(1)

    done = world.act(
        "change", str(site.id), str(ticket), "priority", "urgent", AUTOMATION_FAIL="capture.committed:kill"
    )
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert len(site.events()) == 1
    assert site.timers() == []
    assert site.runs() == []

    until(lambda: site.ended(1), within=HEALED_AFTER + 10 * SWEEP, about="the run's end", told=world.tails)
    (event,), (run,) = [one for one in site.events() if one["source"] == "person"], site.runs()
    assert (run["created_at"] - event["created_at"]).total_seconds() >= HEALED_AFTER
    world.check(healed=1, fits={rule: "e.source = 'person'"})


@pytest.mark.case("S02")
@pytest.mark.fault(27)
def test_a_slow_transaction_with_the_lower_id_is_matched_when_it_commits(world: World) -> None:
    site = world.site()
    site.rule([note("{{ ticket.subject }}")])
    slow, fast = site.tickets(2)
    world.cluster(2)
    changed, go_on = threading.Event(), threading.Event()

    def in_one_transaction() -> None:
        try:
            with transaction.atomic():
                site.change(slow, subject="The slow one")
                changed.set()
                go_on.wait(60)
        finally:
            connection.close()

    thread = threading.Thread(target=in_one_transaction)
    thread.start()
    assert changed.wait(30)
    world.observer.frozen = True  # the open transaction is the test's own
    site.change(fast, subject="The fast one")
    until(lambda: site.ended(1), within=20, about="the faster one's run", told=world.tails)
    assert {run["record"] for run in site.runs()} == {fast}
    go_on.set()
    thread.join(30)
    until(lambda: site.ended(2), within=20, about="the slower one's run", told=world.tails)

    by_record = {run["record"]: run["event_id"] for run in site.runs("state = 'succeeded'")}
    assert by_record[slow] < by_record[fast]
    notes = {row["body"] for row in world.db.rows("SELECT body FROM helpdesk_comment")}
    assert notes == {"The slow one", "The fast one"}
    world.observer.frozen = False
    world.check()


@pytest.mark.fault(28)
def test_a_matcher_that_died_before_its_commit_leaves_nothing_and_another_matches(world: World) -> None:
    hook = world.server("webhooks")
    site = world.site()
    site.connect(hook.url)
    first = site.rule([note(), put(priority="low"), webhook()], fields=["subject"])
    second = site.rule([note("Second")], fields=["subject"])
    (ticket,) = site.tickets(1)
    world.cluster(1, pool="spare")
    cluster = world.cluster(1, fail="match.before_commit:kill")

    site.change(ticket, subject="Changed")
    death_of(cluster)
    assert site.runs() == []
    assert world.db.value("SELECT count(*) FROM helpdesk_comment") == 0
    assert world.db.value("SELECT priority FROM helpdesk_ticket WHERE id = %s", ticket) == "normal"
    site.move_to("spare")
    cluster.end()
    until(lambda: site.ended(2), within=30, about="both runs' end", told=world.tails)

    assert len({(run["event_id"], run["rule_id"]) for run in site.runs()}) == len(site.runs()) == 2
    assert world.db.value("SELECT count(*) FROM helpdesk_comment") == 2
    assert world.db.value("SELECT priority FROM helpdesk_ticket WHERE id = %s", ticket) == "low"
    assert len(hook.entries()) == 1
    world.check(reaped=1, fits=dict.fromkeys((first, second), "e.facts -> 'after' ->> 'subject' IS NOT NULL"))


@pytest.mark.fault(26)
def test_twenty_posts_with_one_key_are_one_event_and_one_run(world: World) -> None:
    site = world.site()
    with site.acting():
        rule = rules.create(
            "On a tick",
            definition={
                "schema_version": 1,
                "trigger": {"kind": "custom_event", "params": {"model": "helpdesk.ticket", "name": "tick"}},
                "condition": None,
                "steps": [step("add_note", text="Tick {{ event.number }}")],
            },
        )
        rules.publish(rule.pk, revision=rule.draft.revision)
        rules.switch_on(rule.pk)
    (ticket,) = site.tickets(1)
    world.cluster(2)
    together = threading.Barrier(20)
    answers: list[Any] = []

    def post(number: int) -> None:
        try:
            together.wait(30)
            answers.append(posted(site, ticket, number))
        finally:
            connection.close()

    threads = [threading.Thread(target=post, args=(1,)) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    until(lambda: site.ended(1), within=20, about="the run's end", told=world.tails)

    (event,) = [one for one in site.events() if one["kind"] == "custom_event"]
    assert answers == [event["id"]] * 20
    with pytest.raises(DifferentBody) as refused:
        posted(site, ticket, 2)
    assert refused.value.event_id == event["id"]
    assert [row["body"] for row in world.db.rows("SELECT body FROM helpdesk_comment")] == ["Tick 1"]
    assert len(site.runs()) == 1
    world.check()


@pytest.mark.fault(26)
def test_one_key_in_two_tenants_is_two_events(world: World) -> None:
    first, second = world.site(), world.site()
    (one,), (two,) = first.tickets(1), second.tickets(1)
    assert posted(first, one, 1) != posted(second, two, 2)
    world.cluster(1)
    world.check()


def posted(site: Any, ticket_id: int, number: int) -> int:
    """Posts an event about a ticket under a key that is always the same."""
    with site.acting():
        ticket = site.ticket(ticket_id)
        return post_event(site.tenant, "tick", record=ticket, data={"number": number}, key="the-same")


def death_of(cluster: Cluster) -> None:
    """Waits until the cluster's only pump is dead."""
    (pump,) = cluster.pumps()
    until(lambda: not alive(pump), within=30, about="the worker's death", told=cluster.tail)
