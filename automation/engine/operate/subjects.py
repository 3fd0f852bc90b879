"""Pauses and resumes one rule or one connection while the tenant's other rules go on."""

from datetime import datetime
from functools import partial

from django.db import transaction
from django.utils.translation import gettext as _

from automation.catalog.params import ConnectionRef, places
from automation.engine import ruleset
from automation.engine.operate import Refused
from automation.engine.operate.held import Dripping, HeldOfRule, dripping, find_pause, is_same
from automation.engine.operate.moments import check_until
from automation.engine.operate.resume import (
    AT_ONCE,
    Choice,
    Going,
    as_json,
    batches,
    decide,
    drop_held,
    end,
    let_out_some,
)
from automation.engine.operate.runs import cancel_all
from automation.models import Connection, Drip, Rule
from automation.store import clock, drips, pauses, shelves
from tenants import audit
from tenants.context import current_actor, current_tenant

GATHERED = 1000  # steps a transaction


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
    """Ends the pause of a rule, also one that the engine itself made; what it holds goes on as asked.

    Quick however much that is: all goes by a row that the workers follow, in portions or at the rate. What is to be
    dropped is cancelled in batches before, for two seconds, and by the workers where that isn't enough; the pause ends
    last. Asked again while it goes on, the rate changes. Raises `Rule.DoesNotExist`, `Refused`.
    """
    choice.check()
    _resume("rule", _lock_rule(rule_id, lock=False).pk, choice)


def resume_connection(connection_id: int, choice: Choice = AT_ONCE) -> None:
    """Ends the pause of a connection, also one that the engine itself made, as that of a rule."""
    choice.check()
    _resume("connection", Connection.objects.get(pk=connection_id).pk, choice)


def _resume(scope: str, subject_id: int, choice: Choice) -> None:
    pause = find_pause(scope, subject_id)
    going = decide(pause, choice) if pause is not None else None
    if going is not None:
        end_part(going)
    else:
        _change_pace(scope, subject_id, choice)


def _change_pace(scope: str, subject_id: int, choice: Choice) -> None:
    """Another choice for what is still let out; nothing where nothing is."""
    still = dripping(scope, subject_id)
    if still is None or (choice.keep == "all" and choice.rate == still.drip.rate):
        return
    pause, moment, dropped = still.drip.pause, clock.now(), 0
    before = choice.dropped_before(moment)
    if before is not None:
        if pause is None:
            raise Refused(_("No pause has held this: cancel its runs instead."))
        dropped = pause.dropped_runs
        going = Going(pause, choice, moment, drip=still.drip)
        drop_held(going, partial(drips.held_in, still.drip.pk, before=before))
        pause.refresh_from_db(fields=["dropped_runs"])
        dropped = pause.dropped_runs - dropped
    with transaction.atomic():
        drips.change_rate(still.drip.pk, None if choice.keep == "drop" else choice.rate)
        _note_pace(still, choice, dropped)
    let_out_some(dripping(scope, subject_id))


def end_part(going: Going) -> bool:
    """Ends the pause of a rule or connection of the current tenant; False where time was over before."""
    pause, choice = going.pause, going.choice
    scope, subject_id = pause.scope, pause.subject_id or 0
    if choice.keep != "all" or choice.rate is not None:
        # What no worker has looked at yet is held like the rest before anything may go on.
        if not _shelve(going) or not _gather(going, due=True) or not _drop(going):
            return False
    elif not _gather(going, due=False):
        return False
    with transaction.atomic():
        _lock(scope, subject_id)
        rate = None if choice.keep == "drop" else choice.rate
        if not end(going, rate=rate):
            return False
        pauses.bump_rules(current_tenant())
    let_out_some(dripping(scope, subject_id))
    return True


def held_by(scope: str, subject_id: int) -> list[HeldOfRule]:
    """What the open pause of a rule or connection holds, by rule, the most first; [] where none is open.

    `oldest` is since when the oldest of the steps is due. `COUNTED` steps are looked at.
    """
    if find_pause(scope, subject_id) is None:
        return []
    now = clock.now()
    return [HeldOfRule(*row) for row in shelves.by_rule(_of(scope, subject_id, until=now, due=True), until=now)]


def end_rule_pause(rule: Rule) -> bool:
    """Ends the pause of a locked rule and audits it, inside the caller's transaction; False when there was none.

    What a rate still lets out of it goes on in portions. The caller makes workers read the rules anew.
    """
    still = dripping("rule", rule.pk)
    if still is not None:
        drips.change_rate(still.drip.pk, None)
    pause = find_pause("rule", rule.pk)
    going = decide(pause, AT_ONCE) if pause is not None else None
    return going is not None and end(going)


