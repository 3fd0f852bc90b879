"""Registers the tenancy, and the admin of its staff, with Django."""

from django.apps import AppConfig
from django.contrib.admin import apps as admin_apps
from django.utils.translation import gettext_lazy as _


class TenantsConfig(AppConfig):
    """Tenants, members, groups and the audit."""

    name = "tenants"
    verbose_name = _("Tenants")


class StaffAdminConfig(admin_apps.AdminConfig):
    """Django's admin, with a site that lifts the scope and audits it."""

    default = False
    default_site = "tenants.site.StaffSite"
