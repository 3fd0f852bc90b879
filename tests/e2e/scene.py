"""A tenant with a bit of everything, so that every page has something to show."""

from copy import deepcopy
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.contrib.auth.models import User
from django.test import Client
from factories import MembershipFactory, TicketFactory
from operating import (
    DEFINITION,
    Place,
    make_dead_run,
    make_event,
    make_rule,
    make_run,
    make_step,
    make_timer,
)
from operating import place as new_place

from automation.engine import rules as engine_rules
from automation.engine.operate import pause
from automation.models import Notice, Rule, RuleDraft, Run
from automation.store import clock
from tenants.context import acting_for

PASSWORD = "correct horse battery staple"
LONG_NAME = "<img src=x onerror=alert(1)> " + "Geschwindigkeitsbegrenzungsüberschreitungswarnung" * 2
LONG_SUBJECT = "Donaudampfschifffahrtselektrizitätenhauptbetriebswerkbauunterbeamtengesellschaft" + "x" * 60
NOTE = {"kind": "action", "action": "add_note", "version": 1, "params": {"text": "Hello"}}
WATCHING = {"kind": "record_changed", "params": {"model": "helpdesk.ticket", "on": ["updated"]}}
TREE = {
    "all": [
        {"field": "priority", "op": "changed_to", "value": "urgent"},
        {
            "any": [
                {"field": "subject", "op": "contains", "value": "fire"},
                {"field": "status", "op": "is", "value": "new"},
            ]
        },
    ]
}
BRANCHING = {
    "schema_version": 1,
    "trigger": WATCHING,
    "condition": TREE,
    "steps": [
        {"id": "mark", **NOTE, "note": "Agreed with the duty managers"},
        {
            "id": "split",
            "kind": "branch",
            "arms": [
                {
                    "if": {"field": "priority", "op": "is", "value": "urgent"},
                    "steps": [{"id": "inside", **NOTE}, {"id": "rest", "kind": "delay", "for": "PT2H"}],
                }
            ],
            "otherwise": [{"id": "end", "kind": "stop"}],
        },
        {"id": "bye", **NOTE},
    ],
}


@dataclass(frozen=True)
class Scene:
    """Acme with an admin, and the pages of it that are worth a look."""

    place: Place
    user: User
    pages: dict[str, str]

    def cookie(self) -> dict[str, str]:
        """The cookie of a session in which that admin is logged in."""
        client = Client()
        client.force_login(self.user)
        return {"name": "sessionid", "value": client.cookies["sessionid"].value}


def empty(*, role: str = "admin") -> Scene:
    """A tenant in which nothing has happened yet."""
    place = new_place(name="Acme Retail", slug="acme", time_zone="Europe/Berlin")
    user = User.objects.create_user("maria", first_name="Maria", last_name="Keller", password=PASSWORD, is_staff=True)
    with acting_for(place.tenant.pk):
        MembershipFactory(tenant=place.tenant, user=user, role=role)
    return Scene(place, user, _addresses({}))


def filled(*, paused: bool = False) -> Scene:
    """A tenant with rules in every state, runs of every kind, dead letters, notices and long, hostile names."""
    scene = empty()
    with acting_for(scene.place.tenant.pk, scene.place.actor):
        ids = _fill(scene.place)
        if paused:
            pause.pause(level="hold", reason="duplicate mails, ticket SUP-881")
    return Scene(scene.place, scene.user, _addresses(ids))


