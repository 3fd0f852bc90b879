"""Where rules reach outside systems: endpoint and secret, kept by a tenant's admins."""

import json

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from django.conf import settings
from django.db import models
from django.db.models.functions import Now

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

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["tenant", "name"], name="automation_connection_name"),
            models.UniqueConstraint(fields=["tenant", "id"], name="automation_connection_tenant_id"),
        ]

    def __str__(self) -> str:
        return self.name

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
