"""Recorded runs are planned again: a decision that moves fails the build, or was meant and is recorded anew.

The runs of the seeded rules lie beside this file. To write them anew: RECORD_HISTORIES=1 pytest tests/replay
"""

import copy
import json
import os
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError

from automation.core.erasing import blank
from automation.definitions.tree import give_ids
from automation.engine.histories import history_of_run
from automation.engine.replaying import NoHistory, replay_history, replay_run
from automation.engine.trace import trace
from automation.models import Event, StepExecution
from northwind.seed.files import rules_of
from northwind.seed.fill import fill
from tests.engine.world import World, leaf, make_world, set_field, step
from tests.trial.seeded import MORE_SCENES, RULES, SCENES, prepare, try_rule

HERE = Path(__file__).parent
FILES = sorted(HERE.glob("*/*.json"))
RECORDING = os.environ.get("RECORD_HISTORIES") == "1"
SERVERS = {name: f"http://127.0.0.1:81{place:02}" for place, name in enumerate(("pager", "webhooks", "sms"))}


def name_of(file: Path) -> str:
    return f"{file.parent.name}/{file.stem}"


@pytest.mark.skipif(not RECORDING, reason="only to write the files anew")
@pytest.mark.django_db(transaction=True)
def test_record_the_seeded_rules():
    fill(SERVERS)
    for slug, name in [*SCENES, *MORE_SCENES]:
        prepare(slug, name)
    for (slug, name), suffix in [*((one, "") for one in SCENES), *((one, "-other") for one in MORE_SCENES)]:
        history = try_rule(slug, name, other=bool(suffix)).history
        place = [rule["name"] for rule in rules_of(slug)].index(name) + 1
        words = "-".join("".join(letter if letter.isalnum() else " " for letter in name.lower()).split()[:5])
        file = HERE / slug / f"{place}0-{words}{suffix}.json"
        file.parent.mkdir(exist_ok=True)
        file.write_text(json.dumps(history, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        assert replay_history(json.loads(file.read_text(encoding="utf-8"))) == [], file


@pytest.mark.parametrize("file", FILES, ids=name_of)
def test_no_decision_of_a_recorded_run_has_moved(file):
    assert replay_history(json.loads(file.read_text(encoding="utf-8"))) == []


def test_every_seeded_rule_has_a_recorded_run_of_its_present_definition():
    recorded: dict[tuple[str, str], Any] = {}
    for file in FILES:
        history = json.loads(file.read_text(encoding="utf-8"))
        recorded[file.parent.name, history["rule"]["name"]] = history["definition"]
    assert set(recorded) == set(RULES)
    for slug, name in RULES:
        [definition] = [copy.deepcopy(rule["definition"]) for rule in rules_of(slug) if rule["name"] == name]
        give_ids(definition)
        assert definition.items() <= recorded[slug, name].items() or _same(definition, recorded[slug, name]), name


def _same(seeded: dict[str, Any], recorded: dict[str, Any]) -> bool:
    """Whether all that the seed says is in the recorded definition, which says the defaults, too."""
    if isinstance(seeded, dict):
        return isinstance(recorded, dict) and all(_same(seeded[key], recorded.get(key)) for key in seeded)
    if isinstance(seeded, list):
        return isinstance(recorded, list) and len(seeded) == len(recorded) and all(map(_same, seeded, recorded))
    return seeded == recorded


@pytest.fixture
def world(db) -> World:
    return make_world()


def recorded(world: World) -> dict[str, Any]:
    """A run with a branch before and after a wait, a call and a note that reads its answer."""
    world.connection()
    rule = world.rule(
        "All of it",
        branch("early", leaf("status", "is", "open"), set_field("set", "status", "pending")),
        step("tell", "call_webhook", connection="hook", body='{"s": "{{ ticket.subject }}"}'),
        step("note", "add_note", text="{{ steps.tell.captured }}"),
        {"id": "wait", "kind": "delay", "for": "P1D"},
        branch("late", leaf("status", "is", "pending"), step("mark", "add_tags", tags=["late"])),
        condition={"id": "c", "all": [leaf("priority", "changed_to", "high")]},
    )
    ticket = world.ticket(priority="low", status="open", subject="Lamp")
    world.change(ticket, priority="high")
    [run] = world.runs(rule)
    assert (run.state, world.fresh(ticket).tags) == ("succeeded", ["late"])
    with world.acting():
        return history_of_run(run.pk)


def branch(id_: str, condition: dict[str, Any], *steps: dict[str, Any]) -> dict[str, Any]:
    arm = {"id": f"{id_}_arm", "if": {"id": f"{id_}_if", "all": [condition]}, "steps": list(steps)}
    return {"id": id_, "kind": "branch", "arms": [arm], "otherwise": []}


def test_a_run_goes_the_same_way_again_also_after_a_wait(world):
    history = recorded(world)
    assert replay_history(history) == []
    late = next(one for one in history["steps"] if one["path"].endswith("late"))
    assert late["given"]["read"] == {"status": "pending"}


def test_what_was_erased_from_a_run_is_not_planned_again_and_breaks_no_page(world):
    history = recorded(world)
    [run] = world.runs()
    for one in history["steps"]:
        one["given"] = blank(one["given"])
    assert replay_history(history) == []
    history["event"]["facts"]["snapshot"] = blank(history["event"]["facts"]["snapshot"])
    assert replay_history(history) == []
    with world.acting():
        for step_ in StepExecution.objects.filter(run=run, kind="branch"):
            StepExecution.objects.filter(pk=step_.pk).update(input=blank(step_.input))
        arms = {one.id: one.arms for one in trace(run.pk).steps if one.kind == "branch"}
    assert [arm.condition is None for arm in arms["early"] + arms["late"]] == [False, True]


def changed(history: dict[str, Any], change) -> list[str]:
    """The places that move when the definition, or what was recorded, is changed so."""
    other = copy.deepcopy(history)
    change(other)
    return [one.where for one in replay_history(other)]


def test_every_kind_of_decision_that_moves_is_named(world):
    history = recorded(world)
    steps = {one["path"].rpartition("/")[2]: one["path"] for one in history["steps"]}

    def definition(place: int, **values: Any):
        return lambda other: other["definition"]["steps"][place].update(values)

    assert changed(history, lambda other: other["definition"]["condition"]["all"][0].update(value="low")) == [
        "condition"
    ]
    other_arm = branch("early", leaf("status", "is", "new"))["arms"]
    assert changed(history, definition(0, arms=other_arm))[0] == steps["early"]
    assert changed(history, definition(3, **{"for": "P2D"}))[0] == steps["wait"]
    assert changed(history, definition(2, off=True))[0] == steps["note"]
    late_arm = branch("late", leaf("status", "is", "open"))["arms"]
    assert changed(history, definition(4, arms=late_arm))[0] == steps["late"]
    removed = changed(history, lambda other: other["definition"]["steps"].pop(2))
    assert removed == [steps["note"]]
    added = changed(history, lambda other: other["definition"]["steps"].append(set_field("new", "status", "open")))
    assert added[0].endswith("new")
    body = {"connection": "hook", "body": '{"s": "{{ ticket.subject | upcase }}"}'}
    assert changed(history, definition(1, params=body)) == [f"{steps['tell']}/body"]
    assert changed(history, lambda other: other["tenant"].update(id=10**9))[0] == steps["tell"]


def test_runs_that_failed_wait_or_were_suppressed_are_planned_too(world):
    rule = world.rule(
        "Again",
        set_field("s", "status", "open"),
        {"id": "w", "kind": "delay", "for": "P1D"},
        step("n", "add_note", text="x"),
        condition={"id": "c", "all": [leaf("priority", "is", "high")]},
        again="keep",
    )
    bad = world.rule("Bad", step("n", "add_note", text="{{ ticket.subject | date: 'x' }}"))
    ticket = world.ticket(priority="low")
    world.change(ticket, run=False, priority="high")
    world.run_until_held()
    world.change(ticket, run=False, subject="Other")
    world.run_until_held()
    assert "waiting" in world.states(rule)
    assert "suppressed already_waiting" in world.states(rule)
    assert set(world.states(bad)) == {"failed template_error"}
    with world.acting():
        assert [replay_run(run.pk) for run in world.runs()] == [[]] * len(world.runs())


def test_what_is_no_recorded_run_is_refused(world):
    for data in (
        [],
        {},
        {"history": 2},
        {"history": 1},
        {"history": 1, "tenant": {"id": 1, "name": "x", "zone": "No/Where"}},
    ):
        with pytest.raises(NoHistory):
            replay_history(data)


def test_the_command_plans_stored_runs_and_files(world, tmp_path, capsys):
    history = recorded(world)
    call_command("automation_replay", "--tenant", world.tenant.slug)
    assert "1 runs planned again: nothing has moved." in capsys.readouterr().out
    call_command("automation_replay", "--tenant", world.tenant.slug, "--write", str(tmp_path))
    [file] = tmp_path.glob("*.json")
    assert json.loads(file.read_text()) == history
    call_command("automation_replay", str(tmp_path))
    history["definition"]["condition"]["all"][0]["value"] = "low"
    file.write_text(json.dumps(history))
    capsys.readouterr()
    with pytest.raises(CommandError, match="1 of 1 runs would go another way"):
        call_command("automation_replay", str(file))
    assert "condition: was true, is now false" in capsys.readouterr().out
    for words, said in (
        ([], "Name files"),
        (["--tenant", world.tenant.slug, "--run", "0"], "no run 0"),
        ([str(tmp_path / "x")], "No such file"),
    ):
        with pytest.raises(CommandError, match=said):
            call_command("automation_replay", *words)


def test_a_run_whose_details_are_gone_is_said_not_to_be_kept(world, capsys):
    recorded(world)
    [run] = world.runs()
    with world.acting():
        Event.objects.filter(pk=run.event_id).update(details_removed_at=run.event.created_at, facts={})
    call_command("automation_replay", "--tenant", world.tenant.slug, "--run", str(run.pk))
    assert f"run {run.pk}: not kept" in capsys.readouterr().out
    call_command("automation_replay", "--tenant", world.tenant.slug, "--run", str(run.pk), "--json")
    assert json.loads(capsys.readouterr().out) == {"runs": 1, "moved": [], "not_kept": [f"run {run.pk}"]}


def test_a_wait_that_the_demo_shortened_has_not_moved(world):
    history = recorded(world)
    [wait] = [one["given"] for one in history["steps"] if one["kind"] == "delay"]
    began = datetime.fromisoformat(wait["from"])
    wait["until"] = (began + timedelta(days=1) * (1 / 3600)).isoformat()
    assert "wait" in [one.where for one in replay_history(history)]
    wait["scale"] = 1 / 3600
    assert replay_history(history) == []
