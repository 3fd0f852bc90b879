"""Tenants, their people and groups, and the record of what people did."""

from collections.abc import Collection
from typing import Any
from zoneinfo import ZoneInfo

from django.conf import settings
from django.core.exceptions import ValidationError
from django.db import models
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy as _

from tenants.context import tenant_filter
from tenants.managers import TenantManager, give_owner
from tenants.roles import Role, includes
from tenants.validators import validate_language, validate_time_zone


class Tenant(models.Model):
    """A customer of the installation; everything else belongs to exactly one."""

    name = models.CharField(_("name"), max_length=120)
    slug = models.SlugField(
        _("slug"), max_length=60, unique=True, help_text=_("Its part of the address: “acme” for /t/acme/")
    )
    time_zone = models.CharField(_("time zone"), max_length=60, default="UTC", validators=[validate_time_zone])
    language = models.CharField(_("language"), max_length=10, default="en", validators=[validate_language])
    closed_at = models.DateTimeField(_("closed at"), null=True, blank=True)
    created_at = models.DateTimeField(_("created at"), db_default=Now(), editable=False)

    class Meta:
        ordering = ["name", "id"]
        verbose_name = _("tenant")
        verbose_name_plural = _("tenants")

    def __str__(self) -> str:
        return self.name

    @property
    def zone(self) -> ZoneInfo:
        """The zone in which its days begin and its times are shown."""
        return ZoneInfo(self.time_zone)

    @property
    def is_open(self) -> bool:
        """Whether its people may still work in it."""
        return self.closed_at is None


class TenantOwned(models.Model):
    """The base of every row that a tenant owns."""

    # No index of its own: each table has one that begins with the tenant.
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, related_name="+", db_index=False)

    objects = TenantManager()

    class Meta:
        abstract = True

    def save(self, *args: Any, **kwargs: Any) -> None:
        """Save for the tenant acted for; raise `NoTenantError` without one, `OtherTenantError` for another's row."""
        give_owner(self)
        super().save(*args, **kwargs)

    def delete(self, *args: Any, **kwargs: Any) -> tuple[int, dict[str, int]]:
        """Delete as usual; raise `OtherTenantError` for another tenant's row."""
        give_owner(self)
        return super().delete(*args, **kwargs)

    def clean(self) -> None:
        """Refuse a reference to another tenant's row."""
        super().clean()
        owner = self.tenant_id or tenant_filter()
        for field in self._meta.concrete_fields:
            target = getattr(self, field.name) if _is_owned(field) else None
            if target is not None and target.tenant_id != owner:
                message = _("“%(field)s” isn't of this tenant.")
                raise ValidationError(message, code="other_tenant", params={"field": field.verbose_name})

    def validate_constraints(self, exclude: Collection[str] | None = None) -> None:
        """Validate with the owner known, also where a form leaves it out, so that "unique in the tenant" is checked."""
        if self.tenant_id is None and (tenant_id := tenant_filter()) is not None:
            self.tenant_id = tenant_id
        left_out = set(exclude or ())
        super().validate_constraints(exclude=left_out if self.tenant_id is None else left_out - {"tenant"})


def _is_owned(field: models.Field[Any, Any]) -> bool:
    """Say whether a field refers to a row of a tenant."""
    return isinstance(field.related_model, type) and issubclass(field.related_model, TenantOwned)