def _fill(place: Place) -> dict[str, int]:
    tenant = place.tenant
    ticket = TicketFactory(tenant=tenant, subject=LONG_SUBJECT)
    rule = engine_rules.create("Page the lead when a ticket becomes urgent", definition=deepcopy(BRANCHING))
    engine_rules.publish(rule.pk, revision=0, note="First version, agreed with support")
    engine_rules.switch_on(rule.pk)
    draft = RuleDraft.objects.get(rule=rule)
    engine_rules.save_draft(rule.pk, {**DEFINITION, "steps": [{"kind": "dance"}]}, base_revision=draft.revision)
    hands = {**DEFINITION, "condition": None, "trigger": {"kind": "manual", "params": {"model": "helpdesk.ticket"}}}
    by_hand = make_rule(tenant, name=LONG_NAME[:120], definition=hands, position=2)
    make_rule(tenant, name="Welcome mail", published=False, position=3)
    ready = engine_rules.create("Ready to publish", definition=deepcopy(DEFINITION))
    held = make_rule(tenant, name="Tag every imported ticket", position=5)
    pause.pause_rule(held.pk, "rate")
    rule.refresh_from_db()
    ids = {"rule": rule.pk, "by_hand": by_hand.pk, "ready": ready.pk, "held": held.pk}
    for _n in range(3):
        make_run(held, state="succeeded", started_at=clock.now())
    ids |= {"dead": make_dead_run(held).run_id, "waiting": _waiting(rule, ticket.pk).pk}
    make_run(held, state="suppressed", reason="loop_same_rule", event=_caused(rule, ids["waiting"]))
    make_run(held, state="cancelled", reason="cancelled_by")
    about = {"kind": "dead_letter", "subject": f"rule:{held.pk}", "period": "2026-11-29T14"}
    Notice(
        **about, cases=3, recipients=["maria@acme.example"], title=f"{LONG_NAME[:90]}: 3 steps", text="503\n\n503"
    ).save()
    return ids


def _waiting(rule: Rule, ticket_id: int) -> Run:
    """A run that went into a branch and waits there."""
    run = make_run(rule, state="waiting", started_at=clock.now(), event=make_event(rule.tenant, record=ticket_id))
    taken = rule.published.definition["steps"][1]["arms"][0]["id"] if rule.published else ""
    make_step(run, path="mark", state="succeeded", started_at=clock.now(), input={"text": "Hello"}, output={"note": 1})
    make_step(run, path="split", kind="branch", action="", state="succeeded", output={"taken": taken})
    make_step(run, path="inside", state="succeeded", started_at=clock.now())
    rest = make_step(run, path="rest", kind="delay", action="", state="waiting", started_at=clock.now())
    make_timer(rest, kind="delay", due_at=clock.now() + timedelta(hours=2))
    return run


def _caused(rule: Rule, run_id: int) -> Any:
    root = Run.objects.get(pk=run_id).event_id
    about = {"root_event_id": root, "parent_event_id": root, "cause_rule_id": rule.pk, "cause_run_id": run_id}
    return make_event(rule.tenant, **about, depth=1, source="automation")


def _addresses(ids: dict[str, int]) -> dict[str, str]:
    """The pages by name; those of rows only where there are rows."""
    paths = {
        "rules": "rules/",
        "new rule": "rules/new/",
        "runs": "runs/",
        "dead letters": "dead-letters/",
        "notices": "notices/",
        "pause": "pause/",
    }
    if ids:
        paths |= {
            "rule": f"rules/{ids['rule']}/",
            "held rule": f"rules/{ids['held']}/",
            "draft with problems": f"rules/{ids['rule']}/draft/",
            "publish with problems": f"rules/{ids['rule']}/publish/",
            "draft": f"rules/{ids['ready']}/draft/",
            "publish": f"rules/{ids['ready']}/publish/",
            "switch off": f"rules/{ids['rule']}/off/",
            "delete": f"rules/{ids['by_hand']}/delete/",
            "by hand": f"rules/{ids['by_hand']}/run/",
            "version": f"rules/{ids['rule']}/versions/1/",
            "failed run": f"runs/{ids['dead']}/",
            "waiting run": f"runs/{ids['waiting']}/",
            "nothing found": "runs/?record=nonsense",
        }
    return {name: f"/t/acme/{path}" for name, path in paths.items()}
