"""The seeded tenants, and a moment of each seeded rule at which it runs."""

from dataclasses import dataclass, field
from typing import Any

from automation.engine.samples import Sample, of_record
from automation.engine.trial import Options, definition_of, trial
from automation.engine.trial_report import TrialReport
from automation.models import Rule
from northwind.crm.models import Lead
from northwind.helpdesk.models import Ticket
from northwind.seed.files import SLUGS, rules_of
from tenants.context import acting_for
from tenants.models import Tenant


@dataclass(frozen=True)
class Scene:
    """A record by its name, values that it has and had, and how waits go."""

    record: str
    now: dict[str, Any] = field(default_factory=dict)
    was: dict[str, Any] | None = None


SCENES: dict[tuple[str, str], Scene] = {
    ("acme", "Gold customers go first"): Scene("Invoice for the spring order"),
    ("acme", "Give new tickets to Support by turns"): Scene("Card refused twice"),
    ("acme", "Page the lead when a ticket becomes urgent"): Scene(
        "Delivery 4471 is one box short", {"priority": "urgent"}, {"priority": "normal"}
    ),
    ("acme", "Close after 7 quiet days"): Scene("How do I change my address?", {}, {"status": "open"}),
    ("acme", "Thank the customer when a ticket is solved"): Scene(
        "The till in shop 3 does not print receipts", {"status": "solved"}, {"status": "open"}
    ),
    ("acme", "Ask the warehouse"): Scene("Delivery 4471 is one box short"),
    ("contoso", "Tag every imported ticket"): Scene("Old system: refund", {"channel": "import"}),
    ("contoso", "Page on call for urgent tickets of gold customers"): Scene(
        "Badge readers are offline on floor 2", {"priority": "urgent"}, {"priority": "high"}
    ),
    ("contoso", "Reopen a solved ticket when somebody comments on it"): Scene(
        "Wrong colour delivered", {"status": "solved"}, {"comments": 0}
    ),
    ("fabrikam", "Welcome leads from Facebook"): Scene("Kiri Walker"),
    ("fabrikam", "Tell the sales board when a lead's value passes 50,000"): Scene(
        "Imogen Hart", {"value": "60000.00"}, {"value": "48000.00"}
    ),
    ("fabrikam", "A won lead becomes a task"): Scene("Jack Lam", {"status": "won"}, {"status": "new"}),
}
MORE_SCENES: dict[tuple[str, str], Scene] = {
    ("acme", "Page the lead when a ticket becomes urgent"): Scene("Card refused twice", {"priority": "urgent"}),
    ("acme", "Close after 7 quiet days"): Scene("Invoice for the spring order", {"status": "solved"}),
    ("fabrikam", "Welcome leads from Facebook"): Scene("Liam Price"),
}
RULES = [(slug, rule["name"]) for slug in SLUGS for rule in rules_of(slug)]


def prepare(slug: str, name: str) -> None:
    """Put the scenes' records into their states, for good."""
    with acting_for(Tenant.objects.get(slug=slug).pk):
        for scenes in (SCENES, MORE_SCENES):
            scene = scenes.get((slug, name))
            if scene is not None and scene.now:
                record = _record(slug, scene)
                for field_, value in scene.now.items():
                    setattr(record, field_, value)
                record.save()


def try_rule(slug: str, name: str, *, other: bool = False, **options: Any) -> TrialReport:
    """The trial of a seeded rule on its scene, or on its other one, on a connection of its own."""
    with acting_for(Tenant.objects.get(slug=slug).pk):
        rule = Rule.objects.get(name=name)
        model = "crm.lead" if slug == "fabrikam" else "helpdesk.ticket"
        scene = (MORE_SCENES if other else SCENES)[slug, name]
        record = _record(slug, scene)

        def sample(spec: Any) -> Sample:
            return of_record(model, record.pk, spec, rule_id=rule.pk, was=scene.was)

        return trial(definition_of(rule.pk), sample, rule_id=rule.pk, options=Options(**options))


def _record(slug: str, scene: Scene) -> Any:
    wanted = scene.record
    return Lead.objects.get(name=wanted) if slug == "fabrikam" else Ticket.objects.get(subject=wanted)
