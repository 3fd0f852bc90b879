"""Models of tests of conditions as queries, with every type of field; their tables are made by the tests."""

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.test.utils import isolate_apps

from automation.catalog.automatable import Automatable
from automation.catalog.fields import build_fields

with isolate_apps("automation"):

    class Firm(models.Model):
        """What a case points to."""

        name = models.TextField(blank=True)
        plan = models.CharField(max_length=10, choices=[("gold", "Gold"), ("Gold", "Old gold"), ("free", "Free")])
        size = models.IntegerField(null=True)

        class Meta:
            app_label = "automation"
            db_table = "test_firm"

    class Person(models.Model):
        """Who may follow a case."""

        class Meta:
            app_label = "automation"
            db_table = "test_person"

    class Case(models.Model):
        """What the conditions are about."""

        title = models.CharField(max_length=200, null=True)  # noqa: DJ001 - NULL and "" are told apart here on purpose
        other = models.TextField(null=True)  # noqa: DJ001
        kind = models.CharField(max_length=10, null=True, choices=[("a", "A"), ("A", "Big a"), ("b", "B")])  # noqa: DJ001
        count = models.IntegerField(null=True)
        amount = models.DecimalField(max_digits=12, decimal_places=3, null=True)
        flag = models.BooleanField(null=True)
        day = models.DateField(null=True)
        moment = models.DateTimeField(null=True)
        later = models.DateTimeField(null=True)
        tags = ArrayField(models.TextField(), null=True)
        short_tags = ArrayField(models.CharField(max_length=20), null=True)
        firm = models.ForeignKey(Firm, null=True, on_delete=models.PROTECT)
        followers = models.ManyToManyField(Person, db_table="test_case_follower")

        class Meta:
            app_label = "automation"
            db_table = "test_case"

    class Remark(models.Model):
        """What is counted."""

        case = models.ForeignKey(Case, related_name="remarks", on_delete=models.CASCADE)

        class Meta:
            app_label = "automation"
            db_table = "test_remark"


MODELS = (Firm, Person, Case, Remark)
OWN = (
    *("title", "other", "kind", "count", "amount", "flag", "day", "moment", "later"),
    *("tags", "short_tags", "firm", "followers", "remarks"),
)
FIELDS, WRONG = build_fields(Case, watch=OWN, read=("firm.name", "firm.plan", "firm.size"), change=("title",))
CASE = Automatable(name="automation.case", model=Case, label_text="case", fields=FIELDS)
