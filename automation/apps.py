"""Fills the catalog at start-up and gives each new tenant its lane and limits."""

from typing import Any

from django.apps import AppConfig
from django.apps import apps as installed
from django.db.models import Model
from django.db.models.signals import post_save

from automation.catalog import registry


def give_lane(sender: type[Model], instance: Model, created: bool, **kwargs: Any) -> None:
    """Without a lane no event of the tenant would ever be matched."""
    if created:
        # Found by name: this module is imported before any model may be.
        installed.get_model("automation", "Lane").objects.get_or_create(tenant_id=instance.pk)
        installed.get_model("automation", "Limits").objects.get_or_create(tenant_id=instance.pk)


class AutomationConfig(AppConfig):
    """The engine as a Django app."""

    name = "automation"
    verbose_name = "Automation"

    def ready(self) -> None:
        """Finds every action, trigger and automatable model by name, and listens for new tenants."""
        registry.discover()
        tenants = installed.get_model("tenants", "Tenant")
        post_save.connect(give_lane, sender=tenants, dispatch_uid="automation.give_lane")
