"""Replays a run from one of its steps: a new run, into which the outcomes before that step are copied."""

from django.db import transaction
from django.utils.translation import gettext as _

from automation.core.spec import Node, RuleSpec
from automation.core.states import LIVE_RUN
from automation.engine import ruleset
from automation.engine.operate import Refused, onward
from automation.engine.operate.history import settled_rows, walk
from automation.engine.progress import longest_life
from automation.models import Rule, Run, StepExecution
from automation.store import by_hand, clock, verbs
from automation.store.by_hand import Copied
from tenants import audit
from tenants.context import current_tenant
from tenants.models import Tenant


def replay(run_id: int, *, step: str = "", live: bool = False, as_new: bool = False, reason: str = "") -> int:
    """Starts a new run for the same event, from a step on (its id or path; from the first without one); answers its id.

    It follows the version of the replayed run, or with `live` the one that is live now. The outcomes of the steps
    before are copied, the steps from there on are done under their own keys: what an earlier run is known to have
    sent isn't sent again unless `as_new`, which gives all of them new keys. The replayed run stays as it ended.
    While such a replay is under way, asking again answers the same one. Raises `Run.DoesNotExist`, and `Refused` where
    the run hasn't ended, its rule is deleted, it never came to that step, another replay of it is under way, or one has
    sent everything again as new already.
    """
    tenant_id = current_tenant()
    with transaction.atomic():
        source = _source(tenant_id, run_id)
        version_id = _version(source, live=live)
        spec = _spec(version_id)
        node = _node(spec, step)
        epoch = by_hand.newest_epoch(source.event_id, source.rule_id) + 1 if as_new else source.epoch
        under_way = by_hand.live_replay(source.event_id, source.rule_id)
        if under_way is not None:
            return _same(under_way, source, node, version_id=version_id, as_new=as_new)
        if as_new:
            _refuse_done(source, node, version_id=version_id)
        copied = _before(spec, node, source)
        zone = Tenant.objects.get(pk=tenant_id).zone
        new_id = by_hand.insert_replay(
            source.pk,
            version_id=version_id,
            step_path=node.path,
            epoch=epoch,
            life=longest_life(spec, now=clock.now(), zone=zone),
        )
        by_hand.copy_steps(tenant_id, new_id, copied)
        audit.record(
            "replay",
            f"run:{source.pk}",
            tenant_id=tenant_id,
            reason=reason,
            before={"state": source.state},
            after={"run": new_id, "step": node.path, "version": version_id, "as_new": as_new, "copied": len(copied)},
        )
        onward.go_on(onward.in_hand(new_id), node.index, begun=bool(copied))
    return new_id


def _source(tenant_id: int, run_id: int) -> Run:
    """The run, locked together with the one that its event started, so that replays follow each other."""
    run = Run.objects.get(pk=run_id)
    if run.origin != "event":
        raise Refused(_("This run was a test."))
    first = by_hand.first_run(run.event_id, run.rule_id)
    verbs.lock_runs(tenant_id, sorted({run_id, first or run_id}))
    run.refresh_from_db()
    if run.details_removed_at is not None or run.event.details_removed_at is not None:
        raise Refused(_("What this run was about has been removed, as the tenant's retention says."))
    if run.state == "suppressed":
        raise Refused(_("This run was never started: there is nothing to replay."))
    if run.state in LIVE_RUN or run.state in ("compensating", "compensation_failed"):
        raise Refused(_("This run hasn't ended: cancel it, or decide what it waits for."))
    return run


def _version(source: Run, *, live: bool) -> int:
    rule = Rule.objects.get(pk=source.rule_id)
    if rule.deleted_at is not None:
        raise Refused(_("The rule of this run was deleted."))
    if live and rule.published_id is None:
        raise Refused(_("No version of the rule is live."))
    return rule.published_id if live and rule.published_id else source.rule_version_id


def _spec(version_id: int) -> RuleSpec:
    compiled = ruleset.by_version([version_id]).get(version_id)
    if compiled is None or compiled.spec is None:
        raise Refused(_("This version of the rule can't be read any more."))
    return compiled.spec


def _node(spec: RuleSpec, step: str) -> Node:
    if not step and spec.first is not None:
        return spec.nodes[spec.first]
    node = next((one for one in spec.nodes if step in (one.path, one.id)), None)
    if node is None:
        raise Refused(_("This version of the rule has no step “%(step)s”.") % {"step": step[:60]})
    return node


def _same(under_way: tuple[int, int, str, int, int], source: Run, node: Node, *, version_id: int, as_new: bool) -> int:
    """The replay that is under way where it is the one that was asked for."""
    run_id, replayed, step, version, epoch = under_way
    if (replayed, step, version) == (source.pk, node.path, version_id) and as_new == (epoch > source.epoch):
        return run_id
    raise Refused(_("Run %(run)s, a replay for the same event, is still under way.") % {"run": run_id})


def _refuse_done(source: Run, node: Node, *, version_id: int) -> None:
    """Sending again as new is done once: asked for again, by mistake or not, it would come a third time."""
    done = Run.objects.filter(
        event_id=source.event_id,
        rule_id=source.rule_id,
        forked_from_run=source,
        forked_from_step=node.path,
        rule_version_id=version_id,
        epoch__gt=source.epoch,
        state="succeeded",
    ).first()
    if done is not None:
        told = _("Run %(run)s has sent this again as new already. To send it once more, replay that run.")
        raise Refused(told % {"run": done.pk})


def _before(spec: RuleSpec, node: Node, source: Run) -> list[Copied]:
    """The outcomes of the steps that lead to the node."""
    copied = list[Copied]()
    for index, row in walk(spec, settled_rows(source)):
        if index == node.index:
            return copied
        if row is not None:
            copied.append(_copy(row))
        elif index is not None:
            raise Refused(
                _("The step “%(earlier)s” comes before “%(step)s”, and the run has no outcome of it.")
                % {"earlier": spec.nodes[index].id, "step": node.id}
            )
    raise Refused(_("The run never came to the step “%(step)s”.") % {"step": node.id})


def _copy(row: StepExecution) -> Copied:
    return Copied(
        path=row.path,
        kind=row.kind,
        action=row.action,
        state=row.state,
        reason=row.reason,
        input=row.input,
        output=row.output,
        started_at=row.started_at,
        ended_at=row.ended_at,
    )
