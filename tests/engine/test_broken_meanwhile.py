"""Rules that name what is gone are switched off while others publish, and nobody stands in anybody's way."""

import threading

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from automation.engine import connections, references, rules
from automation.engine.references import switch_off_broken
from automation.models import Connection, Rule
from automation.store import pauses
from tests.engine.world import World, make_world, step

PAGE = step("call", "call_webhook", connection="hook")


def is_on(rule: Rule) -> bool:
    rule.refresh_from_db()
    return rule.on


@pytest.mark.django_db
def test_a_version_that_was_mended_while_the_old_one_was_judged_stays_on(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.connection()
    rule, other = world.rule("Mended", PAGE), world.rule("Broken", PAGE)
    judge = references.problems_of

    def meanwhile(*given: object, **more: bool) -> object:
        found = judge(*given, **more)  # type: ignore[arg-type]
        monkeypatch.setattr(references, "problems_of", judge)
        world.republish(rule, step("note", "add_note", text="mended"))
        return found

    with world.acting():
        Connection.objects.all().delete()
        monkeypatch.setattr(references, "problems_of", meanwhile)
        assert switch_off_broken() == [other]
        assert (is_on(rule), is_on(other)) == (True, False)


@pytest.mark.django_db
def test_of_several_tenants_all_rules_are_locked_before_the_first_lane() -> None:
    worlds = [make_world(), make_world()]
    theirs = []
    for world in worlds:
        world.connection()
        theirs += [world.rule("One", PAGE), world.rule("Two", PAGE)]
        with world.acting():
            Connection.objects.all().delete()

    with CaptureQueriesContext(
        connection,
    ) as seen:
        off = rules.after_leaving(reversed([world.tenant.pk for world in worlds]))

    assert [rule for rules_ in off.values() for rule in rules_] == theirs
    statements = [one["sql"] for one in seen.captured_queries]
    switches = [place for place, sql in enumerate(statements) if sql.startswith("UPDATE automation_rule")]
    lanes = [place for place, sql in enumerate(statements) if "automation_lane" in sql]
    assert len(switches) == 4
    assert max(switches) < min(lanes)
    assert sum(sql.startswith("UPDATE automation_lane SET rules_version") for sql in statements) == 1


@pytest.mark.django_db(transaction=True)
def test_a_connection_is_deleted_while_one_of_its_rules_is_being_published() -> None:
    world = make_world()
    hook = world.connection()
    world.rule("First", PAGE)
    rule = world.rule("Second", PAGE)
    locked, over, errors = threading.Event(), threading.Event(), list[Exception]()

    def publishes() -> None:
        """As whoever publishes: his rule, then the lane."""
        try:
            with world.acting(), transaction.atomic():
                rules.find(rule.pk, lock=True)
                locked.set()
                while not (over.is_set() or somebody_waits()):
                    pass
                pauses.bump_rules(world.tenant.pk)
        except Exception as error:
            errors.append(error)
        finally:
            locked.set()
            connection.close()

    publishing = threading.Thread(target=publishes)
    publishing.start()
    locked.wait()
    try:
        off = connections.delete(hook)
    finally:
        over.set()
        publishing.join()

    assert errors == []
    assert [one.name for one in off] == ["First", "Second"]


def somebody_waits() -> bool:
    """Whether the deletion has come to the rule that is being published."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT EXISTS (SELECT 1 FROM pg_stat_activity WHERE datname = current_database()"
            " AND wait_event_type = 'Lock')"
        )
        return bool(cursor.fetchone()[0])