def gather_put_off(rule: Rule) -> None:
    """Puts on the shelf of a locked rule what was put off beside it, so that it goes on with the rest; before it opens.

    That is little: where it is more than one portion, the rest is looked at again within half a minute.
    """
    pause = find_pause("rule", rule.pk)
    if pause is not None:
        pauses.lock(pause.pk)  # workers that end it lock it before the timers, too
    shelves.gather(shelves.Of(rule.tenant_id, "rule", rule.pk), until=clock.now(), due=False, limit=GATHERED)


def _shelve(going: Going) -> bool:
    """Makes sure of a shelf: what was paused by a release without shelves may have none yet."""
    pause = going.pause
    with transaction.atomic():
        if not pauses.lock(pause.pk, since=going.moment):
            return False
        shelves.follow(pause.scope, tenant_id=pause.tenant_id, subject_id=pause.subject_id)
    return True


def _gather(going: Going, *, due: bool) -> bool:
    pause = going.pause
    of = _of(pause.scope, pause.subject_id or 0, until=going.moment, due=due)
    return batches(going, lambda: shelves.gather(of, until=going.moment, due=due, limit=GATHERED))


def _drop(going: Going) -> bool:
    shelf = Drip.objects.filter(
        tenant_id=current_tenant(), scope=going.pause.scope, subject_id=going.pause.subject_id, ended_at=None
    ).first()
    before = going.choice.dropped_before(going.moment)
    if shelf is None or before is None:
        return True
    return drop_held(going, partial(drips.held_in, shelf.pk, before=before))


def _of(scope: str, subject_id: int, *, until: datetime, due: bool) -> shelves.Of:
    """Whose work it is; of a connection the steps that use it, among those that wait at this moment."""
    tenant_id = current_tenant()
    if scope == "rule":
        return shelves.Of(tenant_id, scope, subject_id)
    name = Connection.objects.get(pk=subject_id).name
    found = shelves.places(tenant_id, until=until, due=due)
    versions = ruleset.by_version(version for version, _path in found)
    uses = [(version, path) for version, path in found if name in _names(versions.get(version), path)]
    return shelves.Of(tenant_id, scope, subject_id, uses)


def _note_pace(still: Dripping, choice: Choice, dropped_runs: int) -> None:
    drip = still.drip
    audit.record(
        "pace",
        f"{drip.scope}:{drip.subject_id}",
        tenant_id=drip.tenant_id,
        before={"rate": drip.rate, "steps": still.steps},
        after=choice.as_json() | {"dropped_runs": dropped_runs},
    )


def _open(scope: str, subject_id: int, *, reason: str, level: str, until: datetime | None, rate: int | None) -> None:
    tenant_id, actor = current_tenant(), current_actor().name
    before = find_pause(scope, subject_id)
    if before is not None and is_same(before, level=level, until=until, rate=rate):
        return
    if before is not None:
        pauses.end_pause(before.pk, actor=actor)
    pauses.open_pause(
        scope, tenant_id=tenant_id, subject_id=subject_id, level=level, reason=reason, actor=actor, until=until,
        rate=rate,
    )  # fmt: skip
    after = {"level": level} | ({"until": until.isoformat()} if until else {}) | ({"rate": rate} if rate else {})
    audit.record(
        "pause", f"{scope}:{subject_id}", tenant_id=tenant_id, reason=reason, before=as_json(before), after=after
    )
    pauses.bump_rules(tenant_id)


def _names(rule: ruleset.Compiled | None, path: str) -> set[str]:
    """The connections that a step of a version uses."""
    for node in rule.spec.nodes if rule is not None and rule.spec is not None else ():
        action = rule.action(node) if rule is not None and node.path == path else None
        if rule is not None and action is not None:
            return {one.value for one in places(rule.params(node, action)) if isinstance(one.marker, ConnectionRef)}
    return set()


def _lock(scope: str, subject_id: int) -> None:
    """Locks the subject of a pause, so that two switches of it follow each other."""
    if scope == "rule":
        _lock_rule(subject_id)
    else:
        Connection.objects.select_for_update(no_key=True).get(pk=subject_id)


def _lock_rule(rule_id: int, *, lock: bool = True) -> Rule:
    """The rule, locked, so that two switches of it follow each other; raises `Rule.DoesNotExist`."""
    rules = Rule.objects.select_for_update(no_key=True) if lock else Rule.objects.all()
    return rules.get(pk=rule_id, deleted_at=None)
