"""Registers the tenancy with Django."""

from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class TenantsConfig(AppConfig):
    """Tenants, members, groups and the audit."""

    name = "tenants"
    verbose_name = _("Tenants")
