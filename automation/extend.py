"""The public door: everything a host or a plug-in may import."""

from automation.catalog.action import (
    Action,
    ActionParams,
    CheckContext,
    ConnectionRef,
    Context,
    Effect,
    FieldRef,
    GroupRef,
    LocalContext,
    MemberRef,
    Outcome,
    OutsideContext,
    PrepareContext,
    PreviewContext,
    TagList,
    Template,
)
from automation.catalog.automatable import Automatable, NoteTarget
from automation.catalog.fitting import Unfit, fit, is_settable, required
from automation.catalog.mentions import may_mention
from automation.catalog.pruning import prune
from automation.catalog.registry import automatable, model, register
from automation.catalog.trigger import Trigger, TriggerParams, TriggerSpec
from automation.core.automatic_mail import base as plain_address
from automation.core.calendars import Span
from automation.core.calendars import add as add_span
from automation.core.facts import same
from automation.core.footprints import Writing
from automation.core.spec import Retry
from automation.engine.history import history_of, pending_for
from automation.engine.imports import ImportRule, rules_on_import
from automation.engine.operate import Refused
from automation.engine.posting import DifferentBody, manual_rules_for, post_event, run_by_hand
from automation.engine.retention.erase import Erased, erase
from automation.engine.sources import by_api, importing, receiving_mail
from automation.engine.watched import Watched

__all__ = [
    "Action",
    "ActionParams",
    "Automatable",
    "CheckContext",
    "ConnectionRef",
    "Context",
    "DifferentBody",
    "Effect",
    "Erased",
    "FieldRef",
    "GroupRef",
    "ImportRule",
    "LocalContext",
    "MemberRef",
    "NoteTarget",
    "Outcome",
    "OutsideContext",
    "PrepareContext",
    "PreviewContext",
    "Refused",
    "Retry",
    "Span",
    "TagList",
    "Template",
    "Trigger",
    "TriggerParams",
    "TriggerSpec",
    "Unfit",
    "Watched",
    "Writing",
    "add_span",
    "automatable",
    "by_api",
    "erase",
    "fit",
    "history_of",
    "importing",
    "is_settable",
    "manual_rules_for",
    "may_mention",
    "model",
    "pending_for",
    "plain_address",
    "post_event",
    "prune",
    "receiving_mail",
    "register",
    "required",
    "rules_on_import",
    "run_by_hand",
    "same",
]
