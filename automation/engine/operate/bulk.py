"""Works off many dead letters at a pace: a job in the database, which the workers go on with after any restart."""

import json
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import structlog
from django.db import transaction
from django.utils.translation import gettext as _

from automation.core.alike import pattern
from automation.engine.by_itself import by_itself
from automation.engine.notices import bulk_stopped_notice, tell
from automation.engine.operate import Refused, fitting
from automation.engine.operate.dead_letters import RESOLUTIONS, Worked, work_off
from automation.models import BulkJob, Limits
from automation.store import clock, drips, letters, verbs
from tenants import audit
from tenants.context import Actor, acting_for, current_actor, current_tenant

log = structlog.get_logger(__name__)
FASTEST = 100.0  # a second: what one worker can let out beside its work
BATCH = 100  # dead letters a transaction
SLICE = 0.25  # seconds that one look may take: the pump has other things to do
MEANWHILE = timedelta(seconds=1)  # between two looks whether all that was let out has been begun
PORTION = 500  # runs whose steps are taken back in a transaction
COUNTED = 10_000


@dataclass(frozen=True, slots=True)
class BulkStatus:
    """How far a job has come: `tried` are done or have been begun, `in_line` are due and no worker has begun them.

    `left` are still to be let out, counted to `COUNTED`; `refusals` says why others weren't done, how often.
    """

    job: BulkJob
    tried: int
    in_line: int
    left: int
    failed_again: int
    refusals: dict[str, int]


def start(
    verb: str,
    *,
    rule_id: int | None = None,
    step: str = "",
    reason_code: str = "",
    error: str = "",
    of_event: bool = False,
    rate: float = 10.0,
    most: int | None = None,
    stop_after: int | None = None,
    reason: str = "",
) -> BulkJob:
    """Begins to "retry", send again as new ("retry_as_new") or give up ("discard") all open dead letters that fit.

    `rate` of them a second, at most `most`; it stops by itself when `stop_after` of those tried again are dead once
    more. `error` fits all cases of that error, `of_event` only events that were set aside. The same job twice is one
    as long as it runs. ValueError for another verb; `Refused` where nothing fits or a number makes no sense.
    """
    if verb not in RESOLUTIONS:
        raise ValueError(f"there is no bulk verb {verb}")
    if not 0 < rate <= FASTEST:
        raise Refused(_("A rate is more than 0 and at most %s a second.") % int(FASTEST))
    if (most is not None and most < 1) or (stop_after is not None and stop_after < 1):
        raise Refused(_("A limit is at least 1."))
    tenant_id = current_tenant()
    filters = {"rule_id": rule_id, "step": step, "reason": reason_code, "error": pattern(error)}
    filters |= {"of_event": True} if of_event else {}
    newest = fitting.newest(filters)
    if newest is None:
        raise Refused(_("No open dead letter fits."))
    with transaction.atomic():
        Limits.objects.select_for_update(no_key=True).get(tenant_id=tenant_id)  # one start at a time
        same = BulkJob.objects.filter(state="running", verb=verb, filters=filters).first()
        if same is not None:
            return same
        actor = current_actor()
        job = BulkJob(
            tenant_id=tenant_id,
            verb=verb,
            filters=filters,
            rate=rate,
            most=most,
            stop_after=stop_after,
            reason=reason[:500],
            actor=actor.name,
            actor_id=actor.id,
            until_id=newest,
            next_at=clock.now(),
        )
        job.save()
        about = {"verb": verb, **filters, "rate": rate, "most": most, "stop_after": stop_after}
        audit.record("bulk", f"bulk:{job.pk}", tenant_id=tenant_id, reason=reason, after=about)
    return job


def status(job_id: int) -> BulkStatus:
    """How far a job of the current tenant has come; `BulkJob.DoesNotExist` for none."""
    job = BulkJob.objects.get(pk=job_id)
    left = 0
    if job.state == "running":
        waiting = fitting.fitting(job.filters).filter(pk__gt=job.last_id, pk__lte=job.until_id)
        left = waiting.order_by()[:COUNTED].count()
        left = left if job.most is None else min(left, job.most - job.done)
    in_line = letters.in_line(job.pk)
    again = max(job.failed_again, letters.failed_again(job.pk))  # those retried since aren't dead any more
    return BulkStatus(
        job, max(job.done - in_line, 0), in_line=in_line, left=left, failed_again=again, refusals=dict(job.refusals)
    )


def cancel(job_id: int, reason: str = "") -> int:
    """Ends a job; what it has put into the line and nobody has begun goes back among the dead letters.

    Answers how many went back. Twice does nothing more; `Refused` for one that has ended otherwise. Whatever comes
    between, workers go on with taking back.
    """
    tenant_id = current_tenant()
    with transaction.atomic():
        job = BulkJob.objects.select_for_update(no_key=True).get(pk=job_id)
        if job.state not in ("running", "cancelled"):
            raise Refused(_("This job has ended already."))
        if letters.move_job(job.pk, to="cancelled", taking_back=True):
            audit.record("cancel", f"bulk:{job.pk}", tenant_id=tenant_id, reason=reason, before={"done": job.done})
    return _take_back(job.pk)


def work(*, late: float) -> int:
    """Does what is due of each running job, for which workers look once a moment; answers how many.

    What looks come late by is made up for, `late` seconds at most.
    """
    ends_at, done = time.monotonic() + SLICE, 0
    for job_id, tenant_id, has_ended in letters.due_jobs(50):
        with by_itself("bulk", job_id=job_id, tenant_id=tenant_id), acting_for(tenant_id):
            if has_ended:
                _take_back(job_id, ends_at=ends_at)
            else:
                done += _work_on(job_id, late=late, ends_at=ends_at)
        if time.monotonic() > ends_at:
            break
    return done


