"""Migrations of the CRM."""
