"""What an admin page of something that rules name has to say: which rules use it, and that they are off afterwards."""

from collections.abc import Sequence
from typing import Any

from django.contrib import admin, messages
from django.http import HttpRequest
from django.utils.translation import gettext as _

from automation.engine.rules import after_leaving
from automation.engine.usages import Gone, Usage, usages
from automation.models import Rule
from tenants.context import acting_for


def say_off(request: HttpRequest, rules: Sequence[Rule]) -> None:
    """Names the rules that were switched off."""
    for rule in rules:
        messages.warning(request, _("The rule “%(rule)s” was switched off.") % {"rule": rule.name})


class NamedByRules(admin.ModelAdmin[Any]):
    """Lists the rules that use a row before it is deleted, and switches them off once it is gone.

    `named_as` is the word for the kind of row ("connections", "groups", "members"), `named_by` what rules call it by.
    """

    named_as: str
    named_by: str

    def get_deleted_objects(self, objs: Any, request: HttpRequest) -> tuple[list[Any], Any, set[str], list[str]]:
        """Adds to what will be deleted the rules that will be switched off, and drafts and runs that use it."""
        listed, counts, missing, protected = super().get_deleted_objects(objs, request)
        return [*listed, *(usage.sentence() for usage in self.losers(objs))], counts, missing, protected

    def losers(self, rows: Any) -> list[Usage]:
        """Where rules use any of these rows; one look at each tenant's rules."""
        names: dict[int, list[Any]] = {}
        for row in rows:
            names.setdefault(row.tenant_id, []).append(getattr(row, self.named_by))
        found: list[Usage] = []
        for tenant_id, gone in names.items():
            with acting_for(tenant_id):
                found += usages(Gone(**{self.named_as: gone}))
        return found

    def after_change(self, request: HttpRequest, tenant_id: int) -> None:
        """Switches off what is broken now, and says so; tells the tenant's admins which rules lost their owner."""
        say_off(request, after_leaving([tenant_id])[tenant_id])


class ReferencedAdmin(NamedByRules):
    """To be mixed in before the page's own class: its changes and deletions are followed by the rules."""

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        """Saves; a new name, or somebody who left, may leave rules without what they name."""
        super().save_model(request, obj, form, change)
        if change:
            self.after_change(request, obj.tenant_id)

    def delete_model(self, request: HttpRequest, obj: Any) -> None:
        """Deletes, then switches off the rules that named it."""
        super().delete_model(request, obj)
        self.after_change(request, obj.tenant_id)
