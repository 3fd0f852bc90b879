"""Registers the help desk with Django."""

from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class HelpdeskConfig(AppConfig):
    """Customers, tickets, comments and tasks."""

    name = "northwind.helpdesk"
    label = "helpdesk"
    verbose_name = _("Help desk")
