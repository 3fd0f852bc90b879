"""A Django app with actions that break the process they run in, known to workers under test only."""
