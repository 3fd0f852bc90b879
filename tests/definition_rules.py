"""A catalog and a definition for tests of definitions, small enough to read."""

from types import SimpleNamespace
from typing import Annotated, Any

from definition_models import CASE
from django.utils.translation import gettext as _

from automation.catalog import registry
from automation.catalog.action import (
    Action,
    ActionParams,
    ConnectionRef,
    Effect,
    FieldRef,
    GroupRef,
    MemberRef,
    Template,
)
from automation.core.spec import RuleSpec
from automation.definitions.compile import compile_definition


class Mark(Action):
    """A local action."""

    kind, label = "mark", "Mark the case"
    effects = (Effect.DB_LOCAL,)

    class Params(ActionParams):
        """What to write where."""

        field: Annotated[str, FieldRef("change")] = "title"
        text: Template = ""
        group: GroupRef | None = None
        member: MemberRef | None = None

    def check(self, params: Params, context: Any) -> list[tuple[str, str]]:
        return [("/text", "Don't shout.")] if params.text.isupper() else []

    def sentence(self, params: Params) -> str:
        return _("mark it “%(text)s”") % {"text": params.text}


class Page(Action):
    """An outside action."""

    kind, version, label = "page", 2, "Page somebody"
    effects = (Effect.IDEMPOTENT, Effect.AT_MOST_ONCE)

    class Params(ActionParams):
        """Whom, and what to say."""

        connection: Annotated[str, ConnectionRef("pager")]
        summary: Annotated[str, Template(target="header")] = ""


class Only(Action):
    """An action for another kind of record."""

    kind, label = "only", "For others only"
    effects = (Effect.IDEMPOTENT,)
    models = frozenset({"crm.lead"})
    Params = ActionParams


class References:
    """What the tenant has."""

    def connection(self, name: str) -> str | None:
        return {"pager": "pager", "mail": "smtp"}.get(name)

    def member(self, member_id: int) -> bool:
        return member_id == 7

    def group(self, name: str) -> bool:
        return name == "Sales"

    def record(self, target: str, record_id: int) -> bool:
        return record_id == 7


CATALOG: Any = SimpleNamespace(
    actions={"mark@1": Mark(), "page@2": Page(), "only@1": Only()},
    triggers=registry.triggers,
    models={CASE.name: CASE},
)


def trigger(kind: str = "record_changed", **params: Any) -> dict[str, Any]:
    """A trigger on cases."""
    given = {"on": ["updated"]} if kind == "record_changed" else {}
    return {"kind": kind, "params": {"model": CASE.name, **given, **params}}


def mark(**more: Any) -> dict[str, Any]:
    """A local step."""
    return {"kind": "action", "action": "mark", "version": 1, "params": {"text": "seen"}, **more}


def page(**more: Any) -> dict[str, Any]:
    """An outside step."""
    return {"kind": "action", "action": "page", "version": 2, "params": {"connection": "pager"}, **more}


def rule(**more: Any) -> dict[str, Any]:
    """A definition; what isn't given is the simplest that is right."""
    return {"schema_version": 1, "trigger": trigger(), "condition": None, "steps": [mark()], **more}


def compiled(definition: Any) -> RuleSpec:
    """The definition compiled with the catalog and references of this module."""
    return compile_definition(definition, CATALOG, References())
