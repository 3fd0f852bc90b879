"""What rules may watch, read and change in the CRM."""

from automation.extend import NoteTarget, automatable
from northwind.crm.models import Company, Lead, LeadNote

automatable(
    Company,
    watch=["name", "size", "industry"],
    read=["created_at"],
    change=["size", "industry"],
    name_field="name",
)

automatable(
    Lead,
    watch=[
        "name",
        "email",
        "phone",
        "company",
        "source",
        "status",
        "assignee",
        "tags",
        "value",
        "email_opt_out",
        "last_contacted_at",
        "notes",
    ],
    read=["created_at", "assigned_at", "company.name", "company.size", "company.industry"],
    change=["status", "assignee", "tags", "value", "email_opt_out", "last_contacted_at"],
    note=NoteTarget(LeadNote, record="lead", text="body"),
    name_field="name",
    personal=["name", "email", "phone"],
)
