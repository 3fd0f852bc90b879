"""Lets the rules that are tried out stand for a tenant's, in this context only and never in a cache."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

_rules: ContextVar[Any] = ContextVar("automation_rules_apart", default=None)


def rules_apart() -> Any:
    """The `TenantRules` that hold here whatever the lane's number says; None outside a trial."""
    return _rules.get()


@contextmanager
def apart(rules: Any) -> Iterator[None]:
    """Inside, these are the rules."""
    token = _rules.set(rules)
    try:
        yield
    finally:
        _rules.reset(token)
