"""Where rules reach outside systems: endpoint and secret, kept by a tenant's admins."""

import json

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from django.conf import settings
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from automation.core.breaker import BREAKER_STATES
from tenants.models import TenantOwned


def cipher() -> MultiFernet:
    """The keys of the deployment, newest first: encrypts with the first, reads with all."""
    return MultiFernet([Fernet(key) for key in settings.SECRET_ENCRYPTION_KEYS])


class Connection(TenantOwned):
    """An outside system of a tenant. The secret is encrypted at rest and never shown again."""

    name = models.CharField(max_length=80)
    kind = models.CharField(max_length=40)  # pager, webhook, sms, mail
    endpoint = models.CharField(max_length=500, default="", blank=True)
    secret_encrypted = models.BinaryField(default=b"", editable=False)
    settings = models.JSONField(default=dict, blank=True)  # what is not secret: a sender's number, an account's id
    revision = models.IntegerField(default=0)
    changed_at = models.DateTimeField(db_default=Now())
    # Names of hosts that may be called, or ".example.com" for all below it; empty: the host of the endpoint alone.
    allowed_hosts = models.CharField(max_length=1000, default="", db_default="", blank=True)
    concurrency = models.PositiveSmallIntegerField(null=True, blank=True)  # calls at a time; null: as the lane allows
    breaker = models.CharField(max_length=10, default="closed", db_default="closed", editable=False)
    breaker_trips = models.IntegerField(default=0, db_default=0, editable=False)  # found down so often in a row
    breaker_since = models.DateTimeField(null=True, editable=False)  # the first failure that opened it
    breaker_until = models.DateTimeField(null=True, editable=False)  # then it is tried again
    last_error = models.CharField(max_length=500, default="", db_default="", blank=True, editable=False)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["tenant", "name"], name="automation_connection_name"),
            models.UniqueConstraint(fields=["tenant", "id"], name="automation_connection_tenant_id"),
            models.CheckConstraint(condition=Q(breaker__in=BREAKER_STATES), name="automation_connection_breaker"),
            models.CheckConstraint(
                condition=Q(concurrency=None) | Q(concurrency__gte=1), name="automation_connection_concurrency"
            ),
        ]

    def __str__(self) -> str:
        return self.name

    def hosts(self) -> tuple[str, ...]:
        """The allowed hosts, in lower case."""
        return tuple(self.allowed_hosts.lower().replace(",", " ").split())

    def set_secret(self, secret: str) -> None:
        """Keeps a secret; an empty one removes it. The row still has to be saved."""
        self.secret_encrypted = cipher().encrypt(json.dumps(secret).encode()) if secret else b""

    def secret(self) -> str | None:
        """The secret in clear for the moment of use; None when the key that encrypted it is gone."""
        if not self.secret_encrypted:
            return ""
        try:
            return str(json.loads(cipher().decrypt(bytes(self.secret_encrypted))))
        except InvalidToken:
            return None


class ConnectionCall(models.Model):
    """How calls of a connection ended of late: what its breaker and its health are judged by. Kept for an hour."""

    connection = models.ForeignKey(Connection, on_delete=models.CASCADE, related_name="recent_calls", db_index=False)
    at = models.DateTimeField()
    ok = models.BooleanField()
    calls = models.IntegerField(default=1, db_default=1)  # successes of a process are written together
    record = models.CharField(max_length=120, default="", db_default="", blank=True)  # of a failure
    error = models.CharField(max_length=500, default="", db_default="", blank=True)

    class Meta:
        indexes = [
            models.Index(fields=["connection", "ok", "at"], name="automation_call_recent"),
            models.Index(fields=["at"], name="automation_call_old"),
        ]

    def __str__(self) -> str:
        return f"{self.calls} calls at {self.at}"
