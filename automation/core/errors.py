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


class TemplateError(ValueError):
    """A template that can't be read, or whose rendering broke a limit; the text is fit for people."""
