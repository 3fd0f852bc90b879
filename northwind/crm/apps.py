"""Registers the CRM with Django."""

from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class CrmConfig(AppConfig):
    """Companies and leads."""

    name = "northwind.crm"
    label = "crm"
    verbose_name = _("CRM")
