"""What the commands that pause and resume share: whose pause it is, rates and spans as people write them, the state."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any

from django.core.management.base import CommandParser, OutputWrapper

from automation.engine.operate import pause
from automation.engine.rules import what_goes
from automation.management.arguments import misused, write_table
from automation.management.naming import a_minute, connection_named, rule_named, tenant_named
from automation.management.verbs import NOTHING_CHANGED, person
from automation.models import Rule
from tenants.context import acting_as, acting_for


def add_target(parser: CommandParser) -> None:
    """`--tenant SLUG`, with `--rule` or `--connection` one of its parts, or `--installation`."""
    whose = parser.add_mutually_exclusive_group(required=True)
    whose.add_argument("--tenant", metavar="SLUG", help="the tenant, by its part of the address")
    whose.add_argument("--installation", action="store_true", help="every tenant at once")
    part = parser.add_mutually_exclusive_group()
    part.add_argument("--rule", metavar="RULE", help="one rule of the tenant only, by its number or name")
    part.add_argument("--connection", metavar="NAME", help="one connection of the tenant only")


@contextmanager
def target(options: dict[str, Any]) -> Iterator[tuple[str, int | None]]:
    """Acts for whom was named: answers its scope, and its rule or connection; an error where there is none."""
    part = options["rule"] is not None or options["connection"] is not None
    if options["installation"]:
        if part:
            raise misused("A rule or connection is one of a tenant: name it with --tenant.")
        with acting_as(person()):
            yield "installation", None
        return
    with acting_for(tenant_named(options["tenant"]).pk, person()):
        yield _part(options)


def _part(options: dict[str, Any]) -> tuple[str, int | None]:
    if options["rule"] is not None:
        return "rule", rule_named(options["rule"]).pk
    if options["connection"] is not None:
        return "connection", connection_named(options["connection"]).pk
    return "tenant", None


def whole_rate(text: str | None) -> int | None:
    """A rate in so many whole ones a minute; None for none."""
    rate = a_minute(text)
    return None if rate is None else int(rate)


def state(scope: str, subject_id: int | None) -> dict[str, Any]:
    """How things stand with whoever is acted for, as JSON values."""
    if scope == "installation":
        return _of_installation()
    if scope != "tenant":
        open_pause = pause.find_pause(scope, subject_id)
        return {
            "scope": scope,
            "off": scope == "rule" and Rule.objects.filter(pk=subject_id or 0, on=False, off_mode="hold").exists(),
            "state": "running" if open_pause is None else "paused",
            "pause": _of_pause(open_pause),
            "dripping": _of_drip(pause.dripping(scope, subject_id)),
        }
    status = pause.status()
    return {
        "scope": scope,
        "state": status.state,
        "pause": _of_pause(status.pause),
        "in_flight": status.in_flight,
        "workers": status.workers,
        "kept_events": status.kept_events,
        "live_runs": status.live_runs,
        "held_runs": status.held_runs,
        "timers_due": status.timers_due,
        "dripping": _of_drip(status.dripping),
    }


def pace(rate: int | None) -> str:
    """How fast what was held goes on."""
    return f"at {rate} a minute" if rate else "all at once"


def say(out: OutputWrapper, found: dict[str, Any]) -> None:
    """How things stand, in a few lines."""
    out.write(f"{found['scope']}: {found['state']}")
    stopped, drip = found["pause"], found.get("dripping")
    if stopped:
        until = f", until {stopped['until']:%Y-%m-%d %H:%M:%S %Z}" if stopped["until"] else ""
        rate = f", then at {stopped['rate']} a minute" if stopped["rate"] else ""
        whose = " of the installation" if stopped["scope"] == "installation" else ""
        out.write(
            f"pause {stopped['id']}{whose}: level {stopped['level']}, by {stopped['actor'] or 'the engine'}"
            f" since {stopped['since']:%Y-%m-%d %H:%M:%S %Z}{until}{rate}: {stopped['reason']}"
        )
        if stopped["resumed_at"]:
            out.write("it is being ended: what it holds is sorted first, and the workers go on with that")
    runs = "held_runs" if stopped else "live_runs"
    for name in ("in_flight", "tenants", "kept_events", runs, "timers_due"):
        if name in found:
            out.write(f"{name.replace('_', ' ')}: {found[name]}")
    for one in found.get("most", []):
        out.write(f"  {one['tenant']}: {one['events']} events, {one['steps']} steps")
    if found.get("workers"):
        out.write(f"workers that are on something: {', '.join(found['workers'])}")
    if drip:
        out.write(
            f"let out {pace(drip['rate'])}: {drip['steps']} steps and {drip['events']} events are left,"
            f" until about {drip['ends_at']:%Y-%m-%d %H:%M:%S %Z}"
        )


def held(scope: str, subject_id: int | None) -> dict[str, Any] | None:
    """What is held of the tenant that is acted for: by rule, by what happened, and by age.

    Of one of its rules or connections the steps by rule; None of the installation, whose state names the most.
    """
    if scope == "installation":
        return None
    if scope != "tenant":
        return {"by_rule": _by_rule(pause.held_by(scope, subject_id or 0))}
    return {
        "by_rule": _by_rule(pause.held_by_rule()),
        "by_kind": [
            {"what": f"{one.model} {one.change or one.name}".strip(), "source": one.source, "events": one.events,
             "oldest": one.oldest}
            for one in pause.kept_by_kind()
        ],
        "younger": [{"minutes": one.minutes, "events": one.events, "steps": one.steps} for one in pause.younger()],
    }  # fmt: skip


def say_held(out: OutputWrapper, found: dict[str, Any]) -> None:
    """What is held, as tables."""
    out.write(f"held steps: {sum(one['steps'] for one in found['by_rule'])}")
    write_table(out, ["steps", "oldest", "rule"], [
        [one["steps"], f"{one['oldest']:%Y-%m-%d %H:%M:%S}", f"{one['rule']} {one['name']}"]
        for one in found["by_rule"]
    ])  # fmt: skip
    if "by_kind" in found:
        write_table(out, ["events", "oldest", "what"], [
            [one["events"], f"{one['oldest']:%Y-%m-%d %H:%M:%S}", f"{one['what']} ({one['source']})"]
            for one in found["by_kind"]
        ])  # fmt: skip


def would(scope: str, subject_id: int | None, choice: pause.Choice) -> dict[str, int | None]:
    """How many events and steps a resume would let go on; None where that isn't counted beforehand."""
    if choice.keep == "drop":
        return {"events": 0, "steps": 0}
    if scope == "installation":
        whole = pause.installation_status()
        kept = choice.keep == "all"
        return {"events": whole.kept_events if kept else None, "steps": whole.timers_due if kept else None}
    if scope != "tenant":
        steps = sum(one.steps for one in pause.held_by(scope, subject_id or 0))
        return {"events": 0, "steps": steps if choice.keep == "all" else None}
    if choice.recent_minutes is not None:
        [(events, steps)] = pause.younger_than([choice.recent_minutes])
        return {"events": events, "steps": steps}
    status = pause.status()
    return {"events": status.kept_events, "steps": sum(one.steps for one in pause.held_by_rule())}


