"""Customers, their tickets, what is said about them, and tasks."""

from typing import ClassVar

from django.db import models
from django.db.models import Case, Q, Value, When
from django.db.models.functions import Lower, Now
from django.utils.translation import gettext_lazy as _

from automation.extend import Watched
from northwind.helpdesk.choices import CATEGORIES, Channel, Plan, Priority, Status, StatusCategory, statuses_of
from northwind.tags import TagsField
from tenants.models import Group, Membership


class Customer(Watched):
    """Who asks for help."""

    KEPT_BY_DATABASE: ClassVar[frozenset[str]] = frozenset({"updated_at"})

    name = models.CharField(_("name"), max_length=120)
    email = models.EmailField(_("e-mail"), blank=True, default="")
    phone = models.CharField(_("phone"), max_length=40, blank=True, default="")
    plan = models.CharField(_("plan"), max_length=10, choices=Plan.choices, default=Plan.FREE)
    language = models.CharField(_("language"), max_length=10, blank=True, default="")
    company_size = models.PositiveIntegerField(_("company size"), null=True, blank=True)
    email_opt_out = models.BooleanField(_("wants no mail"), default=False)
    created_at = models.DateTimeField(_("created at"), db_default=Now(), editable=False)
    updated_at = models.DateTimeField(_("updated at"), db_default=Now(), editable=False)

    class Meta:
        ordering = ["name", "id"]
        verbose_name = _("customer")
        verbose_name_plural = _("customers")
        constraints = [
            models.UniqueConstraint(fields=["tenant", "id"], name="helpdesk_customer_tenant_and_id"),
            models.UniqueConstraint(
                "tenant", Lower("email"), condition=~Q(email=""), name="helpdesk_customer_tenant_and_email"
            ),
            models.CheckConstraint(condition=Q(plan__in=Plan.values), name="helpdesk_customer_plan"),
        ]
        indexes = [models.Index(fields=["tenant", "name", "id"], name="helpdesk_customer_name")]

    def __str__(self) -> str:
        return self.name


class Ticket(Watched):
    """What a customer wants, and how far we are with it."""

    OPEN: ClassVar[Q] = Q(status_category=StatusCategory.OPEN)  # what counts as somebody's load
    # Moved by the database itself, whoever writes: a comment, a new assignee, a real change (see the migration).
    KEPT_BY_DATABASE: ClassVar[frozenset[str]] = frozenset({"last_activity_at", "assigned_at", "updated_at"})

    subject = models.CharField(_("subject"), max_length=200)
    description = models.TextField(_("description"), blank=True, default="")
    status = models.CharField(_("status"), max_length=10, choices=Status.choices, default=Status.NEW)
    status_category = models.GeneratedField(
        verbose_name=_("status category"),
        expression=Case(
            When(status__in=statuses_of(StatusCategory.OPEN), then=Value(StatusCategory.OPEN.value)),
            When(status__in=statuses_of(StatusCategory.PAUSED), then=Value(StatusCategory.PAUSED.value)),
            default=Value(StatusCategory.CLOSED.value),
        ),
        output_field=models.CharField(max_length=10, choices=StatusCategory.choices),
        db_persist=True,
    )
    priority = models.CharField(_("priority"), max_length=10, choices=Priority.choices, default=Priority.NORMAL)
    channel = models.CharField(_("channel"), max_length=10, choices=Channel.choices, default=Channel.WEB)
    # The constraints of these links are composite, in the migration: they include the tenant.
    customer = models.ForeignKey(
        Customer,
        on_delete=models.PROTECT,
        related_name="tickets",
        null=True,
        blank=True,
        db_constraint=False,
        db_index=False,
        verbose_name=_("customer"),
    )
    assignee = models.ForeignKey(
        Membership,
        on_delete=models.SET_NULL,
        related_name="tickets",
        null=True,
        blank=True,
        db_constraint=False,
        db_index=False,
        verbose_name=_("assignee"),
    )
    group = models.ForeignKey(
        Group,
        on_delete=models.SET_NULL,
        related_name="tickets",
        null=True,
        blank=True,
        db_constraint=False,
        db_index=False,
        verbose_name=_("group"),
    )
    followers = models.ManyToManyField(
        Membership,
        through="TicketFollower",
        related_name="followed_tickets",
        blank=True,
        verbose_name=_("followers"),
    )
    tags = TagsField(verbose_name=_("tags"))
    last_activity_at = models.DateTimeField(_("last activity"), db_default=Now(), editable=False)
    assigned_at = models.DateTimeField(_("last assigned"), null=True, blank=True, editable=False)
    created_at = models.DateTimeField(_("created at"), db_default=Now(), editable=False)
    updated_at = models.DateTimeField(_("updated at"), db_default=Now(), editable=False)

    class Meta:
        ordering = ["-id"]
        verbose_name = _("ticket")
        verbose_name_plural = _("tickets")
        constraints = [
            models.UniqueConstraint(fields=["tenant", "id"], name="helpdesk_ticket_tenant_and_id"),
            models.CheckConstraint(condition=Q(status__in=Status.values), name="helpdesk_ticket_status"),
            models.CheckConstraint(condition=Q(priority__in=Priority.values), name="helpdesk_ticket_priority"),
            models.CheckConstraint(condition=Q(channel__in=Channel.values), name="helpdesk_ticket_channel"),
        ]
        indexes = [
            models.Index(fields=["tenant", "status", "id"], name="helpdesk_ticket_by_status"),
            models.Index(fields=["tenant", "customer", "id"], name="helpdesk_ticket_of_customer"),
            models.Index(fields=["tenant", "assignee", "status_category"], name="helpdesk_ticket_of_assignee"),
            models.Index(fields=["tenant", "group", "id"], name="helpdesk_ticket_of_group"),
            models.Index(fields=["tenant", "last_activity_at"], name="helpdesk_ticket_quiet"),
        ]

    def __str__(self) -> str:
        return self.subject

    @property
    def category(self) -> StatusCategory:
        """What the instance's status means; `status_category` is what the database held when it was read."""
        return CATEGORIES[self.status]


