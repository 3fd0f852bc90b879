"""Migrations of the help desk."""
