"""Fills the catalog at start-up, and has the engine follow each tenant."""

from django.apps import AppConfig
from django.apps import apps as installed
from django.core import checks
from django.db.models.signals import post_save
from django.utils.module_loading import import_string

from automation.catalog import registry


class AutomationConfig(AppConfig):
    """The engine as a Django app."""

    name = "automation"
    verbose_name = "Automation"

    def ready(self) -> None:
        """Finds every action, trigger and automatable model by name, and listens for new and changed tenants."""
        registry.discover()
        checks.register(import_string("automation.engine.needed.check"), checks.Tags.database)
        # Found by name: this module is imported before any model may be.
        follow_tenant = import_string("automation.engine.limits.follow_tenant")
        post_save.connect(
            follow_tenant, sender=installed.get_model("tenants", "Tenant"), dispatch_uid="automation.follow_tenant"
        )
