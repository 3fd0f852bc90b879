"""What can be wrong with a definition or a template, as values that name the place."""

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong in a document: a JSON pointer, a sentence for people, a code for programs."""

    pointer: str
    message: str
    code: str

    def __str__(self) -> str:
        return f"{self.pointer or '/'}: {self.message}"


class DefinitionError(ValueError):
    """A definition that can't be used; `problems` lists everything that is wrong, in document order."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = list(problems)
        super().__init__("; ".join(str(problem) for problem in self.problems))


@dataclass(frozen=True, slots=True)
class TemplateProblem:
    """One thing that is wrong with a template: a code, and the name, token or library's words that it is about.

    Codes: unknown_name, several_values (with one of them as `hint`), unknown_filter, unknown_token, unreadable.
    """

    code: str
    detail: str
    hint: str = ""

    def __str__(self) -> str:
        return _TEMPLATE_WORDS[self.code].format(self)


_TEMPLATE_WORDS = {
    "unknown_name": "there is no value called {0.detail!r}",
    "several_values": "{0.detail!r} has several values; write one of them, such as {0.hint}",
    "unknown_filter": "there is no filter {0.detail!r}",
    "unknown_token": "{0.detail} is not a token of date formats",
    "unreadable": "{0.detail}",
}


class TemplateError(ValueError):
    """A template that can't be read, or whose rendering broke a limit; the text is fit for people."""