class TicketFollower(Watched):
    """A member who is told about a ticket; a part of the ticket."""

    ticket = models.ForeignKey(
        Ticket, on_delete=models.CASCADE, related_name="follower_links", db_constraint=False, db_index=False
    )
    member = models.ForeignKey(
        Membership, on_delete=models.CASCADE, related_name="follower_links", db_constraint=False, db_index=False
    )

    class Meta:
        ordering = ["id"]
        verbose_name = _("follower")
        verbose_name_plural = _("followers")
        constraints = [
            models.UniqueConstraint(fields=["tenant", "ticket", "member"], name="helpdesk_ticketfollower_once")
        ]
        indexes = [models.Index(fields=["tenant", "member"], name="helpdesk_ticketfollower_member")]

    def __str__(self) -> str:
        return f"{self.ticket_id}: {self.member_id}"


class Comment(Watched):
    """What was said about a ticket, to the customer or among ourselves; a part of the ticket."""

    ticket = models.ForeignKey(
        Ticket,
        on_delete=models.CASCADE,
        related_name="comments",
        db_constraint=False,
        db_index=False,
        verbose_name=_("ticket"),
    )
    author = models.ForeignKey(
        Membership,
        on_delete=models.SET_NULL,
        related_name="comments",
        null=True,
        blank=True,
        db_constraint=False,
        db_index=False,
        verbose_name=_("author"),
    )
    # Who wrote it, where no member did: the customer, a rule.
    author_name = models.CharField(_("author's name"), max_length=120, blank=True, default="")
    body = models.TextField(_("text"))
    is_public = models.BooleanField(_("the customer sees it"), default=True)
    # A rule's note: nobody has done anything, so the ticket's last activity stays (see the migration).
    is_automatic = models.BooleanField(_("written by a rule"), default=False, db_default=False, editable=False)
    created_at = models.DateTimeField(_("created at"), db_default=Now(), editable=False)

    class Meta:
        ordering = ["id"]
        verbose_name = _("comment")
        verbose_name_plural = _("comments")
        constraints = [models.UniqueConstraint(fields=["tenant", "id"], name="helpdesk_comment_tenant_and_id")]
        indexes = [
            models.Index(fields=["tenant", "ticket", "id"], name="helpdesk_comment_of_ticket"),
            models.Index(fields=["tenant", "author"], name="helpdesk_comment_of_author"),
        ]

    def __str__(self) -> str:
        return self.body[:60]


class Task(Watched):
    """Something to do, for a ticket or by itself."""

    OPEN: ClassVar[Q] = Q(is_done=False)  # what counts as somebody's load
    KEPT_BY_DATABASE: ClassVar[frozenset[str]] = frozenset({"assigned_at"})

    title = models.CharField(_("title"), max_length=200)
    ticket = models.ForeignKey(
        Ticket,
        on_delete=models.CASCADE,
        related_name="tasks",
        null=True,
        blank=True,
        db_constraint=False,
        db_index=False,
        verbose_name=_("ticket"),
    )
    assignee = models.ForeignKey(
        Membership,
        on_delete=models.SET_NULL,
        related_name="tasks",
        null=True,
        blank=True,
        db_constraint=False,
        db_index=False,
        verbose_name=_("assignee"),
    )
    due_on = models.DateField(_("due on"), null=True, blank=True)
    is_done = models.BooleanField(_("done"), default=False)
    assigned_at = models.DateTimeField(_("last assigned"), null=True, blank=True, editable=False)
    created_at = models.DateTimeField(_("created at"), db_default=Now(), editable=False)

    class Meta:
        ordering = ["-id"]
        verbose_name = _("task")
        verbose_name_plural = _("tasks")
        constraints = [models.UniqueConstraint(fields=["tenant", "id"], name="helpdesk_task_tenant_and_id")]
        indexes = [
            models.Index(fields=["tenant", "ticket", "id"], name="helpdesk_task_of_ticket"),
            models.Index(fields=["tenant", "assignee", "is_done"], name="helpdesk_task_of_assignee"),
        ]

    def __str__(self) -> str:
        return self.title
