"""All registered kinds: triggers, actions, and the models that rules may watch, read and change."""