def concerns(scope: str, subject_id: int | None) -> dict[str, int | None]:
    """How much a pause would hold at this moment; None where that isn't counted beforehand."""
    if scope == "tenant":
        return dict(asdict(pause.concerned()))
    if scope == "installation":
        status = pause.installation_status()
        return {"in_flight": status.in_flight, "unmatched_events": status.kept_events, "timers_due": status.timers_due}
    return {"live_runs": what_goes(subject_id or 0).runs if scope == "rule" else None}


def say_would(out: OutputWrapper, found: dict[str, int | None], verb: str = "go on") -> None:
    """What would be done, and that nothing was."""
    counts = (f"{'uncounted' if count is None else count} {name.replace('_', ' ')}" for name, count in found.items())
    out.write(f"Would {verb}: {', '.join(counts)}. {NOTHING_CHANGED}")


def _by_rule(found: list[pause.HeldOfRule]) -> list[dict[str, Any]]:
    return [{"rule": one.rule_id, "name": one.rule_name, "steps": one.steps, "oldest": one.oldest} for one in found]


def _of_installation() -> dict[str, Any]:
    status = pause.installation_status()
    return {
        "scope": "installation",
        "state": status.state,
        "pause": _of_pause(status.pause),
        "in_flight": status.in_flight,
        "workers": status.workers,
        "tenants": status.tenants,
        "kept_events": status.kept_events,
        "timers_due": status.timers_due,
        "most": [{"tenant": one.slug, "events": one.events, "steps": one.steps} for one in status.most],
    }


def _of_pause(found: Any) -> dict[str, Any] | None:
    if found is None:
        return None
    names = ("id", "scope", "level", "reason", "actor", "since", "until", "rate", "resumed_at")
    return {name: getattr(found, name) for name in names}


def _of_drip(found: Any) -> dict[str, Any] | None:
    if found is None:
        return None
    return {"rate": found.drip.rate, "steps": found.steps, "events": found.events, "ends_at": found.ends_at}
