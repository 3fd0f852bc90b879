"""What the log says of requests that were refused."""

import logging

import pytest
from django.core.exceptions import PermissionDenied

from northwind.logs import one_line_for_refusals


def entry(name: str, **about: object) -> logging.LogRecord:
    fault = PermissionDenied("no")
    record = logging.LogRecord(name, logging.WARNING, __file__, 1, "said", (), (type(fault), fault, None))
    record.__dict__.update(about)
    return record


@pytest.mark.parametrize(
    ("name", "about"),
    [
        ("django.request", {"status_code": 403}),
        ("django.request", {"status_code": 404}),
        ("django.security.RequestDataTooBig", {"status_code": 413}),
    ],
)
def test_a_refused_request_is_one_line(name, about):
    record = entry(name, **about)
    assert one_line_for_refusals(record)
    assert record.exc_info is None


@pytest.mark.parametrize(("name", "about"), [("django.request", {"status_code": 500}), ("automation.engine", {})])
def test_a_fault_of_ours_keeps_its_traceback(name, about):
    record = entry(name, **about)
    assert one_line_for_refusals(record)
    assert record.exc_info
