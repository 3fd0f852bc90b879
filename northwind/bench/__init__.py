"""Measures the engine with real workers, each bench in a module of its name, against the floor of the same database."""
