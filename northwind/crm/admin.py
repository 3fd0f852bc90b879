"""The CRM's records, for the installation's staff."""

from django.contrib import admin

from northwind.crm.models import Company, Lead, LeadNote
from northwind.staff import PartInline, RecordAdmin


@admin.register(Company)
class CompanyAdmin(RecordAdmin):
    """A business that may buy from us."""

    list_display = ("name", "tenant", "size", "industry")
    list_filter = ("tenant",)
    search_fields = ("name",)
    readonly_fields = ("created_at",)
    fields = ("tenant", "name", "size", "industry", "created_at")


class LeadNoteInline(PartInline):
    """What was noted about a lead."""

    model = LeadNote
    fields = ("author", "author_name", "body", "created_at")
    readonly_fields = ("created_at",)
    autocomplete_fields = ("author",)


@admin.register(Lead)
class LeadAdmin(RecordAdmin):
    """Somebody who may become a customer."""

    list_display = ("name", "tenant", "company", "source", "status", "assignee", "value")
    list_filter = ("tenant", "source", "status")
    list_select_related = ("tenant", "company", "assignee__user")
    search_fields = ("name", "email")
    readonly_fields = ("assigned_at", "created_at", "updated_at")
    autocomplete_fields = ("company", "assignee")
    own_fields = ("name", "email", "phone", "source", "status", "tags", "value", "email_opt_out")
    fields = ("tenant", *own_fields, "last_contacted_at", "company", "assignee", *readonly_fields)
    inlines = (LeadNoteInline,)
