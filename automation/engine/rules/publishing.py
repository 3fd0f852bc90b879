"""Publishes drafts: the next version goes live, runs under way keep theirs."""

from django.db import transaction
from django.db.models import Max
from django.utils.translation import gettext as _

from automation.engine.documents import fingerprint, valid
from automation.engine.operate import Refused
from automation.engine.references import References
from automation.engine.rules.finding import find, locked_draft, person, record, write_draft
from automation.models import RuleVersion
from automation.store import pauses
from automation.store import rules as rule_rows
from tenants.context import current_tenant

NOTE_LENGTH = 400


class NothingNew(Refused):
    """The draft says what the published version says already."""


def publish(rule_id: int, *, revision: int, note: str = "") -> RuleVersion:
    """Makes the draft of that revision the live version: new events follow it, runs under way keep theirs.

    Raises `Conflict` when the draft has moved on, `DefinitionError` with every problem, `NothingNew` when it says what
    the live version says.
    """
    tenant_id = current_tenant()
    with transaction.atomic():
        rule = find(rule_id, lock=True)
        draft = locked_draft(rule_id, revision)
        definition = valid(draft.definition, References(tenant_id))
        sha256 = fingerprint(definition)
        live = RuleVersion.objects.filter(pk=rule.published_id).first() if rule.published_id else None
        if live is not None and live.sha256 == sha256:
            raise NothingNew(_("Nothing has changed since version %s.") % live.number)
        last = RuleVersion.objects.filter(rule=rule).aggregate(last=Max("number"))["last"] or 0
        version = RuleVersion.objects.create(
            tenant_id=tenant_id,
            rule=rule,
            number=last + 1,
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
            after={"version": version.number, "on": rule.on},
        )
        pauses.bump_rules(tenant_id)
    return version
