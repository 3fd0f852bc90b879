"""Answers what Django refuses by a bare text or by nothing with a page in the product's words."""

from collections.abc import Callable

from django.conf import settings
from django.core.exceptions import RequestDataTooBig
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import render

from automation.web.texts import LARGEST

WITH_A_DEFINITION = "automation:rule_draft"


class NotThisWayMiddleware:
    """Shows a page with a way back where an address is there but isn't to be opened like this."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        """Fill an empty answer of status 405; it keeps its header that says what is allowed."""
        response = self.get_response(request)
        if response.status_code == 405 and isinstance(response, HttpResponse) and not response.content:
            page = render(request, "405.html", status=405)
            page.headers["Allow"] = response.headers.get("Allow", "")
            return page
        return response


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    """The page for a request that can't be read; one that is too large is told how large it may be, with status 413."""
    if not isinstance(exception, RequestDataTooBig):
        return render(request, "400.html", status=400)
    match = request.resolver_match
    characters = LARGEST if match is not None and match.view_name == WITH_A_DEFINITION else None
    shown = {"largest": settings.DATA_UPLOAD_MAX_MEMORY_SIZE, "characters": characters}
    return render(request, "400.html", shown, status=413)
