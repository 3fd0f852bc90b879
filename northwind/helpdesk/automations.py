"""What rules may watch, read and change in the help desk."""

from automation.extend import NoteTarget, automatable
from northwind.helpdesk.choices import CATEGORIES
from northwind.helpdesk.models import Comment, Customer, Task, Ticket

automatable(
    Customer,
    watch=["name", "email", "phone", "plan", "language", "company_size", "email_opt_out"],
    read=["created_at"],
    change=["plan", "language", "company_size", "email_opt_out"],
    name_field="name",
    personal=["name", "email", "phone"],
)

automatable(
    Ticket,
    watch=[
        "subject",
        "description",
        "status",
        "priority",
        "channel",
        "customer",
        "assignee",
        "group",
        "followers",
        "tags",
        "comments",
    ],
    read=[
        "status_category",
        "created_at",
        "last_activity_at",
        "assigned_at",
        "customer.name",
        "customer.email",
        "customer.phone",
        "customer.plan",
        "customer.language",
        "customer.company_size",
        "customer.email_opt_out",
        "group.name",
    ],
    change=["subject", "status", "priority", "assignee", "group", "tags"],
    note=NoteTarget(Comment, record="ticket", text="body", defaults={"is_public": False, "is_automatic": True}),
    name_field="subject",
    follows={"status_category": ("status", CATEGORIES)},
)

automatable(
    Task,
    watch=["title", "ticket", "assignee", "due_on", "is_done"],
    read=["created_at", "ticket.subject", "ticket.status", "ticket.priority"],
    change=["title", "ticket", "assignee", "due_on", "is_done"],
    name_field="title",
)
