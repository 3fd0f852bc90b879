"""What a file of leads may say."""

from collections.abc import Mapping

from django.utils.translation import gettext_lazy as _

from northwind.crm.models import Company, Lead
from northwind.imports.columns import Column, email, field, number, word
from northwind.imports.target import Target, members, named

LONGEST_NAME = 120


def _make_companies(rows: Mapping[str, Mapping[str, str]]) -> None:
    """New companies of those names."""
    Company.objects.bulk_create([Company(name=name) for name in rows if len(name) <= LONGEST_NAME])


LEADS = Target(
    kind="leads",
    model=Lead,
    columns=(
        Column("id", "id", number),
        field(Lead, "name"),
        field(Lead, "email"),
        field(Lead, "phone"),
        Column("company", "company_id", word, named(Company), _("There is no company of this name.")),
        field(Lead, "source"),
        field(Lead, "status"),
        Column("assignee", "assignee_id", email, members, _("There is no active member with this e-mail address.")),
        field(Lead, "tags"),
        field(Lead, "value"),
        field(Lead, "email_opt_out"),
        field(Lead, "last_contacted_at"),
        field(Lead, "created_at"),
    ),
    required=("name",),
    keys=("id", "email"),
    defaults={"source": "import"},
    make={"company": _make_companies},
)
