"""What rules can do: one action a file, found by name."""
