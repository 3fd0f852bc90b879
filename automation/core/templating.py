"""Tenants' templates: checked when they are saved, rendered within hard limits over plain values."""

from collections.abc import Iterator, Mapping
from datetime import date, datetime
from decimal import Decimal
from functools import lru_cache
from typing import Any
from zoneinfo import ZoneInfo

from liquid import RenderContext
from liquid.exceptions import LiquidError
from liquid.output import LimitedStringIO
from liquid.utils import ReadOnlyChainMap

from automation.core.errors import TemplateError, TemplateProblem
from automation.core.template_environment import MAX_SOURCE, TARGETS, environment_for, finished
from automation.core.template_filters import FILTERS, MAX_ITEMS, MAX_TEXT, WORK
from automation.core.template_names import unknown_date_tokens, used_names

MAX_LEVELS = 10


def check(source: str, known_names: frozenset[str], *, target: str = "text") -> list[str]:
    """What is wrong with a template, in words: its syntax, its filters, names that aren't known. [] when nothing is.

    A known name that ends in ".*" stands for all names below it.
    """
    return [str(problem) for problem in check_names(source, known_names, target=target)[1]]


def check_names(
    source: str, known_names: frozenset[str], *, target: str = "text"
) -> tuple[set[str], list[TemplateProblem]]:
    """The known names that a template uses, and what is wrong with it."""
    try:
        template = _compiled(source, target)
    except TemplateError as error:
        return set(), [TemplateProblem("unreadable", str(error))]
    used, problems = used_names(template, known_names)
    return used, [*problems, *unknown_date_tokens(template), *_unknown_filters(template)]


def render(source: str, values: Mapping[str, Any], *, target: str = "text", zone: ZoneInfo) -> str:
    """The text of a template over plain values, escaped for its target: text, html, header, url or json.

    Dates are shown in `zone`. A name without a value renders empty, unless it is marked `| required`. TemplateError
    when the template can't be read, a required value is empty, or a limit is passed.
    """
    if "{" not in source and len(source) <= MAX_SOURCE:
        return finished(source, target)
    template = _compiled(source, target)
    context = RenderContext(template, globals=plain(values))
    context.scope = ReadOnlyChainMap(context.locals, context.globals)  # without the library's own `now` and `today`
    context.tag_namespace |= {"zone": zone, "work": [WORK]}
    buffer = LimitedStringIO(limit=MAX_TEXT)
    try:
        template.render_with_context(context, buffer)
    except (LiquidError, RecursionError, ArithmeticError, ValueError, TypeError, LookupError, AttributeError) as error:
        raise TemplateError(_words(error)) from error
    return finished(buffer.getvalue(), target)


def nested(snapshot: Mapping[str, Any]) -> dict[str, Any]:
    """Values by path as nested dicts: {"customer.plan": …} → {"customer": {"plan": …}}.

    A value whose path has paths below it is found under "id": "assignee" beside "assignee.name" becomes "assignee.id".
    """
    tree: dict[str, Any] = {}
    for path in sorted(snapshot, key=len, reverse=True):
        *way, last = path.split(".")
        branch = tree
        for part in way:
            branch = branch.setdefault(part, {})
        if isinstance(branch.get(last), dict):
            branch[last].setdefault("id", snapshot[path])
        else:
            branch[last] = snapshot[path]
    return tree


def plain(value: Any, *, levels: int = MAX_LEVELS) -> Any:
    """The value as dicts, lists, texts and numbers only, each within its limit; TemplateError for anything else."""
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, str):
        return str(value)[:MAX_TEXT]
    if isinstance(value, Decimal | datetime | date):
        return value.isoformat() if isinstance(value, date) else format(value, "f")
    if levels <= 0 or not isinstance(value, Mapping | list | tuple | set | frozenset):
        raise TemplateError(f"a template can't be given a {type(value).__name__}")
    if isinstance(value, Mapping):
        return {str(key): plain(item, levels=levels - 1) for key, item in value.items()}
    items = sorted(value) if isinstance(value, set | frozenset) else value
    return [plain(item, levels=levels - 1) for item in items[:MAX_ITEMS]]


@lru_cache(maxsize=256)
def _compiled(source: str, target: str) -> Any:
    if target not in TARGETS:
        raise TemplateError(f"there is no target {target!r}")
    if len(source) > MAX_SOURCE:
        raise TemplateError(f"a template has at most {MAX_SOURCE} characters")
    try:
        return environment_for(target, len(source)).from_string(source)
    except RecursionError:
        raise TemplateError("the template is nested too deeply") from None
    except (LiquidError, ValueError, TypeError, LookupError, AttributeError) as error:
        raise TemplateError(_words(error)) from error


def _unknown_filters(template: Any) -> Iterator[TemplateProblem]:
    for name in template.analyze(include_partials=False).filters:
        if name not in FILTERS:
            yield TemplateProblem("unknown_filter", name)


def _words(error: Exception) -> str:
    """The first line of an error, which says what and not where in our code; with the line of the template."""
    if isinstance(error, RecursionError) or isinstance(error.__cause__, RecursionError):
        return "the template is nested too deeply"
    text = str(error).partition("\n")[0]
    position = error.context() if isinstance(error, LiquidError) else None
    return f"{text} (line {position[0]})" if position else text
