"""The help desk's records, for the installation's staff."""

from typing import Any

from django.contrib import admin, messages
from django.db import transaction
from django.http import HttpRequest
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from northwind.helpdesk.choices import Status
from northwind.helpdesk.models import Comment, Customer, Task, Ticket, TicketFollower
from northwind.staff import PartInline, RecordAdmin
from tenants.audit import record


@admin.register(Customer)
class CustomerAdmin(RecordAdmin):
    """Who asks for help."""

    list_display = ("name", "tenant", "email", "plan", "company_size", "email_opt_out")
    list_filter = ("tenant", "plan", "email_opt_out")
    search_fields = ("name", "email")
    readonly_fields = ("created_at", "updated_at")
    own_fields = ("name", "email", "phone", "plan", "language", "company_size", "email_opt_out")
    fields = ("tenant", *own_fields, "created_at", "updated_at")


class CommentInline(PartInline):
    """What was said about a ticket."""

    model = Comment
    fields = ("author", "author_name", "body", "is_public", "created_at")
    readonly_fields = ("created_at",)
    autocomplete_fields = ("author",)


class FollowerInline(PartInline):
    """Who is told about a ticket."""

    model = TicketFollower
    fields = ("member",)
    autocomplete_fields = ("member",)


@admin.register(Ticket)
class TicketAdmin(RecordAdmin):
    """A ticket with what was said about it; whatever is saved together is one event."""

    list_display = ("subject", "tenant", "customer", "status", "priority", "assignee", "last_activity_at")
    list_filter = ("tenant", "status", "priority", "channel")
    list_select_related = ("tenant", "customer", "assignee__user")
    search_fields = ("subject",)
    readonly_fields = ("last_activity_at", "assigned_at", "created_at", "updated_at")
    autocomplete_fields = ("customer", "assignee", "group")
    own_fields = ("subject", "description", "status", "priority", "channel", "tags")
    fields = ("tenant", *own_fields, "customer", "assignee", "group", *readonly_fields)
    inlines = (FollowerInline, CommentInline)
    actions: Any = ("solve", "start_rule")

    @admin.action(description=gettext_lazy("Mark as solved"))
    def solve(self, request: HttpRequest, queryset: Any) -> None:
        """Set the status of all chosen tickets at once."""
        with transaction.atomic():
            open_ones = queryset.exclude(status__in=[Status.SOLVED, Status.CLOSED])
            chosen: dict[int, list[int]] = {}
            for tenant_id, pk in open_ones.values_list("tenant_id", "pk"):
                chosen.setdefault(tenant_id, []).append(pk)
            count = open_ones.update(status=Status.SOLVED)
            for tenant_id, ids in chosen.items():
                record("ticket.solved", "ticket", tenant_id=tenant_id, after={"status": "solved", "ids": ids})
        self.message_user(request, _("Marked as solved: %(count)s.") % {"count": count}, messages.SUCCESS)


@admin.register(Task)
class TaskAdmin(RecordAdmin):
    """Something to do."""

    list_display = ("title", "tenant", "ticket", "assignee", "due_on", "is_done")
    list_filter = ("tenant", "is_done")
    list_select_related = ("tenant", "ticket", "assignee__user")
    search_fields = ("title",)
    readonly_fields = ("assigned_at", "created_at")
    autocomplete_fields = ("ticket", "assignee")
    fields = ("tenant", "title", "due_on", "is_done", "ticket", "assignee", *readonly_fields)
