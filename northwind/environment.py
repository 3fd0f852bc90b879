"""Reads the environment's variables as their types, and names the one that can't be read so."""

from collections.abc import Mapping
from typing import Any

import environ
from django.core.exceptions import ImproperlyConfigured

KINDS: Mapping[Any, str] = {int: "a whole number", float: "a number"}


class Environment(environ.Env):  # type: ignore[misc]
    """The variables of the environment; one of another type than asked for is named with what it has to be."""

    def get_value(
        self, var: str, cast: Any = None, default: Any = environ.Env.NOTSET, parse_default: bool = False
    ) -> Any:
        """The variable's value; ImproperlyConfigured where it is missing without a default, or of another type."""
        try:
            return super().get_value(var, cast=cast, default=default, parse_default=parse_default)
        except ValueError as error:
            kind = KINDS.get(cast, "another value")
            raise ImproperlyConfigured(f"{var} has to be {kind}, not {self.ENVIRON.get(var)!r}.") from error
