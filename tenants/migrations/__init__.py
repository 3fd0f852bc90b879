"""Migrations of the tenancy."""
