"""Imports leads from a CSV file: progress, a report of each row, and going on where it stopped."""

from northwind.imports.command import ImportCommand
from northwind.imports.leads import LEADS

ABOUT = __doc__


class Command(ImportCommand):
    """`manage.py import_leads FILE.csv --tenant acme --rules run`."""

    help = f"{ABOUT} {__doc__}"
    target = LEADS
