"""Commands that run the whole product: for a look, for an experiment, for measuring."""
