"""A tenant's pages show rules about limits and ends, whose events may have no record."""

from django.test import Client
from django.urls import reverse

from automation.catalog.action import Outcome
from tests.engine.world import World, leaf, step, when


def test_rules_about_limits_and_ends_and_their_runs_are_shown(world: World) -> None:
    world.connection()
    world.connection("pager")
    with world.acting():
        world.rule(
            "Tell",
            step("call", "call_webhook", connection="hook"),
            trigger=when(fields=["subject"]),
            limit={"runs": 5, "per": "P1D"},
        )
        alarm = world.rule(
            "Alarm",
            step("call", "call_webhook", connection="pager", body='{"off": "{{ event.rule }}"}'),
            trigger={"kind": "limit_reached", "params": {}},
            condition=leaf("event.percent", "gte", 80),
        )
        handler = world.rule(
            "Handler",
            step("note", "add_note", text="{{ event.error }}"),
            trigger={"kind": "run_ended", "params": {"model": "helpdesk.ticket", "on": ["failed"]}},
            condition=leaf("event.rule", "is", "Tell"),
        )
        tickets = [world.ticket() for _ in range(10)]
        world.answer = lambda call: Outcome.rejected("422") if "hook" in call.door.connections else Outcome.done()
        for ticket in tickets:
            world.change(ticket, subject="Changed")
        world.run()
    client = Client()
    client.force_login(world.ana.user)
    slug = world.tenant.slug
    assert world.states(alarm) == ["succeeded"]
    assert set(world.states(handler)) == {"succeeded"}
    pages = [reverse("automation:rules", args=[slug]), reverse("automation:runs", args=[slug])]
    pages += [reverse("automation:rule", args=[slug, rule.pk]) for rule in (alarm, handler)]
    pages += [reverse("automation:run", args=[slug, run.pk]) for run in (*world.runs(alarm), *world.runs(handler)[:1])]
    for page in pages:
        answer = client.get(page)
        assert answer.status_code == 200, page
    assert "When a limit is reached" in client.get(pages[2]).content.decode()
