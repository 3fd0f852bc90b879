"""What is different between two definitions, part by part: ids tell what was added, removed, moved or changed."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from automation.definitions.tree import GROUP_MODES, Part, PartKind, give_ids, parts

_CHILDREN = {"step": ("arms", "otherwise"), "arm": ("if", "steps"), "group": GROUP_MODES, "condition": ()}
_HEAD = ("trigger", "again", "limit", "imports", "expires", "on_failure", "schema_version")


@dataclass(frozen=True, slots=True)
class Change:
    """One difference: a part by its id, or a word of the rule itself (id "").

    `pointer` is its place in the new definition, for what was removed in the old one. `before` and `after` are the
    JSON of the part without the parts in it, None where there was none; for "moved" they are the two pointers. `part`
    is the kind of part, "" for a word of the rule.
    """

    kind: Literal["added", "removed", "changed", "moved"]
    id: str
    pointer: str
    before: Any
    after: Any
    part: PartKind | Literal[""] = field(default="", compare=False)


def diff(old: Mapping[str, Any] | None, new: Mapping[str, Any] | None) -> list[Change]:
    """All differences in the order of the new definition, then what was removed. None stands for an empty one."""
    before, after = _prepared(old), _prepared(new)
    changes = [*_head_changes(before, after)]
    old_parts = {_id(part): part for part in parts(before)}
    new_parts = {_id(part): part for part in parts(after)}
    moved = _moved(before, after)
    for identity, part in new_parts.items():
        was = old_parts.get(identity)
        if was is None:
            changes.append(Change("added", identity, part.pointer, None, _own(part), part.kind))
            continue
        if _own(was) != _own(part):
            changes.append(Change("changed", identity, part.pointer, _own(was), _own(part), part.kind))
        if identity in moved:
            changes.append(Change("moved", identity, part.pointer, was.pointer, part.pointer, part.kind))
    removed = (part for identity, part in old_parts.items() if identity not in new_parts)
    return [*changes, *(Change("removed", _id(part), part.pointer, _own(part), None, part.kind) for part in removed)]


def _prepared(definition: Mapping[str, Any] | None) -> dict[str, Any]:
    copy: dict[str, Any] = json.loads(json.dumps(dict(definition or {})))
    give_ids(copy)
    return copy


def _head_changes(before: dict[str, Any], after: dict[str, Any]) -> Iterator[Change]:
    for word in _HEAD:
        old, new = before.get(word), after.get(word)
        if old != new:
            kind: Literal["added", "removed", "changed"]
            kind = "added" if word not in before else "removed" if word not in after else "changed"
            yield Change(kind, "", f"/{word}", old, new)


def _id(part: Part) -> str:
    return str(part.value["id"])


def _own(part: Part) -> dict[str, Any]:
    """A part without the parts in it; of a group, its mode."""
    own = {key: value for key, value in part.value.items() if key not in _CHILDREN[part.kind]}
    if part.kind == "group":
        own["mode"] = next(mode for mode in GROUP_MODES if mode in part.value)
    return own


def _moved(before: dict[str, Any], after: dict[str, Any]) -> set[str]:
    """The ids of parts that both have and that lie in another list, or in another order among those that stayed."""
    old, new = _lists(before), _lists(after)
    was_in = {identity: name for name, members in old.items() for identity in members}
    moved: set[str] = set()
    for name, members in new.items():
        known = [identity for identity in members if identity in was_in]
        stayed = [identity for identity in known if was_in[identity] == name]
        kept = _longest_rising([old[name].index(identity) for identity in stayed])
        moved |= set(known) - {stayed[index] for index in kept}
    return moved


def _lists(definition: dict[str, Any]) -> dict[str, list[str]]:
    """The ids in each list of parts; a list is named by the id of the part that holds it and by its word."""
    lists: dict[str, list[str]] = {}
    holders: dict[str, str] = {}
    for part in parts(definition):
        holders[part.pointer] = _id(part)
        lists.setdefault(_container(part.pointer, holders), []).append(_id(part))
    return lists


def _container(pointer: str, holders: Mapping[str, str]) -> str:
    head = pointer.rpartition("/")[0] if pointer[-1:].isdigit() else pointer
    around = head
    while around == pointer or (around and around not in holders):
        around = around.rpartition("/")[0]
    return f"{holders.get(around, '')}{head[len(around) :]}"


def _longest_rising(numbers: list[int]) -> list[int]:
    """The indexes of a longest rising choice of numbers: what need not move when a list is put in another order."""
    best: list[list[int]] = []
    for index, number in enumerate(numbers):
        before = [chain for chain in best if numbers[chain[-1]] < number]
        best.append([*max(before, key=len, default=[]), index])
    return max(best, key=len, default=[])
