"""Reads the engine's settings, AUTOMATION_<NAME>, from the environment."""

from dataclasses import fields
from typing import Any

from django.core.exceptions import ImproperlyConfigured
from environ import Env

from automation.conf import Conf

# They switch the engine's own protections off, which nobody does by accident: only beside one of these variables.
EXPERIMENTS = frozenset({"loop_guard", "loop_stop", "idempotency_keys", "match_ahead"})
# Those, and what reaches the machine itself: for the demo, the lab, the bench and tests.
NEVER_IN_A_DEPLOYMENT = EXPERIMENTS | {"allow_loopback", "time_scale"}
EXPERIMENTING = ("AUTOMATION_LAB", "AUTOMATION_TESTS")


def engine_settings(env: Env, *, deployed: bool) -> dict[str, Any]:
    """Return what the environment sets, by the name of the Django setting, each as the type that the engine has.

    Raises ImproperlyConfigured for a value of another type, and in a deployment for a setting of experiments.
    """
    found: dict[str, Any] = {}
    for field in fields(Conf):
        name = f"AUTOMATION_{field.name.upper()}"
        if name not in env.ENVIRON:
            continue
        if deployed and field.name in NEVER_IN_A_DEPLOYMENT:
            raise ImproperlyConfigured(f"{name} is for the demo, the lab and tests, not for a deployment.")
        if field.name in EXPERIMENTS and not any(env.bool(one, False) for one in EXPERIMENTING):
            raise ImproperlyConfigured(
                f"{name} is for the lab and tests, which set {' or '.join(EXPERIMENTING)} beside it."
            )
        found[name] = env.get_value(name, cast=type(field.default))
    return found
