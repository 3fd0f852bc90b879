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
from automation.catalog.registry import automatable, model, register
from automation.catalog.trigger import Trigger, TriggerParams, TriggerSpec
from automation.core.calendars import Span
from automation.core.spec import Retry
from automation.engine.watched import Watched

__all__ = [
    "Action",
    "ActionParams",
    "Automatable",
    "CheckContext",
    "ConnectionRef",
    "Context",
    "Effect",
    "FieldRef",
    "GroupRef",
    "LocalContext",
    "MemberRef",
    "NoteTarget",
    "Outcome",
    "OutsideContext",
    "PrepareContext",
    "PreviewContext",
    "Retry",
    "Span",
    "TagList",
    "Template",
    "Trigger",
    "TriggerParams",
    "TriggerSpec",
    "Watched",
    "automatable",
    "model",
    "register",
]
