"""Writes logs as lines for people or as JSON, each with the id of the request that it belongs to."""

import logging
import re
import uuid
from collections.abc import Callable
from typing import Any

import structlog
from django.http import HttpRequest
from django.http.response import HttpResponseBase

HEADER = "X-Request-ID"
GIVEN_ID = re.compile(r"[A-Za-z0-9._-]{8,64}")

SHARED: list[structlog.typing.Processor] = [
    structlog.contextvars.merge_contextvars,
    structlog.stdlib.add_log_level,
    structlog.stdlib.add_logger_name,
    structlog.processors.TimeStamper(fmt="iso"),
    structlog.stdlib.ExtraAdder(),
]


def logging_settings(*, as_json: bool, level: str) -> dict[str, Any]:
    """Return Django's LOGGING: everything goes to stderr, one line an entry."""
    renderers: list[structlog.typing.Processor] = (
        [structlog.processors.format_exc_info, structlog.processors.JSONRenderer()]
        if as_json
        else [structlog.dev.ConsoleRenderer(colors=False, exception_formatter=structlog.dev.plain_traceback)]
    )
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {
            "line": {
                "()": structlog.stdlib.ProcessorFormatter,
                "foreign_pre_chain": SHARED,
                "processors": [structlog.stdlib.ProcessorFormatter.remove_processors_meta, *renderers],
            }
        },
        "filters": {"one_line": {"()": lambda: one_line_for_refusals}},
        "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "line", "filters": ["one_line"]}},
        "root": {"handlers": ["stderr"], "level": level},
        # Its own handlers would say everything twice.
        "loggers": {"django": {"handlers": [], "propagate": True, "level": level}},
    }


def one_line_for_refusals(record: logging.LogRecord) -> bool:
    """Drop the traceback of a request that was refused: it is the caller's fault, and the line says all of it."""
    refused = getattr(record, "status_code", 500) < 500 and record.name.startswith("django.")
    if refused or record.name.startswith("django.security."):
        record.exc_info = record.exc_text = None
    return True


def configure() -> None:
    """Let structlog write through the standard library, so that both kinds of entries look the same."""
    structlog.configure(
        processors=[*SHARED[:-1], structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=True,
    )


class RequestIdMiddleware:
    """Binds an id to all that is logged while a request is answered, and sends it back.

    A proxy's own id is kept where it looks like one; anything else would let a caller write into the log.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        """Answer with the id bound."""
        given = request.headers.get(HEADER, "")
        request_id = given if GIVEN_ID.fullmatch(given) else uuid.uuid4().hex
        with structlog.contextvars.bound_contextvars(request_id=request_id):
            response = self.get_response(request)
        response.headers[HEADER] = request_id
        return response
