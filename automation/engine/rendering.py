"""Bounds the time that templates take while a record is locked and the worker does nothing else."""

import time
from collections.abc import Callable
from typing import TypeVar

from automation.core.errors import TemplateError
from automation.engine.local import RecordInHand

LONGEST = 1.0  # seconds of processor time in one transaction; a usual template takes 50 microseconds

T = TypeVar("T")


def in_time(record: RecordInHand, fill: Callable[[], T]) -> T:
    """What `fill` makes of a step's templates; TemplateError once those before it have used up the time of all."""
    if record.rendering > LONGEST:
        raise TemplateError("the templates for this record take too long")
    started = time.thread_time()
    try:
        return fill()
    finally:
        record.rendering += time.thread_time() - started
