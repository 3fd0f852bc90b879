"""Runs a management command of the project."""

import os
import sys

from django.core.management import execute_from_command_line

from northwind.database import ensure_for

if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "northwind.settings")
    ensure_for(sys.argv)
    try:
        execute_from_command_line(sys.argv)
    except KeyboardInterrupt:  # by Ctrl-C: what is committed stays
        sys.exit(130)
