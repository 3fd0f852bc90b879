"""A long history slows nothing down: pages of runs, and what removes it, follow indexes and stay small."""

import resource
import time
from collections.abc import Callable, Iterator
from datetime import timedelta

import pytest
from django.db import connection
from operating import Place, make_event, make_rule, make_run
from operating import place as new_place

from automation.engine import lists
from automation.engine.retention.closing import close
from automation.engine.retention.rounds import round_of
from automation.models import Event, Limits, Run
from automation.store import clock
from tenants.context import acting_for
from tests.retention.large import fill, whole_reads

SMALL, LARGE = 4000, 200_000
LONGEST_PAGE = 0.3  # seconds
LONGEST_PORTION = 3.0  # seconds, on a machine that does other things too


def indexes_only() -> None:
    """The planner reads a table from end to end only where nothing else leads to its rows."""
    with connection.cursor() as cursor:
        cursor.execute("SET enable_seqscan = off")


@pytest.fixture
def indexed(transactional_db: None) -> Iterator[None]:
    indexes_only()
    yield
    with connection.cursor() as cursor:
        cursor.execute("RESET enable_seqscan")


@pytest.fixture
def acme(transactional_db: None) -> Iterator[Place]:
    place = new_place(name="Acme Retail", slug="acme")
    with acting_for(place.tenant.pk, place.actor):
        yield place


def read_whole(what: Callable[[], object]) -> dict[str, int]:
    """Which of the big tables were read from end to end meanwhile, also by checks of foreign keys."""
    before = whole_reads()
    what()
    return {table: count - before[table] for table, count in whole_reads().items() if count > before[table]}


@pytest.mark.case("H02")
def test_a_round_reads_no_large_table_from_end_to_end(indexed: None, acme: Place):
    fill(acme, SMALL)
    assert read_whole(lambda: list(round_of(acme.tenant.pk))) == {}
    assert Run.objects.filter(details_removed_at__isnull=False).count() > SMALL / 3
    Limits.objects.filter(tenant=acme.tenant).update(header_days=30)
    assert read_whole(lambda: list(round_of(acme.tenant.pk))) == {}
    left = Run.objects.filter(created_at__lt=clock.now() - timedelta(days=30))
    assert set(left.values_list("state", flat=True)) == {"waiting"}
    assert Run.objects.count() < SMALL * 2 / 3
    close(acme.tenant.pk)
    assert read_whole(lambda: list(round_of(acme.tenant.pk, purge_now=True))) == {}
    assert not Run.objects.exists()
    assert not Event.objects.exists()


@pytest.mark.case("H01")
def test_pages_of_runs_read_no_large_table_from_end_to_end(indexed: None, acme: Place):
    rule = fill(acme, SMALL)
    assert read_whole(lambda: pages(rule.pk)) == {}


def pages(rule_id: int) -> dict[str, float]:
    """The longest of three reads of each page, in seconds."""
    middle = Run.objects.order_by("-id").values_list("id", flat=True)[SMALL // 2]
    asked = {
        "first": lists.runs(),
        "one rule, failed": lists.runs(rule_id=rule_id, states=("failed",)),
        "waiting": lists.runs(states=("waiting",)),
        "record": lists.runs(model="helpdesk.ticket", record=77),
        "deep": lists.runs().filter(id__lt=middle),
    }
    took = {}
    for name, query in asked.items():
        begun = time.monotonic()
        rows = list(query.order_by("-id").defer("event__facts")[:51])
        took[name] = time.monotonic() - begun
        assert rows
    return took


@pytest.mark.long
@pytest.mark.case("H01")
@pytest.mark.case("H02")
def test_a_long_history_is_paged_at_once_and_pruned_in_short_portions(acme: Place):
    rule = fill(acme, LARGE)
    other = new_place(slug="other")
    with acting_for(other.tenant.pk):
        theirs = [make_run(make_rule(other.tenant, name=f"R{n}"), event=make_event(other.tenant)) for n in range(3)]
    assert max(pages(rule.pk).values()) < LONGEST_PAGE
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    longest, begun = 0.0, time.monotonic()
    for _portion in round_of(acme.tenant.pk):
        longest, begun = max(longest, time.monotonic() - begun), time.monotonic()
    assert longest < LONGEST_PORTION
    assert (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) < 30_000  # kB
    waiting = Run.objects.filter(state="waiting")
    assert waiting.count() == LARGE // 1000
    assert not waiting.filter(details_removed_at__isnull=False).exists()
    assert not waiting.filter(event__facts={}).exists()
    old = Run.objects.filter(ended_at__lt=clock.now() - timedelta(days=31))
    assert not old.filter(details_removed_at=None).exists()
    with acting_for(other.tenant.pk):
        assert Run.objects.filter(details_removed_at=None).count() == len(theirs)
