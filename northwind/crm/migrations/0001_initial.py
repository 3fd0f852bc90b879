"""Creates the tables of the CRM."""

import django.db.models.deletion
import django.db.models.functions.datetime
import django.db.models.manager
from django.db import migrations, models

import northwind.tags


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        ("tenants", "0001_initial"),
    ]

    operations = [
        migrations.CreateModel(
            name="Company",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("name", models.CharField(max_length=120, verbose_name="name")),
                ("size", models.PositiveIntegerField(blank=True, null=True, verbose_name="employees")),
                ("industry", models.CharField(blank=True, default="", max_length=80, verbose_name="industry")),
                (
                    "created_at",
                    models.DateTimeField(
                        db_default=django.db.models.functions.datetime.Now(), editable=False, verbose_name="created at"
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
                "verbose_name": "company",
                "verbose_name_plural": "companies",
                "ordering": ["name", "id"],
            },
            managers=[
                ("objects", django.db.models.manager.Manager()),
                ("_every", django.db.models.manager.Manager()),
            ],
        ),
        migrations.CreateModel(
            name="Lead",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("name", models.CharField(max_length=120, verbose_name="name")),
                ("email", models.EmailField(blank=True, default="", max_length=254, verbose_name="e-mail")),
                ("phone", models.CharField(blank=True, default="", max_length=40, verbose_name="phone")),
                (
                    "source",
                    models.CharField(
                        choices=[
                            ("facebook", "Facebook"),
                            ("web", "Web form"),
                            ("referral", "Referral"),
                            ("import", "Import"),
                        ],
                        default="web",
                        max_length=10,
                        verbose_name="source",
                    ),
                ),
                (
                    "status",
                    models.CharField(
                        choices=[
                            ("new", "New"),
                            ("contacted", "Contacted"),
                            ("qualified", "Qualified"),
                            ("lost", "Lost"),
                            ("won", "Won"),
                        ],
                        default="new",
                        max_length=10,
                        verbose_name="status",
                    ),
                ),
                (
                    "tags",
                    northwind.tags.TagsField(
                        base_field=models.CharField(max_length=40),
                        blank=True,
                        default=list,
                        size=None,
                        verbose_name="tags",
                    ),
                ),
                (
                    "value",
                    models.DecimalField(blank=True, decimal_places=2, max_digits=12, null=True, verbose_name="value"),
                ),
                ("email_opt_out", models.BooleanField(default=False, verbose_name="wants no mail")),
                ("last_contacted_at", models.DateTimeField(blank=True, null=True, verbose_name="last contacted")),
                (
                    "assigned_at",
                    models.DateTimeField(blank=True, editable=False, null=True, verbose_name="last assigned"),
                ),
                (
                    "created_at",
                    models.DateTimeField(
                        db_default=django.db.models.functions.datetime.Now(), editable=False, verbose_name="created at"
                    ),
                ),
                (
                    "updated_at",
                    models.DateTimeField(
                        db_default=django.db.models.functions.datetime.Now(), editable=False, verbose_name="updated at"
                    ),
                ),
                (
                    "assignee",
                    models.ForeignKey(
                        blank=True,
                        db_constraint=False,
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="leads",
                        to="tenants.membership",
                        verbose_name="assignee",
                    ),
                ),
                (
                    "company",
                    models.ForeignKey(
                        blank=True,
                        db_constraint=False,
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="leads",
                        to="crm.company",
                        verbose_name="company",
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
                "verbose_name": "lead",
                "verbose_name_plural": "leads",
                "ordering": ["-id"],
            },
            managers=[
                ("objects", django.db.models.manager.Manager()),
                ("_every", django.db.models.manager.Manager()),
            ],
        ),
        migrations.CreateModel(
            name="LeadNote",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("author_name", models.CharField(blank=True, default="", max_length=120, verbose_name="author's name")),
                ("body", models.TextField(verbose_name="text")),
                (
                    "created_at",
                    models.DateTimeField(
                        db_default=django.db.models.functions.datetime.Now(), editable=False, verbose_name="created at"
                    ),
                ),
                (
                    "author",
                    models.ForeignKey(
                        blank=True,
                        db_constraint=False,
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="lead_notes",
                        to="tenants.membership",
                        verbose_name="author",
                    ),
                ),
                (
                    "lead",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="notes",
                        to="crm.lead",
                        verbose_name="lead",
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
                "verbose_name": "note",
                "verbose_name_plural": "notes",
                "ordering": ["id"],
            },
            managers=[
                ("objects", django.db.models.manager.Manager()),
                ("_every", django.db.models.manager.Manager()),
            ],
        ),
        migrations.AddConstraint(
            model_name="company",
            constraint=models.UniqueConstraint(fields=("tenant", "id"), name="crm_company_tenant_and_id"),
        ),
        migrations.AddConstraint(
            model_name="company",
            constraint=models.UniqueConstraint(fields=("tenant", "name"), name="crm_company_tenant_and_name"),
        ),
        migrations.AddIndex(
            model_name="lead",
            index=models.Index(fields=["tenant", "status", "id"], name="crm_lead_by_status"),
        ),
        migrations.AddIndex(
            model_name="lead",
            index=models.Index(fields=["tenant", "company", "id"], name="crm_lead_of_company"),
        ),
        migrations.AddIndex(
            model_name="lead",
            index=models.Index(fields=["tenant", "assignee", "status"], name="crm_lead_of_assignee"),
        ),
        migrations.AddConstraint(
            model_name="lead",
            constraint=models.UniqueConstraint(fields=("tenant", "id"), name="crm_lead_tenant_and_id"),
        ),
        migrations.AddConstraint(
            model_name="lead",
            constraint=models.CheckConstraint(
                condition=models.Q(("source__in", ["facebook", "web", "referral", "import"])), name="crm_lead_source"
            ),
        ),
        migrations.AddConstraint(
            model_name="lead",
            constraint=models.CheckConstraint(
                condition=models.Q(("status__in", ["new", "contacted", "qualified", "lost", "won"])),
                name="crm_lead_status",
            ),
        ),
        migrations.AddIndex(
            model_name="leadnote",
            index=models.Index(fields=["tenant", "lead", "id"], name="crm_leadnote_of_lead"),
        ),
        migrations.AddIndex(
            model_name="leadnote",
            index=models.Index(fields=["tenant", "author"], name="crm_leadnote_of_author"),
        ),
        migrations.AddConstraint(
            model_name="leadnote",
            constraint=models.UniqueConstraint(fields=("tenant", "id"), name="crm_leadnote_tenant_and_id"),
        ),
    ]
