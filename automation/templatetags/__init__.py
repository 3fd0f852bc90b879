"""Template tags of the automation pages."""
