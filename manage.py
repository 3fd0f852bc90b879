"""Runs a management command of the project."""

import os
import sys

from northwind.command_line import run

if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "northwind.settings")
    run(sys.argv)
