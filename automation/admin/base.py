"""What the engine's admin pages share: read-only, bounded in what they load, acting only through verbs."""

import json
from collections.abc import Callable, Iterable, Sequence
from typing import Any, ClassVar, cast

from django.contrib import admin, messages
from django.contrib.admin import SimpleListFilter
from django.core.exceptions import ObjectDoesNotExist
from django.core.paginator import Paginator
from django.db.models import Model, QuerySet
from django.http import HttpRequest
from django.urls import reverse
from django.utils.functional import cached_property
from django.utils.html import format_html
from django.utils.http import urlencode
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from automation.core.errors import DefinitionError
from automation.core.facts import clean
from automation.engine.operate import Refused
from tenants.context import acting_for
from tenants.validators import row_number

COUNTED = 1000  # a list counts and pages so far; a filter narrows it
AT_ONCE = 200  # rows that one action may touch


class CappedPaginator(Paginator[Any]):
    """Counts up to `COUNTED` rows: the tables are too large to be counted for a page of fifty."""

    @cached_property
    def count(self) -> int:
        """How many rows there are, at most `COUNTED`."""
        return cast("QuerySet[Any]", self.object_list).order_by()[:COUNTED].count()


class NumberFilter(SimpleListFilter):
    """A filter whose number comes from the address, as links of other pages set it; there is nothing to choose from."""

    template = "admin/automation/number_filter.html"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        """Nothing to choose from: asking the table for its values would read all of it."""
        return []

    def has_output(self) -> bool:
        """Shown always, as a field to type into."""
        return True

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        """The rows of that number; none for what isn't one."""
        value = self.value()
        if not value:
            return queryset
        return queryset.filter(**{str(self.parameter_name): int(value)}) if is_number(value) else queryset.none()

    def choices(self, changelist: Any) -> Any:
        """What the field needs: its value, and the other filters that stay."""
        others = [(name, value) for name, value in changelist.params.items() if name != self.parameter_name]
        yield {"value": self.value() or "", "others": others}


def by_number(parameter: str, title: Any) -> type[NumberFilter]:
    """A filter by a number, such as a tenant's or a run's."""
    return type("ByNumber", (NumberFilter,), {"parameter_name": parameter, "title": title})


class TextFilter(NumberFilter):
    """A filter by the exact text of a column, such as the batch of an import."""

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        """The rows with that text."""
        value = self.value()
        return queryset.filter(**{str(self.parameter_name): clean(value)}) if value else queryset

    def choices(self, changelist: Any) -> Any:
        """What the field needs, and that it takes more than digits."""
        yield from ({**choice, "is_text": True} for choice in super().choices(changelist))


def by_text(parameter: str, title: Any) -> type[TextFilter]:
    """A filter by an exact text."""
    return type("ByText", (TextFilter,), {"parameter_name": parameter, "title": title})


def by_word(field: str, title: Any, words: Sequence[str]) -> type[SimpleListFilter]:
    """A filter by one of a fixed list of words, such as states: the table isn't asked which occur."""

    class ByWord(SimpleListFilter):
        parameter_name = field

        def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
            return [(word, word) for word in words]

        def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
            return queryset.filter(**{field: self.value()}) if self.value() in words else queryset

    ByWord.title = title
    return ByWord


BY_TENANT = by_number("tenant__id__exact", gettext_lazy("tenant (number)"))


class ReadOnlyAdmin(admin.ModelAdmin[Any]):
    """Rows that only the engine writes: staff look, by pages of fifty, newest first, and find by number.

    `found_by` names the columns whose number may be typed into the search, `heavy` those that lists leave out.
    """

    found_by: ClassVar[tuple[str, ...]] = ("id",)
    heavy: ClassVar[tuple[str, ...]] = ()
    paginator = CappedPaginator
    show_full_result_count = False
    list_per_page = 50
    list_max_show_all = 0
    sortable_by = ()
    ordering = ("-id",)
    search_fields = ("id",)
    search_help_text = gettext_lazy("A number. Lists count to 1,000: narrow them by tenant.")

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Nobody: the engine writes them."""
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Nobody."""
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Nobody."""
        return False

    def has_operate_permission(self, request: HttpRequest) -> bool:
        """Who may use the verbs: staff with the permission to change these rows."""
        return super().has_change_permission(request)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        """Leaves out of lists what makes rows large."""
        rows = super().get_queryset(request)
        match = request.resolver_match
        return rows if match is not None and match.kwargs.get("object_id") else rows.defer(*self.heavy)

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        """Rows of exactly that number, by an index; text is not searched for in large tables."""
        term = search_term.strip()
        if not term:
            return queryset, False
        if not is_number(term):
            return queryset.none(), False
        wanted = queryset.none()
        for column in self.found_by:
            wanted = wanted | queryset.filter(**{column: int(term)})
        return wanted, False


def act(request: HttpRequest, rows: Iterable[Any], verb: Callable[[int], object], *, done: str) -> None:
    """Does a verb to each row for its own tenant, and says what was done and what was refused; at most `AT_ONCE`.

    A verb that answers False has found that it was done already.
    """
    chosen = list(rows[: AT_ONCE + 1]) if isinstance(rows, QuerySet) else list(rows)
    if len(chosen) > AT_ONCE:
        messages.error(request, _("At most %d at once: choose fewer.") % AT_ONCE)
        return
    refused, needless = [], 0
    for row in chosen:
        with acting_for(row.tenant_id):
            try:
                needless += verb(row.pk) is False
            except (Refused, DefinitionError) as problem:
                refused.append(f"{row}: {problem}")
            except ObjectDoesNotExist:
                refused.append(_("%s: it is gone already.") % row)
    if len(chosen) > len(refused) + needless:
        messages.success(request, done % (len(chosen) - len(refused) - needless))
    if needless:
        messages.info(request, _("Done already, so nothing was changed: %d.") % needless)
    for text in refused:
        messages.error(request, text)


def is_number(text: str) -> bool:
    """Whether a text is a number that may be an id."""
    return row_number(text) is not None


def rows_link(model: type[Model], text: str, **where: Any) -> SafeString:
    """A link to the list of a model, narrowed."""
    address = reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_changelist")
    return format_html('<a href="{}?{}">{}</a>', address, urlencode(where), text)


def pretty(value: Any) -> SafeString:
    """JSON as people read it."""
    return format_html("<pre>{}</pre>", json.dumps(value, indent=2, ensure_ascii=False))
