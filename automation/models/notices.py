"""What was told to whom, once."""

from django.db import models
from django.db.models import Value
from django.db.models.functions import Now

from automation.core.erasing import ERASED
from tenants.models import TenantOwned


class Notice(TenantOwned):
    """One message to people about one subject in one period, however many cases there were."""

    kind = models.CharField(max_length=20)  # dead_letter, rule_held, …
    subject = models.CharField(max_length=200)
    period = models.CharField(max_length=20)  # the hour or the day, in UTC
    cases = models.IntegerField(default=1)
    recipients = models.JSONField(default=list)  # e-mail addresses
    title = models.CharField(max_length=200, default="", blank=True)
    text = models.TextField(default="", blank=True)
    # {language: [title, text]} for those whom it goes to in another one than the tenant's.
    said = models.JSONField(default=dict, db_default=Value({}, models.JSONField()), blank=True)
    # {place in `recipients`: "sent", "refused", "given up", or how many tries have failed so far}
    mailed = models.JSONField(default=dict, db_default=Value({}, models.JSONField()), blank=True)
    created_at = models.DateTimeField(db_default=Now())
    sent_at = models.DateTimeField(null=True)  # to all of them
    given_up_at = models.DateTimeField(null=True)  # for some of them, or all: the last time
    error = models.TextField(default="", db_default="", blank=True)  # why it was given up then

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["tenant", "kind", "subject", "period"], name="automation_notice_once")
        ]

    def __str__(self) -> str:
        return self.title

    @property
    def not_told(self) -> list[str]:
        """Those for whom it was given up, by their addresses."""
        lost = ("refused", "given up")
        return [one for place, one in enumerate(self.recipients) if self.mailed.get(str(place)) in lost]

    @property
    def is_waiting(self) -> bool:
        """Whether a mail of it is still to be sent."""
        if self.sent_at is not None or (self.given_up_at is not None and not self.mailed):
            return False
        states = (self.mailed.get(str(place), 0) for place, one in enumerate(self.recipients) if one != ERASED)
        return any(isinstance(state, int) for state in states)

    def said_in(self, language: str) -> tuple[str, str]:
        """(title, text) in a language; in the tenant's where nobody needed it in that one."""
        title, text = self.said.get(language) or (self.title, self.text)
        return title, text
