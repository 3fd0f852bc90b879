"""The parts of a definition's JSON found by walking it, whatever state it is in, and ids for those that have none."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

PartKind = Literal["step", "arm", "group", "condition"]
GROUP_MODES = ("all", "any", "none")
ID_PATTERN = re.compile(r"[a-z][a-z0-9_]{0,39}", re.ASCII)
_PREFIX = {"arm": "b", "group": "g", "condition": "c"}


@dataclass(frozen=True, slots=True)
class Part:
    """A step, arm, group or condition: where it is, what it holds, and how deep it lies among its own kind (from 1).

    The depth of a condition is that of the groups around it.
    """

    pointer: str
    kind: PartKind
    value: dict[str, Any]
    depth: int


def parts(data: Any) -> Iterator[Part]:
    """All parts of a definition in document order. What doesn't have the shape of a part is passed over."""
    if not isinstance(data, dict):
        return
    yield from _condition(data.get("condition"), "/condition", depth=1)
    yield from _steps(data.get("steps"), "/steps", depth=1)


def give_ids(data: Any) -> None:
    """Give an id to every part without one, in place; ids that are there never change."""
    found = list(parts(data))
    taken = {part.value["id"] for part in found if isinstance(part.value.get("id"), str)}
    numbers: dict[str, int] = {}
    for part in found:
        if "id" not in part.value:
            part.value["id"] = _free_id(part, taken, numbers)
            taken.add(part.value["id"])


def _free_id(part: Part, taken: set[str], numbers: dict[str, int]) -> str:
    """The first free id of the part's name; `numbers` remembers how far each name has come."""
    if part.kind == "step":
        wanted = str(part.value.get("action") or part.value.get("kind") or "")
        name = wanted[:30] if ID_PATTERN.fullmatch(wanted[:30]) else "step"
        if name not in taken:
            return name
    else:
        name = _PREFIX[part.kind]
    number = numbers.get(name, 2 if part.kind == "step" else 1)
    while f"{name}_{number}" in taken:
        number += 1
    numbers[name] = number + 1
    return f"{name}_{number}"


def _steps(steps: Any, pointer: str, *, depth: int) -> Iterator[Part]:
    if not isinstance(steps, list):
        return
    for index, step in enumerate(steps):
        if isinstance(step, dict):
            here = f"{pointer}/{index}"
            yield Part(here, "step", step, depth)
            yield from _arms(step.get("arms"), f"{here}/arms", depth=depth)
            yield from _steps(step.get("otherwise"), f"{here}/otherwise", depth=depth + 1)


def _arms(arms: Any, pointer: str, *, depth: int) -> Iterator[Part]:
    if not isinstance(arms, list):
        return
    for index, arm in enumerate(arms):
        if isinstance(arm, dict):
            here = f"{pointer}/{index}"
            yield Part(here, "arm", arm, depth)
            yield from _condition(arm.get("if"), f"{here}/if", depth=1)
            yield from _steps(arm.get("steps"), f"{here}/steps", depth=depth + 1)


def _condition(value: Any, pointer: str, *, depth: int) -> Iterator[Part]:
    if not isinstance(value, dict):
        return
    mode = next((mode for mode in GROUP_MODES if mode in value), None)
    if mode is None:
        yield Part(pointer, "condition", value, depth - 1)
        return
    yield Part(pointer, "group", value, depth)
    items = value[mode]
    for index, item in enumerate(items if isinstance(items, list) else ()):
        yield from _condition(item, f"{pointer}/{mode}/{index}", depth=depth + 1)
