"""Tenants, their people and groups, and the audit, for the installation's staff."""

from typing import Any

from django.contrib import admin
from django.http import HttpRequest

from tenants.audited import AuditedAdmin, OwnedInline
from tenants.models import AuditEntry, Group, GroupMember, Membership, Tenant


@admin.register(Tenant)
class TenantAdmin(AuditedAdmin):
    """A tenant is closed, never deleted here: its rows go with retention."""

    list_display = ("name", "slug", "time_zone", "language", "created_at", "closed_at")
    list_filter = ("language",)
    search_fields = ("name", "slug")
    readonly_fields = ("created_at",)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Nobody."""
        return False

    def tenant_of(self, row: Any) -> int | None:
        """Return the tenant's own audit."""
        return int(row.pk)


@admin.register(Membership)
class MembershipAdmin(AuditedAdmin):
    """Who belongs to which tenant, as what; someone who left is made inactive."""

    list_display = ("user", "tenant", "role", "is_away", "is_active")
    list_filter = ("tenant", "role", "is_active")
    list_select_related = ("user", "tenant")
    search_fields = ("user__username", "user__first_name", "user__last_name", "user__email")
    autocomplete_fields = ("user",)
    fields = ("tenant", "user", "role", "is_away", "is_active", "language")


class GroupMemberInline(OwnedInline):
    """The people of a group."""

    model = GroupMember
    autocomplete_fields = ("member",)


@admin.register(Group)
class GroupAdmin(AuditedAdmin):
    """A group and its people, all of one tenant."""

    list_display = ("name", "tenant")
    list_filter = ("tenant",)
    list_select_related = ("tenant",)
    search_fields = ("name",)
    fields = ("tenant", "name")
    inlines = (GroupMemberInline,)


@admin.register(AuditEntry)
class AuditEntryAdmin(admin.ModelAdmin[AuditEntry]):
    """Read only."""

    list_display = ("at", "tenant", "actor_name", "verb", "target", "reason")
    list_filter = ("tenant", "verb")
    list_select_related = ("tenant",)
    search_fields = ("actor_name", "target", "reason")
    date_hierarchy = "at"
    fields = ("at", "tenant", "actor_name", "verb", "target", "reason", "before", "after")

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Nobody: entries are written by what people do."""
        return False

    def has_change_permission(self, request: HttpRequest, obj: AuditEntry | None = None) -> bool:
        """Nobody."""
        return False

    def has_delete_permission(self, request: HttpRequest, obj: AuditEntry | None = None) -> bool:
        """Nobody."""
        return False
