"""What a file of tickets may say."""

from collections.abc import Mapping

from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from django.utils.translation import gettext_lazy as _

from northwind.helpdesk.models import Customer, Ticket
from northwind.imports.columns import Column, email, field, number, word
from northwind.imports.target import Found, Target, by_lower, groups, members

LONGEST_NAME = 120


def _customers(words: set[str]) -> Found:
    return by_lower(Customer.objects.exclude(email="").order_by(), "email", words)


def _make_customers(rows: Mapping[str, Mapping[str, str]]) -> None:
    """New customers, named as the row says, else by their address."""
    made = [
        Customer(name=(row.get("customer_name") or address)[:LONGEST_NAME], email=address)
        for address, row in rows.items()
        if _is_address(address)
    ]
    Customer.objects.bulk_create(made)


def _is_address(text: str) -> bool:
    try:
        validate_email(text)
    except ValidationError:
        return False
    return len(text) <= (Customer._meta.get_field("email").max_length or 0)


TICKETS = Target(
    kind="tickets",
    model=Ticket,
    columns=(
        Column("id", "id", number),
        field(Ticket, "subject"),
        field(Ticket, "description"),
        field(Ticket, "status"),
        field(Ticket, "priority"),
        field(Ticket, "channel"),
        Column("customer", "customer_id", email, _customers, _("There is no customer with this e-mail address.")),
        Column("customer_name", "", field(Customer, "name").read),
        Column("assignee", "assignee_id", email, members, _("There is no active member with this e-mail address.")),
        Column("group", "group_id", word, groups, _("There is no group of this name.")),
        field(Ticket, "tags"),
        field(Ticket, "created_at"),
    ),
    required=("subject",),
    defaults={"channel": "import"},
    make={"customer": _make_customers},
)
