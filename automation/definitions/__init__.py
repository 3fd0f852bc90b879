"""What a rule says: its JSON read, checked, compiled, turned into queries and into words."""
