"""The names and date formats that a template uses, held against what is known."""

from collections.abc import Iterator
from typing import Any

from liquid import RenderContext
from liquid.builtin.expressions import FilteredExpression, StringLiteral

from automation.core.errors import TemplateProblem
from automation.core.template_dates import unknown_tokens

_PROPERTIES = frozenset({"size", "first", "last"})


def used_names(template: Any, known: frozenset[str]) -> tuple[set[str], list[TemplateProblem]]:
    """The known names that a template uses, and a problem for every other name that isn't its own."""
    used: set[str] = set()
    problems: list[TemplateProblem] = []
    for variables in template.analyze(include_partials=False).globals.values():
        for variable in variables:
            name = _known_name(variable.segments, known)
            if name is not None:
                used.add(name)
            else:
                problems.append(_unknown(variable, known))
    return used, list(dict.fromkeys(problems))


def unknown_date_tokens(template: Any) -> Iterator[TemplateProblem]:
    """A problem for every unknown token in a written date format."""
    for expression in _filtered(template):
        for item in expression.filters or ():
            for argument in item.args if item.name == "date" else ():
                if isinstance(argument.value, StringLiteral):
                    yield from (
                        TemplateProblem("unknown_token", token) for token in unknown_tokens(argument.value.value)
                    )


def _known_name(segments: list[Any], known: frozenset[str]) -> str | None:
    """The known name that a path begins with, if what follows is an index or a property of lists and texts."""
    name = ""
    for count, segment in enumerate(segments, start=1):
        if not isinstance(segment, str):
            return None
        name = f"{name}.{segment}" if name else segment
        if name in known and _is_tail(segments[count:]):
            return name
        if f"{name}.*" in known and count < len(segments) and isinstance(segments[count], str):
            return f"{name}.{segments[count]}"
    return None


def _is_tail(segments: list[Any]) -> bool:
    return not segments or (len(segments) == 1 and (isinstance(segments[0], int) or segments[0] in _PROPERTIES))


def _unknown(variable: Any, known: frozenset[str]) -> TemplateProblem:
    name = str(variable)
    below = sorted(other for other in known if other.startswith(f"{name}."))
    if below:
        return TemplateProblem("several_values", name, below[0].replace(".*", ".…"))
    return TemplateProblem("unknown_name", name)


def _filtered(template: Any) -> Iterator[Any]:
    context = RenderContext(template)
    waiting = list(template.nodes)
    while waiting:
        node = waiting.pop()
        waiting.extend(node.children(context, include_partials=False))
        for expression in node.expressions():
            if isinstance(expression, FilteredExpression):
                yield expression
