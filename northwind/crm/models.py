"""Companies, leads, and notes about them."""

from typing import ClassVar

from django.db import models
from django.db.models import Q
from django.db.models.functions import Lower, Now
from django.utils.translation import gettext_lazy as _

from automation.extend import Watched
from northwind.tags import TagsField
from tenants.models import Membership


class Source(models.TextChoices):
    """Where a lead came from."""

    FACEBOOK = "facebook", _("Facebook")
    WEB = "web", _("Web form")
    REFERRAL = "referral", _("Referral")
    IMPORT = "import", _("Import")


class LeadStatus(models.TextChoices):
    """How far a lead has come."""

    NEW = "new", _("New")
    CONTACTED = "contacted", _("Contacted")
    QUALIFIED = "qualified", _("Qualified")
    LOST = "lost", _("Lost")
    WON = "won", _("Won")


OPEN_STATUSES = [LeadStatus.NEW.value, LeadStatus.CONTACTED.value, LeadStatus.QUALIFIED.value]


class Company(Watched):
    """A business that may buy from us."""

    name = models.CharField(_("name"), max_length=120)
    size = models.PositiveIntegerField(_("employees"), null=True, blank=True)
    industry = models.CharField(_("industry"), max_length=80, blank=True, default="")
    created_at = models.DateTimeField(_("created at"), db_default=Now(), editable=False)

    class Meta:
        ordering = ["name", "id"]
        verbose_name = _("company")
        verbose_name_plural = _("companies")
        constraints = [
            models.UniqueConstraint(fields=["tenant", "id"], name="crm_company_tenant_and_id"),
            models.UniqueConstraint(fields=["tenant", "name"], name="crm_company_tenant_and_name"),
        ]

    def __str__(self) -> str:
        return self.name


class Lead(Watched):
    """Somebody who may become a customer."""

    OPEN: ClassVar[Q] = Q(status__in=OPEN_STATUSES)  # what counts as somebody's load
    # Moved by the database itself, whoever writes (see the migration).
    KEPT_BY_DATABASE: ClassVar[frozenset[str]] = frozenset({"assigned_at", "updated_at"})

    name = models.CharField(_("name"), max_length=120)
    email = models.EmailField(_("e-mail"), blank=True, default="")
    phone = models.CharField(_("phone"), max_length=40, blank=True, default="")
    # The constraints of these links are composite, in the migration: they include the tenant.
    company = models.ForeignKey(
        Company,
        on_delete=models.SET_NULL,
        related_name="leads",
        null=True,
        blank=True,
        db_constraint=False,
        db_index=False,
        verbose_name=_("company"),
    )
    source = models.CharField(_("source"), max_length=10, choices=Source.choices, default=Source.WEB)
    status = models.CharField(_("status"), max_length=10, choices=LeadStatus.choices, default=LeadStatus.NEW)
    assignee = models.ForeignKey(
        Membership,
        on_delete=models.SET_NULL,
        related_name="leads",
        null=True,
        blank=True,
        db_constraint=False,
        db_index=False,
        verbose_name=_("assignee"),
    )
    tags = TagsField(verbose_name=_("tags"))
    value = models.DecimalField(_("value"), max_digits=12, decimal_places=2, null=True, blank=True)
    email_opt_out = models.BooleanField(_("wants no mail"), default=False)
    last_contacted_at = models.DateTimeField(_("last contacted"), null=True, blank=True)
    assigned_at = models.DateTimeField(_("last assigned"), null=True, blank=True, editable=False)
    created_at = models.DateTimeField(_("created at"), db_default=Now(), editable=False)
    updated_at = models.DateTimeField(_("updated at"), db_default=Now(), editable=False)

    class Meta:
        ordering = ["-id"]
        verbose_name = _("lead")
        verbose_name_plural = _("leads")
        constraints = [
            models.UniqueConstraint(fields=["tenant", "id"], name="crm_lead_tenant_and_id"),
            models.CheckConstraint(condition=Q(source__in=Source.values), name="crm_lead_source"),
            models.CheckConstraint(condition=Q(status__in=LeadStatus.values), name="crm_lead_status"),
        ]
        indexes = [
            models.Index(fields=["tenant", "status", "id"], name="crm_lead_by_status"),
            models.Index(fields=["tenant", "company", "id"], name="crm_lead_of_company"),
            models.Index(fields=["tenant", "assignee", "status"], name="crm_lead_of_assignee"),
            models.Index("tenant", Lower("email"), name="crm_lead_by_email", condition=~Q(email="")),
        ]

    def __str__(self) -> str:
        return self.name


class LeadNote(Watched):
    """What was noted about a lead; a part of the lead."""

    lead = models.ForeignKey(
        Lead,
        on_delete=models.CASCADE,
        related_name="notes",
        db_constraint=False,
        db_index=False,
        verbose_name=_("lead"),
    )
    author = models.ForeignKey(
        Membership,
        on_delete=models.SET_NULL,
        related_name="lead_notes",
        null=True,
        blank=True,
        db_constraint=False,
        db_index=False,
        verbose_name=_("author"),
    )
    author_name = models.CharField(_("author's name"), max_length=120, blank=True, default="")
    body = models.TextField(_("text"))
    created_at = models.DateTimeField(_("created at"), db_default=Now(), editable=False)

    class Meta:
        ordering = ["id"]
        verbose_name = _("note")
        verbose_name_plural = _("notes")
        constraints = [models.UniqueConstraint(fields=["tenant", "id"], name="crm_leadnote_tenant_and_id")]
        indexes = [
            models.Index(fields=["tenant", "lead", "id"], name="crm_leadnote_of_lead"),
            models.Index(fields=["tenant", "author"], name="crm_leadnote_of_author"),
        ]

    def __str__(self) -> str:
        return self.body[:60]
