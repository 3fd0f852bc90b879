"""Tries a rule out: the real engine in a transaction that is always rolled back, with effects only captured."""

import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Literal, TypeVar

from django.db import Error, OperationalError, connection, transaction
from django.utils.translation import gettext as _

from automation.catalog import registry
from automation.conf import load
from automation.core.facts import NotThisType, decode, same
from automation.core.spec import RuleSpec
from automation.engine import capture, ruleset
from automation.engine.apart import apart
from automation.engine.documents import valid
from automation.engine.operate import Refused
from automation.engine.references import References
from automation.engine.ruleset import Compiled, TenantRules
from automation.engine.samples import Sample
from automation.engine.simulate import Runner
from automation.engine.trial_outcome import Tried, report_of
from automation.engine.trial_report import TrialReport
from automation.engine.trial_stage import Answered, Answers, TookTooLong, TrialTimers, unreachable
from automation.models import Event, Rule, RuleDraft, RuleVersion
from automation.store import clock, events, statements
from tenants.context import current_tenant

__all__ = ["Options", "TookTooLong", "definition_of", "rehearse", "trial"]

SECONDS = 5.0  # a trial holds its record, and what else it changes, for so long at most
STATEMENT_SECONDS = 5
LOCK_TIMEOUT = "2s"
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Options:
    """How to try: whether waits pass at once or the trial ends there, at which moment, and how effects are answered.

    `answers`: by a step's id or path, or "*": succeed, fail, timeout, or recorded (the default: as in the past run
    that is tried, and as a success elsewhere). `at` None is the moment of the event, or now.
    """

    waits: Literal["pass", "stay"] = "pass"
    at: datetime | None = None
    answers: Mapping[str, Answered] = field(default_factory=dict)


def definition_of(rule_id: int, version: int | None = None) -> dict[str, Any]:
    """The draft of a rule of the current tenant, or one of its versions; `DoesNotExist` where there is none."""
    if version is None:
        draft: dict[str, Any] = RuleDraft.objects.get(rule_id=rule_id, rule__deleted_at=None).definition
        return draft
    found: dict[str, Any] = RuleVersion.objects.get(rule_id=rule_id, number=version, rule__deleted_at=None).definition
    return found


def trial(
    definition: Any,
    sample: Callable[[RuleSpec], Sample],
    *,
    rule_id: int | None = None,
    options: Options | None = None,
) -> TrialReport:
    """Tries a definition for the current tenant, on a connection of its own; nothing of it stays.

    `sample` is asked, with the compiled rule, for what to try it on; `rule_id` is the rule that the definition is a
    draft or version of. Raises `DefinitionError` for one that can't be published, `Refused` where it can't be tried
    (`TookTooLong` after 5 s), and what `sample` raises.
    """
    return _on_its_own_connection(lambda: rehearse(definition, sample, rule_id=rule_id, options=options))


def rehearse(
    definition: Any,
    sample: Callable[[RuleSpec], Sample],
    *,
    rule_id: int | None = None,
    options: Options | None = None,
) -> TrialReport:
    """As `trial`, on the present connection: for callers that have one to spare."""
    tenant_id = current_tenant()
    document = valid(definition, References(tenant_id))
    try:
        with transaction.atomic():
            with connection.cursor() as cursor:
                cursor.execute(f"SET LOCAL lock_timeout = '{LOCK_TIMEOUT}'")
                cursor.execute(f"SET LOCAL statement_timeout = '{STATEMENT_SECONDS}s'")
            report = _Trial(tenant_id, document, rule_id, options or Options()).run(sample)
            transaction.set_rollback(True)
    except OperationalError as error:
        raise TookTooLong(_("The test was given up: the database kept it waiting.")) from error
    return report


def _on_its_own_connection(act: Callable[[], T]) -> T:
    """A thread has a connection of its own: what the caller has open, or did to the session, doesn't meet the trial."""

    def closing() -> T:
        try:
            return act()
        finally:
            connection.close()

    with ThreadPoolExecutor(max_workers=1, thread_name_prefix="trial") as threads:
        return threads.submit(copy_context().run, closing).result()


