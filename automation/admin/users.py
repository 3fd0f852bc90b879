"""The page of a user, who may own rules or be named by them: listed before he goes, followed afterwards."""

from collections.abc import Callable, Iterable
from typing import Any

from django.contrib import admin
from django.contrib.auth.admin import UserAdmin
from django.contrib.auth.models import User
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext as _

from automation.admin.references import say_off
from automation.engine.rules import after_leaving, owned_by
from automation.models import Rule
from tenants.context import acting_for
from tenants.models import Membership


class UserAutomationAdmin(UserAdmin[User]):
    """Whoever can't log in any more has left each tenant: rules that name him go off, his own are told of and go on."""

    def get_deleted_objects(self, objs: Any, request: HttpRequest) -> tuple[list[Any], Any, set[str], list[str]]:
        """Adds the rules that would be without an owner."""
        listed, counts, missing, protected = super().get_deleted_objects(objs, request)
        lines = [
            _("The rule “%(rule)s” would be without its owner.") % {"rule": rule.name}
            for user in objs
            for tenant_id in _tenants_of(user)
            for rule in _owned(tenant_id, user)
        ]
        return [*listed, *lines], counts, missing, protected

    def delete_model(self, request: HttpRequest, obj: Any) -> None:
        """Deletes, and tells the admins of his tenants which rules have no owner now."""
        self._delete(request, [obj], lambda: super(UserAutomationAdmin, self).delete_model(request, obj))

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[User]) -> None:
        """The same for many."""
        users = list(queryset)
        self._delete(request, users, lambda: super(UserAutomationAdmin, self).delete_queryset(request, queryset))

    def _delete(self, request: HttpRequest, users: list[User], delete: Callable[[], object]) -> None:
        tenants = {tenant_id for user in users for tenant_id in _tenants_of(user)}
        delete()
        _follow(request, tenants)

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        """Saves; for somebody who was made inactive, the rules of his tenants follow."""
        super().save_model(request, obj, form, change)
        if change and "is_active" in form.changed_data and not obj.is_active:
            _follow(request, _tenants_of(obj))


def _follow(request: HttpRequest, tenants: Iterable[int]) -> None:
    for rules in after_leaving(tenants).values():
        say_off(request, rules)


def _owned(tenant_id: int, user: User) -> list[Rule]:
    with acting_for(tenant_id):
        return owned_by(user.pk)


def _tenants_of(user: User) -> list[int]:
    """Where he belongs, or owns a rule; the admin sees all tenants."""
    belongs = Membership.objects.filter(user=user).values_list("tenant_id", flat=True)
    owns = Rule.objects.filter(owner=user, deleted_at=None).values_list("tenant_id", flat=True)
    return sorted({*belongs, *owns})


admin.site.unregister(User)
admin.site.register(User, UserAutomationAdmin)
