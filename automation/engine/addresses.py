"""Keeps a tenant's own mail addresses: each change reaches the workers at their next claim."""

from django.db import transaction
from django.utils.translation import gettext as _

from automation.engine.operate import Refused
from automation.models import OwnAddress
from automation.store import pauses


def save(own: OwnAddress, *, base_revision: int | None) -> None:
    """Saves an address as it was changed from that revision (None: a new one); `Refused` when it has moved on."""
    with transaction.atomic():
        if base_revision is not None:
            present = OwnAddress.objects.select_for_update(no_key=True).get(pk=own.pk)
            if present.revision != base_revision:
                raise Refused(_("Someone else has changed this address meanwhile: load the page again."))
        own.address = own.address.strip().lower()
        own.revision = 0 if base_revision is None else base_revision + 1
        own.save()
        pauses.bump_rules(own.tenant_id)


def delete(own: OwnAddress) -> None:
    """Forgets an address: rules may write to it again."""
    with transaction.atomic():
        own.delete()
        pauses.bump_rules(own.tenant_id)
