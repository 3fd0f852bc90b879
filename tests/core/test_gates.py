"""The gates of a trigger, in their order."""

import pytest

from automation.core.gates import Gate, Heard, trigger_gate
from automation.core.spec import TriggerSpec

TICKETS = TriggerSpec(
    "record_changed",
    "helpdesk.ticket",
    on=frozenset({"updated"}),
    fields=frozenset({"status"}),
    sources=frozenset({"person"}),
)
ENDED = TriggerSpec("run_ended", "helpdesk.ticket", on=frozenset({"failed"}))


def heard(**more: object) -> Heard:
    plain = {"kind": "record_changed", "model": "helpdesk.ticket", "name": "", "change": "updated"}
    return Heard(**{**plain, "source": "person", "changed": ["status"], **more})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("event", "gate"),
    [
        (heard(), None),
        (heard(kind="custom_event"), Gate.KIND),
        (heard(model="crm.lead"), Gate.MODEL),
        (heard(change="created"), Gate.CHANGE),
        (heard(source="api"), Gate.SOURCE),
        (heard(source="import"), None),
        (heard(changed=["subject"]), Gate.FIELDS),
        (heard(name="7"), None),
        (heard(name="8"), Gate.OTHER_RULE),
    ],
)
def test_a_change_passes_the_trigger_or_ends_at_the_first_gate(event: Heard, gate: Gate | None) -> None:
    assert trigger_gate(TICKETS, 7, event) is gate


def test_other_triggers_look_at_names_and_outcomes() -> None:
    custom = TriggerSpec("custom_event", "helpdesk.ticket", name="sla.missed")
    assert trigger_gate(custom, 7, heard(kind="custom_event", name="sla.near", change="")) is Gate.NAME
    assert trigger_gate(ENDED, 7, heard(kind="run_ended", outcomes=["finished"])) is Gate.CHANGE
    assert trigger_gate(ENDED, 7, heard(kind="run_ended", outcomes=["failed", "dead_lettered"])) is None
    manual = TriggerSpec("manual", "helpdesk.ticket")
    assert trigger_gate(manual, 7, heard(kind="manual", name="8")) is Gate.OTHER_RULE
