"""Publishes drafts: the next version goes live, and runs under way keep theirs or are cancelled, as asked."""

from django.db import transaction
from django.db.models import Max
from django.utils.translation import gettext as _

from automation.engine.documents import fingerprint, valid
from automation.engine.operate import Refused
from automation.engine.operate.runs import Cancelled, cancel_all
from automation.engine.references import References
from automation.engine.rules.finding import find, locked_draft, person, record, write_draft
from automation.engine.rules.taking_up import take_up
from automation.models import Rule, RuleVersion
from automation.store import pauses
from automation.store import rules as rule_rows
from tenants.context import current_tenant

NOTE_LENGTH = 400
OLDER_RUNS = ("keep", "cancel")


class NothingNew(Refused):
    """The draft says what the published version says already."""


def publish(
    rule_id: int, *, revision: int, note: str = "", waiting: str = "keep", existing_rate: float | None = None
) -> RuleVersion:
    """Makes the draft of that revision the live version: new events follow it.

    Runs under way finish on their own version ("keep"), or are cancelled once the new one is live ("cancel", in batches
    of a transaction each: call it outside a transaction then). ValueError for another word.
    Records that it concerns already are left alone until they change, or, where the rule is on, taken up at a rate a
    minute.

    Raises `Conflict` when the draft has moved on, `DefinitionError` with every problem, `NothingNew` when it says what
    the live version says.
    """
    if waiting not in OLDER_RUNS:
        raise ValueError(f"runs under way can't be told to {waiting}")
    with transaction.atomic():
        version = _publish(rule_id, revision=revision, note=note, waiting=waiting)
        if existing_rate is not None:
            take_up(rule_id, rate=existing_rate, reason=f"publish {version.number}")
    if waiting == "cancel":
        cancel_older(rule_id)
    return version


def cancel_older(rule_id: int, reason: str = "") -> Cancelled:
    """Cancels the runs that are still on versions of the rule older than the live one; idempotent.

    Raises `Rule.DoesNotExist`, and `Refused` for a rule that was never published.
    """
    live = find(rule_id).published
    if live is None:
        raise Refused(_("This rule was never published: it has no older versions."))
    return cancel_all(rule_id=rule_id, before_version=live.pk, reason=reason or f"publish {live.number}")


def _publish(rule_id: int, *, revision: int, note: str, waiting: str) -> RuleVersion:
    tenant_id = current_tenant()
    rule = find(rule_id, lock=True)
    draft = locked_draft(rule_id, revision)
    definition = valid(draft.definition, References(tenant_id))
    sha256 = fingerprint(definition)
    live = RuleVersion.objects.filter(pk=rule.published_id).first() if rule.published_id else None
    if live is not None and live.sha256 == sha256:
        raise NothingNew(_("Nothing has changed since version %s.") % live.number)
    version = RuleVersion.objects.create(
        tenant_id=tenant_id,
        rule=rule,
        number=next_number(rule),
        definition=definition,
        sha256=sha256,
        schema_version=definition.get("schema_version", 1),
        published_by_id=person(),
        note=note[:NOTE_LENGTH],
    )
    if draft.definition != definition:
        write_draft(draft, definition)
    rule_rows.set_published(rule.pk, version.pk)
    record(
        "publish",
        rule,
        reason=note,
        before={"version": live.number if live else None},
        after={"version": version.number, "on": rule.on} | ({"waiting": waiting} if waiting == "cancel" else {}),
    )
    pauses.bump_rules(tenant_id)
    return version


def next_number(rule: Rule) -> int:
    """The number that the rule's next version gets."""
    return int(RuleVersion.objects.filter(rule=rule).aggregate(last=Max("number"))["last"] or 0) + 1
