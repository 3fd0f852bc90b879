"""Pauses and resumes one rule or one connection while the tenant's other rules go on."""

from collections.abc import Iterable, Sequence
from datetime import datetime

from django.db import transaction

from automation.catalog.params import ConnectionRef, places
from automation.engine import ruleset
from automation.engine.operate.held import COUNTED, HeldOfRule, dripping, find_pause
from automation.engine.operate.moments import check_until
from automation.engine.operate.resume import AT_ONCE, Choice, Dropped, as_json, cancel_held, decide, write_down
from automation.engine.operate.runs import cancel_all
from automation.models import Connection, Pause, Rule
from automation.store import drips, held, pauses, timers
from automation.store import rules as rule_rows
from tenants import audit
from tenants.context import current_actor, current_tenant

AT_A_TIME = 200
PUT_OFF_FOR = ["paused", "endpoint_down"]


def pause_rule(
    rule_id: int, reason: str, *, level: str = "hold", until: datetime | None = None, rate: int | None = None
) -> None:
    """Holds one rule: it still gets its runs, and they do nothing until it is resumed. Twice does nothing more.

    With level "cancel" its runs are cancelled besides, those that come later are held. `until` and `rate` as for a
    tenant. Raises `Rule.DoesNotExist`, `Refused`, ValueError for another level.
    """
    if level not in ("hold", "cancel"):
        raise ValueError(f"a rule can't be paused at the level {level}")
    check_until(until, rate)
    with transaction.atomic():
        rule = _lock_rule(rule_id)
        _open("rule", rule.pk, reason=reason, level=level, until=until, rate=rate)
    if level == "cancel":
        cancel_all(rule_id=rule.pk, reason=reason)


def pause_connection(
    connection_id: int, reason: str, *, until: datetime | None = None, rate: int | None = None
) -> None:
    """Holds each step that uses a connection until it is resumed; other steps go on. Twice does nothing more.

    Raises `Connection.DoesNotExist`, `Refused`.
    """
    check_until(until, rate)
    with transaction.atomic():
        found = Connection.objects.select_for_update(no_key=True).get(pk=connection_id)
        _open("connection", found.pk, reason=reason, level="hold", until=until, rate=rate)


def resume_rule(rule_id: int, choice: Choice = AT_ONCE) -> None:
    """Ends the pause of a rule, also one that the engine itself made; its held runs go on as asked.

    Works in batches of a transaction each; the pause ends last. Twice does nothing more.
    """
    choice.check()
    tenant_id = current_tenant()
    pause, dropped = _drop_first("rule", _lock_rule(rule_id, lock=False).pk, choice)
    with transaction.atomic():
        rule = _lock_rule(rule_id)
        goes_on = rule.on or rule.off_mode == "finish"
        if _end("rule", rule.pk, pause, choice, dropped):
            _go_on(pause, choice, rule_rows.held_runs(tenant_id, rule.pk) if goes_on else [])
            pauses.bump_rules(tenant_id)


def resume_connection(connection_id: int, choice: Choice = AT_ONCE) -> None:
    """Ends the pause of a connection, also one that the engine itself made; what waited for it goes on as asked."""
    choice.check()
    pause, dropped = _drop_first("connection", Connection.objects.get(pk=connection_id).pk, choice)
    with transaction.atomic():
        Connection.objects.select_for_update(no_key=True).get(pk=connection_id)
        if _end("connection", connection_id, pause, choice, dropped):
            _go_on(pause, choice, _held_by_connection(connection_id))
            pauses.bump_rules(current_tenant())


def held_by(scope: str, subject_id: int) -> list[HeldOfRule]:
    """What the open pause of a rule or connection holds, by rule, the most first; [] where none is open.

    `oldest` is when the oldest run began. `COUNTED` runs are looked at.
    """
    if find_pause(scope, subject_id) is None:
        return []
    return [HeldOfRule(*row) for row in held.of_runs(_held(scope, subject_id)[:COUNTED])]


def end_rule_pause(rule: Rule) -> bool:
    """Ends the pause of a locked rule and audits it, inside the caller's transaction; False when there was none.

    The caller hurries the held runs and makes workers read the rules anew.
    """
    still = dripping("rule", rule.pk)
    if still is not None:
        drips.let_go(still.drip.pk)
    return _end("rule", rule.pk, find_pause("rule", rule.pk), AT_ONCE, Dropped())


