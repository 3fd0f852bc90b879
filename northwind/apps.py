"""Registers the product itself, which owns the commands, with Django."""

from django.apps import AppConfig


class NorthwindConfig(AppConfig):
    """The host of the automations."""

    name = "northwind"
    verbose_name = "Northwind"
