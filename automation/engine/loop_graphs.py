"""Remembers, in each process, which rule of a tenant can start which, so that a page needn't search all pairs again."""

from collections import OrderedDict
from collections.abc import Sequence
from datetime import timedelta
from threading import Lock

from automation.core.circles import Hop
from automation.core.footprints import Footprint
from automation.core.loop_graph import Graph
from automation.core.moments import Moment
from automation.engine.footprinting import known_fields

REMEMBERED = 20  # tenants
OLDEST = timedelta(days=1)  # what is relative to a moment is searched again then
_graphs: "OrderedDict[int, tuple[Graph, Lock]]" = OrderedDict()
_lock = Lock()


def hops_among(tenant_id: int, footprints: Sequence[Footprint], moment: Moment) -> list[Hop]:
    """All hops among some rules of a tenant; one search at a time for each tenant, which the next ones build upon."""
    with _lock:
        graph, lock = _graphs.get(tenant_id) or (Graph(known_fields(), moment), Lock())
        if moment.now - graph.moment.now > OLDEST or moment.zone != graph.moment.zone:
            graph = Graph(known_fields(), moment)
        _graphs[tenant_id] = (graph, lock)
        _graphs.move_to_end(tenant_id)
        while len(_graphs) > REMEMBERED:
            _graphs.popitem(last=False)
    with lock:
        return graph.hops(footprints)