class Membership(TenantOwned):
    """A person's place in a tenant."""

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+", verbose_name=_("user")
    )
    role = models.CharField(_("role"), max_length=10, choices=Role.choices, default=Role.AGENT)
    is_away = models.BooleanField(_("is away"), default=False, help_text=_("Gets no new work while away."))
    is_active = models.BooleanField(
        _("is active"), default=True, help_text=_("Someone who left is not deleted, but made inactive.")
    )
    language = models.CharField(_("language"), max_length=10, blank=True, default="", validators=[validate_language])

    class Meta:
        ordering = ["id"]
        verbose_name = _("member")
        verbose_name_plural = _("members")
        constraints = [
            models.UniqueConstraint(fields=["tenant", "user"], name="tenants_membership_tenant_and_user"),
            models.UniqueConstraint(fields=["tenant", "id"], name="tenants_membership_tenant_and_id"),
            models.CheckConstraint(condition=models.Q(role__in=Role.values), name="tenants_membership_role"),
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def name(self) -> str:
        """What others read: the full name, else the login. One query where the user isn't loaded."""
        return self.user.get_full_name() or self.user.get_username()

    def may(self, role: str) -> bool:
        """Say whether this member is active and has that role or a higher one; raise ValueError for an unknown role."""
        return self.is_active and includes(self.role, role)


class Group(TenantOwned):
    """People of a tenant that work is given to together."""

    name = models.CharField(_("name"), max_length=120)
    members = models.ManyToManyField(
        Membership, through="GroupMember", related_name="groups", verbose_name=_("members")
    )

    class Meta:
        ordering = ["name", "id"]
        verbose_name = _("group")
        verbose_name_plural = _("groups")
        constraints = [
            models.UniqueConstraint(fields=["tenant", "name"], name="tenants_group_tenant_and_name"),
            models.UniqueConstraint(fields=["tenant", "id"], name="tenants_group_tenant_and_id"),
        ]

    def __str__(self) -> str:
        return self.name


class GroupMember(TenantOwned):
    """One person in one group, both of the same tenant."""

    # The constraint is the composite one of the migration, which includes the tenant.
    group = models.ForeignKey(
        Group, on_delete=models.CASCADE, related_name="links", db_constraint=False, verbose_name=_("group")
    )
    member = models.ForeignKey(
        Membership, on_delete=models.CASCADE, related_name="links", db_constraint=False, verbose_name=_("member")
    )

    class Meta:
        ordering = ["id"]
        verbose_name = _("member of a group")
        verbose_name_plural = _("members of a group")
        constraints = [models.UniqueConstraint(fields=["tenant", "group", "member"], name="tenants_groupmember_once")]

    def __str__(self) -> str:
        return f"{self.group_id}: {self.member_id}"


class AuditEntry(models.Model):
    """Who did what to what, and why; written once and never changed (the database refuses it as well)."""

    # Without a tenant: what staff did to the installation itself.
    tenant = models.ForeignKey(
        Tenant, on_delete=models.PROTECT, related_name="+", null=True, db_index=False, verbose_name=_("tenant")
    )
    at = models.DateTimeField(_("at"), db_default=Now())
    # No constraint: the entry outlives the user, and keeps the name.
    actor = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.DO_NOTHING,
        related_name="+",
        null=True,
        db_constraint=False,
        db_index=False,
    )
    actor_name = models.CharField(_("who"), max_length=300, blank=True, default="")
    verb = models.CharField(_("verb"), max_length=60)
    target = models.CharField(_("target"), max_length=120)
    reason = models.TextField(_("reason"), blank=True, default="")
    before = models.JSONField(_("before"), null=True)
    after = models.JSONField(_("after"), null=True)

    objects = TenantManager()

    class Meta:
        ordering = ["-id"]
        verbose_name = _("audit entry")
        verbose_name_plural = _("audit entries")
        indexes = [models.Index(fields=["tenant", "target", "id"], name="tenants_audit_target")]

    def __str__(self) -> str:
        return f"{self.verb} {self.target}"

    def save(self, *args: Any, **kwargs: Any) -> None:
        """Write the entry; raise ValidationError for one that is already written."""
        if not self._state.adding:
            raise ValidationError(_("An audit entry can't be changed."), code="append_only")
        super().save(*args, **kwargs)

    def delete(self, *args: Any, **kwargs: Any) -> tuple[int, dict[str, int]]:
        """Raise ValidationError: entries go in bulk when their time to be kept is over, never one of them."""
        raise ValidationError(_("An audit entry can't be deleted."), code="append_only")