def _work_on(job_id: int, *, late: float, ends_at: float) -> int:
    done = 0
    while True:
        more, count, stopped = _batch(job_id, late=late)
        done += count
        if stopped:
            log.warning("bulk stopped", job_id=job_id, tenant_id=current_tenant())
            _take_back(job_id, ends_at=ends_at)
        if not more or time.monotonic() > ends_at:
            return done


def _batch(job_id: int, *, late: float) -> tuple[bool, int, bool]:
    """One transaction of a job: (whether more is due, how many were done, whether it stopped by itself)."""
    with transaction.atomic():
        free = BulkJob.objects.select_for_update(no_key=True, skip_locked=True)
        job = free.filter(pk=job_id, state="running").first()
        if job is None:
            return False, 0, False
        # Counting is the dearest part of a look, so only a job that stops by it counts before its end.
        again = job.failed_again if job.stop_after is None else letters.failed_again(job.pk)
        if job.stop_after is not None and again >= job.stop_after:
            letters.move_job(job.pk, to="stopped", failed_again=again, taking_back=True)
            return False, 0, True
        # None is put into the line beforehand: it would be late, with all the others, when no worker lives meanwhile.
        now = clock.now()
        begins = drips.paced_from(job.next_at, now, late=late)
        if begins > now:
            return False, 0, False
        chosen, last_id, through = _choose(job, int((now - begins).total_seconds() * job.rate) + 1)
        if through and not chosen:
            _ended(job, again, last_id, now)
            return False, 0, False
        with acting_for(job.tenant_id, Actor("person" if job.actor_id else "system", job.actor_id, job.actor)):
            worked = _worked(job, chosen, begins)
        _written(job, again, worked=worked, last_id=last_id, begins=begins)
    return not through, len(worked.done), False


def _ended(job: BulkJob, again: int, last_id: int, now: datetime) -> None:
    """All are let out: a job ends, one that may still have to stop when none of them waits in the line any more."""
    waits = job.stop_after is not None and letters.any_in_line(job.pk)
    again = letters.failed_again(job.pk) if job.stop_after is None else again
    letters.move_job(
        job.pk,
        to="running" if waits else "finished",
        last_id=last_id,
        next_at=now + MEANWHILE if waits else job.next_at,
        failed_again=again,
    )


def _tell_stopped(job: BulkJob) -> None:
    notice = bulk_stopped_notice(
        tenant_id=job.tenant_id,
        job_id=job.pk,
        rule_id=job.filters.get("rule_id"),
        failed_again=job.failed_again,
        now=clock.now(),
    )
    tell([notice])


def _choose(job: BulkJob, room: int) -> tuple[list[int], int, bool]:
    """The next letters of a job, `room` at most, up to which id it has looked, and whether that is the end."""
    room = min(room, BATCH, BATCH if job.most is None else job.most - job.done)
    if room <= 0:
        return [], job.last_id, True
    looked = fitting.fitting(job.filters).filter(pk__gt=job.last_id, pk__lte=job.until_id).order_by("id")
    rows = list(looked.values_list("id", "error")[:BATCH])
    chosen, last_id = list[int](), job.last_id
    for letter_id, error in rows:
        if len(chosen) == room:
            return chosen, last_id, False
        last_id = letter_id
        if fitting.fits(job.filters, error):
            chosen.append(letter_id)
    return chosen, last_id, len(rows) < BATCH


def _worked(job: BulkJob, chosen: Sequence[int], begins: datetime) -> Worked:
    """Does the verb to all at once; where one of them spoils it for the others, to each alone."""
    due = {one: begins + timedelta(seconds=place / job.rate) for place, one in enumerate(chosen)}
    try:
        with transaction.atomic():
            return work_off(chosen, job.verb, due=due, bulk_id=job.pk, reason=job.reason)
    except Refused:
        worked = Worked()
    for one in chosen:
        try:
            with transaction.atomic():
                alone = work_off([one], job.verb, due=due, bulk_id=job.pk, reason=job.reason)
            worked.done += alone.done
            worked.refused |= alone.refused
        except Refused as refusal:
            worked.refused[one] = str(refusal)
    return worked


def _written(job: BulkJob, again: int, *, worked: Worked, last_id: int, begins: datetime) -> None:
    refusals = Counter(job.refusals) + Counter(worked.refused.values())
    taken = len(worked.done) + len(worked.refused)
    letters.move_job(
        job.pk,
        to="running",
        last_id=last_id,
        next_at=begins + timedelta(seconds=taken / job.rate),
        done=job.done + len(worked.done),
        refused=job.refused + len(worked.refused),
        refusals=json.dumps(dict(refusals.most_common(20))),
        failed_again=again,
    )


def _take_back(job_id: int, *, ends_at: float | None = None) -> int:
    """What an ended job has put into the line and nobody has begun: its steps are dead as before, its letters open.

    In portions, until all is back or `ends_at` (of the monotonic clock) has come: then the next look goes on. Answers
    how many went back.
    """
    back = 0
    while ends_at is None or time.monotonic() <= ends_at or not back:
        portion = _portion_back(job_id)
        if portion is None:
            break
        back += portion
    return back


def _portion_back(job_id: int) -> int | None:
    """One transaction of it; None at the end, when whoever is to hear of a job that stopped by itself is told."""
    tenant_id = current_tenant()
    with transaction.atomic():
        job = BulkJob.objects.select_for_update(no_key=True).get(pk=job_id)
        run_ids = letters.put_in_line(job_id, PORTION)
        if run_ids:
            return letters.take_back(job_id, [run.id for run in verbs.lock_runs(tenant_id, run_ids)])
        if letters.all_taken_back(job_id) and job.state == "stopped":
            _tell_stopped(job)
        return None
