"""Creates the tables of the help desk."""

import django.db.models.deletion
import django.db.models.functions.datetime
import django.db.models.functions.text
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
            name="Customer",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("name", models.CharField(max_length=120, verbose_name="name")),
                ("email", models.EmailField(blank=True, default="", max_length=254, verbose_name="e-mail")),
                ("phone", models.CharField(blank=True, default="", max_length=40, verbose_name="phone")),
                (
                    "plan",
                    models.CharField(
                        choices=[("free", "Free"), ("silver", "Silver"), ("gold", "Gold")],
                        default="free",
                        max_length=10,
                        verbose_name="plan",
                    ),
                ),
                ("language", models.CharField(blank=True, default="", max_length=10, verbose_name="language")),
                ("company_size", models.PositiveIntegerField(blank=True, null=True, verbose_name="company size")),
                ("email_opt_out", models.BooleanField(default=False, verbose_name="wants no mail")),
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
                "verbose_name": "customer",
                "verbose_name_plural": "customers",
                "ordering": ["name", "id"],
            },
            managers=[
                ("objects", django.db.models.manager.Manager()),
                ("_every", django.db.models.manager.Manager()),
            ],
        ),
        migrations.CreateModel(
            name="Ticket",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("subject", models.CharField(max_length=200, verbose_name="subject")),
                ("description", models.TextField(blank=True, default="", verbose_name="description")),
                (
                    "status",
                    models.CharField(
                        choices=[
                            ("new", "New"),
                            ("open", "Open"),
                            ("pending", "Pending"),
                            ("on_hold", "On hold"),
                            ("solved", "Solved"),
                            ("closed", "Closed"),
                        ],
                        default="new",
                        max_length=10,
                        verbose_name="status",
                    ),
                ),
                (
                    "status_category",
                    models.GeneratedField(
                        db_persist=True,
                        expression=models.Case(
                            models.When(status__in=["new", "open"], then=models.Value("open")),
                            models.When(status__in=["pending", "on_hold"], then=models.Value("paused")),
                            default=models.Value("closed"),
                        ),
                        output_field=models.CharField(
                            choices=[("open", "Open"), ("paused", "Paused"), ("closed", "Closed")], max_length=10
                        ),
                        verbose_name="status category",
                    ),
                ),
                (
                    "priority",
                    models.CharField(
                        choices=[("low", "Low"), ("normal", "Normal"), ("high", "High"), ("urgent", "Urgent")],
                        default="normal",
                        max_length=10,
                        verbose_name="priority",
                    ),
                ),
                (
                    "channel",
                    models.CharField(
                        choices=[
                            ("email", "E-mail"),
                            ("web", "Web form"),
                            ("phone", "Phone"),
                            ("chat", "Chat"),
                            ("api", "API"),
                            ("import", "Import"),
                        ],
                        default="web",
                        max_length=10,
                        verbose_name="channel",
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
                    "last_activity_at",
                    models.DateTimeField(
                        db_default=django.db.models.functions.datetime.Now(),
                        editable=False,
                        verbose_name="last activity",
                    ),
                ),
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
                        related_name="tickets",
                        to="tenants.membership",
                        verbose_name="assignee",
                    ),
                ),
                (
                    "customer",
                    models.ForeignKey(
                        blank=True,
                        db_constraint=False,
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="tickets",
                        to="helpdesk.customer",
                        verbose_name="customer",
                    ),
                ),
                (
                    "group",
                    models.ForeignKey(
                        blank=True,
                        db_constraint=False,
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="tickets",
                        to="tenants.group",
                        verbose_name="group",
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
                "verbose_name": "ticket",
                "verbose_name_plural": "tickets",
                "ordering": ["-id"],
            },
            managers=[
                ("objects", django.db.models.manager.Manager()),
                ("_every", django.db.models.manager.Manager()),
            ],
        ),
        migrations.CreateModel(
            name="Task",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("title", models.CharField(max_length=200, verbose_name="title")),
                ("due_on", models.DateField(blank=True, null=True, verbose_name="due on")),
                ("is_done", models.BooleanField(default=False, verbose_name="done")),
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
                    "assignee",
                    models.ForeignKey(
                        blank=True,
                        db_constraint=False,
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="tasks",
                        to="tenants.membership",
                        verbose_name="assignee",
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
                (
                    "ticket",
                    models.ForeignKey(
                        blank=True,
                        db_constraint=False,
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="tasks",
                        to="helpdesk.ticket",
                        verbose_name="ticket",
                    ),
                ),
            ],
            options={
                "verbose_name": "task",
                "verbose_name_plural": "tasks",
                "ordering": ["-id"],
            },
            managers=[
                ("objects", django.db.models.manager.Manager()),
                ("_every", django.db.models.manager.Manager()),
            ],
        ),
        migrations.CreateModel(
            name="Comment",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("author_name", models.CharField(blank=True, default="", max_length=120, verbose_name="author's name")),
                ("body", models.TextField(verbose_name="text")),
                ("is_public", models.BooleanField(default=True, verbose_name="the customer sees it")),
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
                        related_name="comments",
                        to="tenants.membership",
                        verbose_name="author",
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
                (
                    "ticket",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="comments",
                        to="helpdesk.ticket",
                        verbose_name="ticket",
                    ),
                ),
            ],
            options={
                "verbose_name": "comment",
                "verbose_name_plural": "comments",
                "ordering": ["id"],
            },
            managers=[
                ("objects", django.db.models.manager.Manager()),
                ("_every", django.db.models.manager.Manager()),
            ],
        ),
        migrations.CreateModel(
            name="TicketFollower",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "member",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="follower_links",
                        to="tenants.membership",
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
                (
                    "ticket",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="follower_links",
                        to="helpdesk.ticket",
                    ),
                ),
            ],
            options={
                "verbose_name": "follower",
                "verbose_name_plural": "followers",
                "ordering": ["id"],
            },
            managers=[
                ("objects", django.db.models.manager.Manager()),
                ("_every", django.db.models.manager.Manager()),
            ],
        ),
        migrations.AddField(
            model_name="ticket",
            name="followers",
            field=models.ManyToManyField(
                blank=True,
                related_name="followed_tickets",
                through="helpdesk.TicketFollower",
                to="tenants.membership",
                verbose_name="followers",
            ),
        ),
        migrations.AddIndex(
            model_name="customer",
            index=models.Index(fields=["tenant", "name", "id"], name="helpdesk_customer_name"),
        ),
        migrations.AddConstraint(
            model_name="customer",
            constraint=models.UniqueConstraint(fields=("tenant", "id"), name="helpdesk_customer_tenant_and_id"),
        ),
        migrations.AddConstraint(
            model_name="customer",
            constraint=models.UniqueConstraint(
                models.F("tenant"),
                django.db.models.functions.text.Lower("email"),
                condition=models.Q(("email", ""), _negated=True),
                name="helpdesk_customer_tenant_and_email",
            ),
        ),
        migrations.AddConstraint(
            model_name="customer",
            constraint=models.CheckConstraint(
                condition=models.Q(("plan__in", ["free", "silver", "gold"])), name="helpdesk_customer_plan"
            ),
        ),
        migrations.AddIndex(
            model_name="task",
            index=models.Index(fields=["tenant", "ticket", "id"], name="helpdesk_task_of_ticket"),
        ),
        migrations.AddIndex(
            model_name="task",
            index=models.Index(fields=["tenant", "assignee", "is_done"], name="helpdesk_task_of_assignee"),
        ),
        migrations.AddConstraint(
            model_name="task",
            constraint=models.UniqueConstraint(fields=("tenant", "id"), name="helpdesk_task_tenant_and_id"),
        ),
        migrations.AddIndex(
            model_name="comment",
            index=models.Index(fields=["tenant", "ticket", "id"], name="helpdesk_comment_of_ticket"),
        ),
        migrations.AddIndex(
            model_name="comment",
            index=models.Index(fields=["tenant", "author"], name="helpdesk_comment_of_author"),
        ),
        migrations.AddConstraint(
            model_name="comment",
            constraint=models.UniqueConstraint(fields=("tenant", "id"), name="helpdesk_comment_tenant_and_id"),
        ),
        migrations.AddIndex(
            model_name="ticketfollower",
            index=models.Index(fields=["tenant", "member"], name="helpdesk_ticketfollower_member"),
        ),
        migrations.AddConstraint(
            model_name="ticketfollower",
            constraint=models.UniqueConstraint(
                fields=("tenant", "ticket", "member"), name="helpdesk_ticketfollower_once"
            ),
        ),
        migrations.AddIndex(
            model_name="ticket",
            index=models.Index(fields=["tenant", "status", "id"], name="helpdesk_ticket_by_status"),
        ),
        migrations.AddIndex(
            model_name="ticket",
            index=models.Index(fields=["tenant", "customer", "id"], name="helpdesk_ticket_of_customer"),
        ),
        migrations.AddIndex(
            model_name="ticket",
            index=models.Index(fields=["tenant", "assignee", "status_category"], name="helpdesk_ticket_of_assignee"),
        ),
        migrations.AddIndex(
            model_name="ticket",
            index=models.Index(fields=["tenant", "group", "id"], name="helpdesk_ticket_of_group"),
        ),
        migrations.AddIndex(
            model_name="ticket",
            index=models.Index(fields=["tenant", "last_activity_at"], name="helpdesk_ticket_quiet"),
        ),
        migrations.AddConstraint(
            model_name="ticket",
            constraint=models.UniqueConstraint(fields=("tenant", "id"), name="helpdesk_ticket_tenant_and_id"),
        ),
        migrations.AddConstraint(
            model_name="ticket",
            constraint=models.CheckConstraint(
                condition=models.Q(("status__in", ["new", "open", "pending", "on_hold", "solved", "closed"])),
                name="helpdesk_ticket_status",
            ),
        ),
        migrations.AddConstraint(
            model_name="ticket",
            constraint=models.CheckConstraint(
                condition=models.Q(("priority__in", ["low", "normal", "high", "urgent"])),
                name="helpdesk_ticket_priority",
            ),
        ),
        migrations.AddConstraint(
            model_name="ticket",
            constraint=models.CheckConstraint(
                condition=models.Q(("channel__in", ["email", "web", "phone", "chat", "api", "import"])),
                name="helpdesk_ticket_channel",
            ),
        ),
    ]
