"""Parameters of actions and triggers: their base, the marked types, and finding and filling the marked places."""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import UnionType
from typing import Annotated, Any, ClassVar, Self, TypeVar, Union, get_args, get_origin

from pydantic import BaseModel, ConfigDict, GetCoreSchemaHandler
from pydantic.fields import FieldInfo
from pydantic_core import CoreSchema, core_schema


class ActionParams(BaseModel):
    """Base of the parameters of an action: strict types, no unknown names, never changed."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)


TriggerParams = ActionParams


class Marker(str):
    """A text whose meaning the engine knows. As a type it is a plain text; as metadata it carries one word, itself.

    `text: Template` and `text: Annotated[str, Template(target="html")]` both work, and type checkers see a `str`.
    """

    __slots__ = ()
    word: ClassVar[str] = ""

    def __new__(cls, value: str | None = None) -> Self:
        """A marker with its word; without one it takes the class's own."""
        return super().__new__(cls, cls.word if value is None else value)

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Validates like the text it is, or like the type that it annotates."""
        if isinstance(source, type) and issubclass(source, Marker):
            return core_schema.str_schema(strict=True)
        return handler(source)

    @property
    def name(self) -> str:
        """What the marker is called in schemas: "template", "connection_ref"."""
        return re.sub("(?<=[a-z])(?=[A-Z])", "_", type(self).__name__).lower()


class Template(Marker):
    """A Liquid template, rendered before the action sees it, for a target: text, html, header, url or json."""

    __slots__ = ()
    word = "text"

    def __new__(cls, value: str | None = None, *, target: str | None = None) -> Self:
        """`Template()` is for plain text; `Template(target="html")` for another place."""
        return super().__new__(cls, target if value is None else value)

    @property
    def target(self) -> str:
        """The place that the rendered text is escaped for."""
        return str(self)


class ConnectionRef(Marker):
    """The name of a connection of the tenant; as metadata, `ConnectionRef("pager")` accepts that kind only."""

    __slots__ = ()


class FieldRef(Marker):
    """The path of a field of the trigger's model; as metadata, `FieldRef("change")` those that rules may write."""

    __slots__ = ()
    word = "read"


class GroupRef(Marker):
    """The name of a group of the tenant."""

    __slots__ = ()


class _Reference(Marker):
    __slots__ = ()


MEMBER = _Reference("member")
TAGS = _Reference("tags")
MemberRef = Annotated[int, MEMBER]
"""The id of a member of the tenant."""
TagList = Annotated[list[str], TAGS]
"""Names of tags."""


def is_member(marker: Marker) -> bool:
    """Whether the marker says that the number is the id of a member."""
    return marker is MEMBER


@dataclass(frozen=True, slots=True)
class Place:
    """A marked value inside parameters: its pointer below them, its marker, and the value."""

    pointer: str
    marker: Marker
    value: Any


P = TypeVar("P", bound=BaseModel)


def load(model: type[P], raw: Mapping[str, Any]) -> P:
    """Parameters from their JSON form, strictly; pydantic's ValidationError with everything that doesn't fit."""
    return model.model_validate_json(json.dumps(raw))


def places(params: BaseModel, pointer: str = "") -> Iterator[Place]:
    """Every marked value in the parameters, in the order of their fields, through nested models, lists and dicts."""
    for name, info in type(params).model_fields.items():
        yield from _walk(_annotation(info), getattr(params, name), f"{pointer}/{escape(info.alias or name)}")


def filled(params: P, render: Callable[[str, str], str]) -> P:
    """The parameters with `render(source, target)` in place of every template, validated anew.

    Raises what `render` raises, and pydantic's ValidationError where a rendered text doesn't fit.
    """
    templates = [place for place in places(params) if isinstance(place.marker, Template) and "{" in place.value]
    if not templates:
        return params
    raw = params.model_dump(by_alias=True)
    for place in templates:
        *way, last = [unescape(part) for part in place.pointer.split("/")[1:]]
        holder: Any = raw
        for part in way:
            holder = holder[int(part)] if isinstance(holder, list) else holder[part]
        text = render(place.value, place.marker.target)  # type: ignore[attr-defined]
        holder[int(last) if isinstance(holder, list) else last] = text
    return type(params).model_validate(raw)


def marked_schema(model: type[BaseModel]) -> dict[str, Any]:
    """The JSON schema of parameters, with "x-marker" and "x-word" at the fields whose meaning the engine knows."""
    schema = model.model_json_schema(by_alias=True)
    for name, info in model.model_fields.items():
        marker = marker_of(_annotation(info))
        if marker is not None:
            known = {"x-marker": str(marker) if isinstance(marker, _Reference) else marker.name, "x-word": str(marker)}
            schema["properties"][info.alias or name] |= known
    return schema


def escape(part: str) -> str:
    """One part of a JSON pointer, with `~` and `/` escaped."""
    return part.replace("~", "~0").replace("/", "~1")


def unescape(part: str) -> str:
    """The plain form of one part of a JSON pointer."""
    return part.replace("~1", "/").replace("~0", "~")


def marker_of(annotation: Any) -> Marker | None:
    """The marker of a type: a marker class itself, metadata of it, or that of one of its alternatives."""
    if isinstance(annotation, type) and issubclass(annotation, Marker):
        return annotation()
    alternatives = get_args(annotation)
    if get_origin(annotation) is Annotated:
        own = [item for item in alternatives[1:] if isinstance(item, Marker)]
        return own[-1] if own else marker_of(alternatives[0])
    if get_origin(annotation) in (Union, UnionType):
        return next((found for found in map(marker_of, alternatives) if found is not None), None)
    return None


def _annotation(info: FieldInfo) -> Any:
    """The type of a field with its markers, which pydantic keeps apart."""
    annotation: Any = info.annotation
    for marker in (item for item in info.metadata if isinstance(item, Marker)):
        annotation = Annotated[annotation, marker]
    return annotation


def _walk(annotation: Any, value: Any, pointer: str) -> Iterator[Place]:
    marker = marker_of(annotation)
    if value is None:
        return
    if marker is not None and (isinstance(value, str) or not isinstance(marker, Template)):
        yield Place(pointer, marker, value)
    elif isinstance(value, BaseModel):
        yield from places(value, pointer)
    elif isinstance(value, list | tuple):
        for index, item in enumerate(value):
            yield from _walk(_inner(annotation, (list, tuple), 0), item, f"{pointer}/{index}")
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _walk(_inner(annotation, (dict,), 1), item, f"{pointer}/{escape(str(key))}")


def _inner(annotation: Any, kinds: tuple[type, ...], position: int) -> Any:
    """The type of the items of the list or dict that an annotation allows."""
    arguments = get_args(annotation)
    if get_origin(annotation) in kinds:
        return arguments[position]
    found = (_inner(argument, kinds, position) for argument in arguments)
    return next((inner for inner in found if inner is not None), None)
