"""Where this database lives, so that one that was restored elsewhere knows that it was."""

from django.db import models


class Installation(models.Model):
    """The one row that says in which server and database workers have seen these tables last."""

    place = models.CharField(max_length=80)
    since = models.DateTimeField()

    class Meta:
        constraints = [models.CheckConstraint(condition=models.Q(id=1), name="automation_installation_one")]

    def __str__(self) -> str:
        return self.place
