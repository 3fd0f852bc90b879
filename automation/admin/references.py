"""What an admin page of something that rules name has to say: which rules lose it, and that they are off afterwards."""

from collections.abc import Sequence
from typing import Any

from django.contrib import admin, messages
from django.http import HttpRequest
from django.utils.translation import gettext as _

from automation.engine.references import rules_that_lose, switch_off_broken, tell_owners_gone
from automation.models import Rule
from tenants.context import acting_for


class NamedByRules(admin.ModelAdmin[Any]):
    """Lists the rules that use a row before it is deleted, and switches them off once it is gone.

    `named_as` is the word for the kind of row ("connections", "groups", "members"), `named_by` what rules call it by.
    """

    named_as: str
    named_by: str

    def get_deleted_objects(self, objs: Any, request: HttpRequest) -> tuple[list[Any], Any, set[str], list[str]]:
        """Adds to what will be deleted the rules that will be switched off."""
        listed, counts, missing, protected = super().get_deleted_objects(objs, request)
        lines = [
            _("The rule “%(rule)s” uses it and will be switched off.") % {"rule": rule.name}
            for row in objs
            for rule in self.losers(row)
        ]
        return [*listed, *lines], counts, missing, protected

    def losers(self, row: Any) -> list[Rule]:
        """The rules that are on and name the row."""
        with acting_for(row.tenant_id):
            return rules_that_lose(**{self.named_as: [getattr(row, self.named_by)]})

    def after_change(self, request: HttpRequest, tenant_id: int) -> None:
        """Switches off what is broken now, and says so; tells the tenant's admins which rules lost their owner."""
        with acting_for(tenant_id):
            self.say_off(request, switch_off_broken())
            tell_owners_gone()

    def say_off(self, request: HttpRequest, rules: Sequence[Rule]) -> None:
        """Names the rules that were switched off."""
        for rule in rules:
            messages.warning(request, _("The rule “%(rule)s” was switched off.") % {"rule": rule.name})


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
