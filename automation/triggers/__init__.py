"""Triggers: one file each, found by name."""
