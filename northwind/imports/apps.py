"""Registers the imports with Django."""

from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class ImportsConfig(AppConfig):
    """Imports of tickets and leads, and what became of each row."""

    name = "northwind.imports"
    label = "imports"
    verbose_name = _("Imports")
