"""Creates the tables of the tenancy; the database itself keeps groups inside their tenant and audit entries unchanged."""

import django.db.models.deletion
import django.db.models.functions.datetime
from django.conf import settings
from django.db import migrations, models

import tenants.validators
from tenants.constraints import composite_foreign_key

AUDIT_IS_APPEND_ONLY = """
CREATE FUNCTION tenants_auditentry_is_append_only() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'An audit entry is never changed.' USING ERRCODE = 'restrict_violation';
END $$;
CREATE TRIGGER tenants_auditentry_append_only BEFORE UPDATE ON tenants_auditentry
    FOR EACH ROW EXECUTE FUNCTION tenants_auditentry_is_append_only();
"""
AUDIT_MAY_CHANGE = """
DROP TRIGGER tenants_auditentry_append_only ON tenants_auditentry;
DROP FUNCTION tenants_auditentry_is_append_only();
"""


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="Group",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("name", models.CharField(max_length=120, verbose_name="name")),
            ],
            options={
                "verbose_name": "group",
                "verbose_name_plural": "groups",
                "ordering": ["name", "id"],
            },
        ),
        migrations.CreateModel(
            name="Tenant",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("name", models.CharField(max_length=120, verbose_name="name")),
                (
                    "slug",
                    models.SlugField(
                        help_text="Its part of the address: /t/<slug>/", max_length=60, unique=True, verbose_name="slug"
                    ),
                ),
                (
                    "time_zone",
                    models.CharField(
                        default="UTC",
                        max_length=60,
                        validators=[tenants.validators.validate_time_zone],
                        verbose_name="time zone",
                    ),
                ),
                (
                    "language",
                    models.CharField(
                        default="en",
                        max_length=10,
                        validators=[tenants.validators.validate_language],
                        verbose_name="language",
                    ),
                ),
                ("closed_at", models.DateTimeField(blank=True, null=True, verbose_name="closed at")),
                (
                    "created_at",
                    models.DateTimeField(
                        db_default=django.db.models.functions.datetime.Now(), editable=False, verbose_name="created at"
                    ),
                ),
            ],
            options={
                "verbose_name": "tenant",
                "verbose_name_plural": "tenants",
                "ordering": ["name", "id"],
            },
        ),
        migrations.CreateModel(
            name="Membership",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "role",
                    models.CharField(
                        choices=[
                            ("viewer", "Viewer"),
                            ("agent", "Agent"),
                            ("editor", "Editor"),
                            ("publisher", "Publisher"),
                            ("admin", "Admin"),
                        ],
                        default="agent",
                        max_length=10,
                        verbose_name="role",
                    ),
                ),
                (
                    "is_away",
                    models.BooleanField(
                        default=False, help_text="Gets no new work while away.", verbose_name="is away"
                    ),
                ),
                (
                    "is_active",
                    models.BooleanField(
                        default=True,
                        help_text="Someone who left is not deleted, but made inactive.",
                        verbose_name="is active",
                    ),
                ),
                (
                    "language",
                    models.CharField(
                        blank=True,
                        default="",
                        max_length=10,
                        validators=[tenants.validators.validate_language],
                        verbose_name="language",
                    ),
                ),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                        verbose_name="user",
                    ),
                ),
                (
                    "tenant",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="tenants.tenant",
                    ),
                ),
            ],
            options={
                "verbose_name": "member",
                "verbose_name_plural": "members",
                "ordering": ["id"],
            },
        ),
        migrations.CreateModel(
            name="GroupMember",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "group",
                    models.ForeignKey(
                        db_constraint=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="links",
                        to="tenants.group",
                        verbose_name="group",
                    ),
                ),
                (
                    "member",
                    models.ForeignKey(
                        db_constraint=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="links",
                        to="tenants.membership",
                        verbose_name="member",
                    ),
                ),
                (
                    "tenant",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="tenants.tenant",
                    ),
                ),
            ],
            options={
                "verbose_name": "member of a group",
                "verbose_name_plural": "members of a group",
                "ordering": ["id"],
            },
        ),
        migrations.AddField(
            model_name="group",
            name="members",
            field=models.ManyToManyField(
                related_name="groups", through="tenants.GroupMember", to="tenants.membership", verbose_name="members"
            ),
        ),
        migrations.AddField(
            model_name="group",
            name="tenant",
            field=models.ForeignKey(
                db_index=False,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="+",
                to="tenants.tenant",
            ),
        ),
        migrations.CreateModel(
            name="AuditEntry",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), verbose_name="at")),
                ("actor_name", models.CharField(blank=True, default="", max_length=300, verbose_name="who")),
                ("verb", models.CharField(max_length=60, verbose_name="verb")),
                ("target", models.CharField(max_length=120, verbose_name="target")),
                ("reason", models.TextField(blank=True, default="", verbose_name="reason")),
                ("before", models.JSONField(null=True, verbose_name="before")),
                ("after", models.JSONField(null=True, verbose_name="after")),
                (
                    "actor",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "tenant",
                    models.ForeignKey(
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="tenants.tenant",
                        verbose_name="tenant",
                    ),
                ),
            ],
            options={
                "verbose_name": "audit entry",
                "verbose_name_plural": "audit entries",
                "ordering": ["-id"],
            },
        ),
        migrations.AddConstraint(
            model_name="membership",
            constraint=models.UniqueConstraint(fields=("tenant", "user"), name="tenants_membership_tenant_and_user"),
        ),
        migrations.AddConstraint(
            model_name="membership",
            constraint=models.UniqueConstraint(fields=("tenant", "id"), name="tenants_membership_tenant_and_id"),
        ),
        migrations.AddConstraint(
            model_name="membership",
            constraint=models.CheckConstraint(
                condition=models.Q(("role__in", ["viewer", "agent", "editor", "publisher", "admin"])),
                name="tenants_membership_role",
            ),
        ),
        migrations.AddConstraint(
            model_name="groupmember",
            constraint=models.UniqueConstraint(fields=("tenant", "group", "member"), name="tenants_groupmember_once"),
        ),
        migrations.AddConstraint(
            model_name="group",
            constraint=models.UniqueConstraint(fields=("tenant", "name"), name="tenants_group_tenant_and_name"),
        ),
        migrations.AddConstraint(
            model_name="group",
            constraint=models.UniqueConstraint(fields=("tenant", "id"), name="tenants_group_tenant_and_id"),
        ),
        migrations.AddIndex(
            model_name="auditentry",
            index=models.Index(fields=["tenant", "target", "id"], name="tenants_audit_target"),
        ),
        composite_foreign_key("tenants_groupmember", "group_id", "tenants_group"),
        composite_foreign_key("tenants_groupmember", "member_id", "tenants_membership"),
        migrations.RunSQL(AUDIT_IS_APPEND_ONLY, AUDIT_MAY_CHANGE),
    ]
