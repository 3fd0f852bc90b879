"""What the engine's commands are told and answer alike."""

import json
from argparse import ArgumentTypeError
from collections.abc import Callable, Iterable
from typing import Any

from django.core.management.base import CommandError, CommandParser, OutputWrapper
from django.core.serializers.json import DjangoJSONEncoder

from automation.core.values import MAX_DEPTH
from tenants.validators import row_number

MISUSED = 2  # the exit code for a command line that can't be read, argparse's own; 1 is for what is refused or failed


def misused(text: str) -> CommandError:
    """The error for a command line that makes no sense whatever the tenant has."""
    return CommandError(text, returncode=MISUSED)


def row(text: str) -> int:
    """The type of an argument that is the number of a run, a step, an event."""
    found = row_number(text)
    if found is None:
        raise ArgumentTypeError(f"{text!r} isn't the number of anything, as 12 may be")
    return found


def at_least(least: float, kind: type[int] | type[float] = int, *, most: float = 1e9) -> Callable[[str], float]:
    """The type of an argument that is a number of that kind, not smaller, and not larger than `most`."""

    def number(text: str) -> float:
        found = kind(text)
        if not found >= least:
            raise ArgumentTypeError(f"{text} is less than {least:g}")
        if found > most:
            raise ArgumentTypeError(f"{text} is more than {most:,.0f}")
        return found

    number.__name__ = "whole number" if kind is int else "number"
    return number


def add_tenant(parser: CommandParser, *, required: bool = True) -> None:
    """`--tenant SLUG`."""
    parser.add_argument("--tenant", metavar="SLUG", required=required, help="the tenant, by its part of the address")


def add_json(parser: CommandParser) -> None:
    """`--json`, for programs."""
    parser.add_argument("--json", action="store_true", help="answer as JSON, for programs")


def add_reason(parser: CommandParser) -> None:
    """`--reason TEXT`, for the audit."""
    parser.add_argument("--reason", metavar="TEXT", default="", help="kept in the audit")


def add_dry_run(parser: CommandParser) -> None:
    """`--dry-run`: says what would be done, and changes nothing."""
    parser.add_argument("--dry-run", action="store_true", help="only say what would be done; nothing is changed")


def add_rule(parser: CommandParser, text: str) -> None:
    """`--rule RULE`, by its number or name."""
    parser.add_argument("--rule", metavar="RULE", help=f"{text}, by its number or name")


def object_in(text: str, name: str, *, example: str) -> dict[str, Any]:
    """The JSON object that the argument `name` holds; an error that says what is wrong with it."""
    try:
        found = json.loads(text)
    except RecursionError as error:
        raise misused(f"{name} is nested more than {MAX_DEPTH} levels deep.") from error
    except ValueError as error:
        raise misused(f"{name} isn't JSON: {error}") from error
    if not isinstance(found, dict):
        raise misused(f"{name} is a JSON object, such as '{example}'.")
    return found


def write_json(out: OutputWrapper, value: Any) -> None:
    """A value as indented JSON."""
    out.write(json.dumps(value, indent=2, ensure_ascii=False, cls=DjangoJSONEncoder))


def write_table(out: OutputWrapper, head: Iterable[str], rows: Iterable[Iterable[Any]]) -> None:
    """Rows under their head, in columns as wide as what is in them; an empty table writes nothing."""
    table = [[str(cell) for cell in row] for row in rows]
    if not table:
        return
    table.insert(0, list(head))
    widths = [max(len(row[column]) for row in table) for column in range(len(table[0]))]
    for row in table:
        out.write("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
