"""What a management command prints, for tests that read it as a person does."""

from io import StringIO
from typing import Any

from django.core.management import call_command


def told(command: str, *words: Any, **options: Any) -> str:
    """The output of a command; what it says beside it goes nowhere."""
    out = StringIO()
    call_command(command, *map(str, words), stdout=out, stderr=StringIO(), **options)
    return out.getvalue()