@dataclass(slots=True)
class _Trial:
    """One trial inside its transaction."""

    tenant_id: int
    document: dict[str, Any]
    rule_id: int | None
    options: Options

    def run(self, choose: Callable[[RuleSpec], Sample]) -> TrialReport:
        """Makes the event, lets the engine work, and reads what it did."""
        begun = time.monotonic()
        live = ruleset.of_tenant(self.tenant_id, (events.flags([self.tenant_id])[self.tenant_id])[2])
        rule = self._compiled()
        if rule.spec is None:
            raise Refused(rule.broken)
        _refuse_unknown_steps(rule.spec, self.options.answers)
        sample = choose(rule.spec)
        if sample.made_up:
            sample = _with_record(sample)
        event = self._event(sample)
        before = _values(sample)
        runner, answers = self._runner(live, sample, event)
        with apart(live.with_only(_reentering(rule), unreachable(live.connections))):
            runner.run(self.tenant_id, until=event.created_at if self.options.waits == "stay" else None)
            return report_of(
                Tried(rule=rule, live=live, sample=sample, event=event, sent=answers.sent),
                changes=_difference(sample, before, _values(sample)),
                seconds=time.monotonic() - begun,
            )

    def _runner(self, live: TenantRules, sample: Sample, event: Event) -> tuple[Runner, Answers]:
        conf = replace(load(), time_scale=1.0, breakers=False)  # how calls end here says nothing about a connection
        answers = Answers(live.connections, conf, self.options.answers, sample.recorded)
        timers = TrialTimers(clock=event.created_at, root=event.pk, ends_at=time.monotonic() + SECONDS)
        return Runner(script=answers, conf=conf, timers=timers), answers

    def _compiled(self) -> Compiled:
        """The rule and version as rows of this transaction: runs point to them, and nobody else sees them."""
        rule = Rule.objects.filter(pk=self.rule_id, deleted_at=None).first() if self.rule_id else None
        if rule is None:
            if self.rule_id is not None:
                raise Rule.DoesNotExist
            rule = Rule.objects.create(tenant_id=self.tenant_id, name=_("This rule"))
        # Below all real numbers, and another one each time, so that no publishing waits for this transaction.
        number = -int(statements.value("SELECT nextval(pg_get_serial_sequence('automation_ruleversion', 'id'))"))
        version = RuleVersion.objects.create(
            tenant_id=self.tenant_id, rule=rule, number=number, definition=self.document, sha256=""
        )
        return ruleset.compile_version(version, rule)

    def _event(self, sample: Sample) -> Event:
        return Event.objects.create(
            tenant_id=self.tenant_id,
            kind=sample.kind,
            change=sample.change,
            name=sample.name,
            model=sample.model,
            record=sample.record,
            facts={name: value for name, value in sample.facts.items() if name != "quiet"},
            source=sample.source,
            actor=sample.actor,
            batch=sample.batch,
            depth=sample.depth,
            path=sample.path,
            created_at=self.options.at or sample.at or clock.now(),
        )


def _refuse_unknown_steps(spec: RuleSpec, names: Iterable[str]) -> None:
    """`Refused` for an answer of a step that the rule doesn't have, or that asks nobody outside."""
    outside = {name for node in spec.nodes if node.kind == "action" and not node.local for name in (node.id, node.path)}
    wrong = next((name for name in names if name != "*" and name not in outside), None)
    if wrong is not None:
        steps = ", ".join(node.id for node in spec.nodes if node.id in outside) or "-"
        about = {"step": wrong[:80], "steps": steps}
        raise Refused(_("The rule has no outside step “%(step)s”. It has: %(steps)s") % about)


def _reentering(rule: Compiled) -> Compiled:
    """The rule as if no run of it waited, and no import had had its one run: nothing real is to be replaced by it."""
    spec = rule.spec
    if spec is None:
        return rule
    return replace(rule, spec=replace(spec, again="both", imports="run" if spec.imports == "once" else spec.imports))


def _with_record(sample: Sample) -> Sample:
    """Makes the record that own facts speak of, for the length of the trial; where that can't be, there is none."""
    entry = registry.model(sample.model)
    snapshot = sample.facts["snapshot"]
    columns: dict[str, Any] = {}
    for path, raw in snapshot.items():
        known = entry.fields.get(path)
        if known is not None and known.column:
            value = _decoded(path, raw, known.type)
            columns[entry.model._meta.get_field(known.orm_path).attname] = (  # type: ignore[union-attr]
                sorted(value) if isinstance(value, frozenset) else value
            )
    try:
        with transaction.atomic():
            record = entry.model(tenant_id=current_tenant(), **columns)
            record.save()
            present, _cut = capture.snapshot_of(entry, record.pk)
    except (Error, ValueError):
        remark = _("The facts don't make a record that could be kept: steps that change it are skipped.")
        return replace(sample, remarks=(*sample.remarks, remark))
    return replace(sample, record=record.pk, facts={**sample.facts, "snapshot": present | snapshot})


def _decoded(path: str, raw: Any, type_: str) -> Any:
    try:
        return decode(raw, type_)
    except NotThisType as error:
        raise Refused(_("“%(field)s”: %(problem)s") % {"field": path, "problem": error}) from error


def _values(sample: Sample) -> dict[str, Any]:
    """The record's present values."""
    if not sample.model or sample.record is None:
        return {}
    return capture.read_records(registry.model(sample.model), [sample.record], lock=False).get(sample.record, {})


def _difference(sample: Sample, before: dict[str, Any], after: dict[str, Any]) -> dict[str, tuple[Any, Any]]:
    """What the trial would have changed of its record, as (before, after) by path."""
    fields = registry.models[sample.model].fields if sample.model in registry.models else {}
    return {
        path: (before.get(path), after.get(path))
        for path, known in fields.items()
        if not same(before.get(path), after.get(path), known.type)
    }
