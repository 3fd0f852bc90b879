"""The product's settings with the migration linter, which only checks use."""

from northwind.settings import *  # noqa: F403

INSTALLED_APPS = [*INSTALLED_APPS, "django_migration_linter"]  # noqa: F405
MIGRATION_LINTER_OPTIONS = {
    "include_apps": ["tenants", "automation", "helpdesk", "crm", "imports"],
    "ignore_name": ["0024_step_connections"],  # from varchar to text: no row is written anew
    "no_cache": True,
}