def _open(scope: str, subject_id: int, *, reason: str, level: str, until: datetime | None, rate: int | None) -> None:
    tenant_id, actor = current_tenant(), current_actor().name
    before = find_pause(scope, subject_id)
    if before is not None and (before.level, before.until, before.rate) == (level, until, rate):
        return
    if before is not None:
        pauses.end_pause(scope, tenant_id=tenant_id, subject_id=subject_id, actor=actor)
    pauses.open_pause(
        scope, tenant_id=tenant_id, subject_id=subject_id, level=level, reason=reason, actor=actor, until=until,
        rate=rate,
    )  # fmt: skip
    after = {"level": level} | ({"until": until.isoformat()} if until else {}) | ({"rate": rate} if rate else {})
    audit.record(
        "pause", f"{scope}:{subject_id}", tenant_id=tenant_id, reason=reason, before=as_json(before), after=after
    )
    pauses.bump_rules(tenant_id)


def _drop_first(scope: str, subject_id: int, choice: Choice) -> tuple[Pause | None, Dropped]:
    """The open pause with the choice written into it, and what that dropped; it still holds the rest."""
    pause = find_pause(scope, subject_id)
    moment = decide(pause, choice)
    before = choice.dropped_before(moment) if moment is not None else None
    if pause is None or before is None:
        return pause, Dropped()
    runs = 0
    for run_ids in _batches(drips.older(_held(scope, subject_id), before=before)):
        runs += cancel_held(pause.pk, list(run_ids))
    return pause, Dropped(runs=runs)


def _held(scope: str, subject_id: int) -> list[int]:
    still = dripping(scope, subject_id)
    rest = drips.dripping(still.drip.pk) if still is not None else []
    if scope == "rule":
        return rest + rule_rows.held_runs(current_tenant(), subject_id)
    return rest + _held_by_connection(subject_id)


def _end(scope: str, subject_id: int, pause: Pause | None, choice: Choice, dropped: Dropped) -> bool:
    if pause is None:
        return False
    ended = pauses.end_pause(scope, tenant_id=pause.tenant_id, subject_id=subject_id, actor=current_actor().name)
    if ended:
        write_down(pause, choice, dropped)
    return ended


def _go_on(pause: Pause | None, choice: Choice, run_ids: Sequence[int]) -> None:
    """Makes held runs due: at once, or at the rate, through a drip. Timers, then the lane."""
    if pause is None or pause.tenant_id is None:
        return
    still = dripping(pause.scope, pause.subject_id)
    if choice.rate is None:
        if still is not None:
            drips.let_go(still.drip.pk)
        timers.hurry(pause.tenant_id, run_ids)
        return
    drip_id = drips.open_drip(
        pause.pk,
        tenant_id=pause.tenant_id,
        scope=pause.scope,
        subject_id=pause.subject_id,
        rate=choice.rate,
        kept_until=None,
    )
    drips.hold_runs(drip_id, run_ids=run_ids)


def _held_by_connection(connection_id: int) -> list[int]:
    """Runs whose next step uses the connection and was put off."""
    name = Connection.objects.get(pk=connection_id).name
    rows = drips.put_off_runs(current_tenant(), PUT_OFF_FOR)
    versions = ruleset.by_version(version for _run, version, _path in rows)
    return [run for run, version, path in rows if name in _names(versions.get(version), path)]


def _names(rule: ruleset.Compiled | None, path: str) -> set[str]:
    """The connections that a step of a version uses."""
    for node in rule.spec.nodes if rule is not None and rule.spec is not None else ():
        action = rule.action(node) if rule is not None and node.path == path else None
        if rule is not None and action is not None:
            return {one.value for one in places(rule.params(node, action)) if isinstance(one.marker, ConnectionRef)}
    return set()


def _batches(run_ids: Iterable[int]) -> Iterable[Sequence[int]]:
    ids = sorted(set(run_ids))
    return (ids[start : start + AT_A_TIME] for start in range(0, len(ids), AT_A_TIME))


def _lock_rule(rule_id: int, *, lock: bool = True) -> Rule:
    """The rule, locked, so that two switches of it follow each other; raises `Rule.DoesNotExist`."""
    rules = Rule.objects.select_for_update(no_key=True) if lock else Rule.objects.all()
    return rules.get(pk=rule_id, deleted_at=None)
