"""The pages of the automation: one module a screen."""
