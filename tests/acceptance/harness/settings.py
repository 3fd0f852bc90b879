"""The product's settings for workers under test: with traps among the actions, and a second pool."""

from northwind.settings import *  # noqa: F403 whatever the product sets
from northwind.settings import INSTALLED_APPS, Q_CLUSTER

INSTALLED_APPS = [*INSTALLED_APPS, "acceptance.harness.traps"]
Q_CLUSTER = {
    **Q_CLUSTER,
    "poll": 0.05,  # between two looks for bells
    "guard_cycle": 0.2,  # between two looks for workers that died
    # A pool whose workers stand by: a test moves a lane to it when the first pool's worker is dead.
    "ALT_CLUSTERS": {
        "spare": {key: Q_CLUSTER[key] for key in ("workers", "queue_limit", "timeout", "retry", "scheduler")},
    },
}
