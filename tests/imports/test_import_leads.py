"""Leads from a file, found by their address where that is asked for."""

from decimal import Decimal

import pytest

from automation.models import Event, Run
from northwind.crm.models import Company, Lead
from northwind.imports.models import ImportJob
from tests.engine.world import World, leaf, make_world, step, when
from tests.factories import CompanyFactory, LeadFactory
from tests.imports.desk import Desk


def test_leads_are_found_by_their_address_and_changed_where_they_differ(desk: Desk) -> None:
    with desk.acting():
        company = CompanyFactory(name="Initech")
        ann = LeadFactory(name="Ann", email="Ann@example.com", status="new")
        LeadFactory(email="twice@example.com")
        LeadFactory(email="Twice@example.com")
    path = desk.write(
        "name,email,company,status,value,email opt-out,last_contacted_at",
        ["Ann", "ann@EXAMPLE.com", "Initech", "contacted", "1200.50", "yes", "2026-01-02T03:04:05Z"],
        ["Bob", "bob@example.com", "", "", "", "no", ""],
        ["Bob B.", "bob@example.com", "", "", "10", "", ""],
        ["Who", "twice@example.com", "", "", "", "", ""],
        ["Nobody", "", "Nowhere", "", "", "", ""],
        ["", "new@example.com", "", "", "", "", ""],
        ["Num", "num@example.com", "", "", "1.234,5", "perhaps", ""],
    )
    desk.command("leads", path, "--match=email", f"--report={desk.folder}/report.csv", code=3)
    found = [(row["row"], row["outcome"], row["column"]) for row in desk.report()]
    assert found == [
        ("1", "updated", ""),
        ("2", "created", ""),
        ("3", "updated", ""),
        ("4", "rejected", "email"),
        ("5", "rejected", "company"),
        ("6", "rejected", "name"),
        ("7", "rejected", "value"),
        ("7", "rejected", "email_opt_out"),
    ]
    with desk.acting():
        ann.refresh_from_db()
        assert (ann.email, ann.company, ann.status, ann.value) == (
            "Ann@example.com",
            company,
            "contacted",
            Decimal("1200.5"),
        )
        assert ann.email_opt_out
        bob = Lead.objects.get(email="bob@example.com")
        assert (bob.name, bob.value, bob.source) == ("Bob B.", 10, "import")


def test_companies_are_made_where_that_is_asked_for(desk: Desk) -> None:
    path = desk.write("name,company", ["Ann", "Initech"], ["Bob", "Initech"], ["Cid", "x" * 121])
    desk.command("leads", path, "--create-missing", code=3)
    with desk.acting():
        assert Company.objects.get().leads.count() == 2


@pytest.fixture
def world(db: None) -> World:
    return make_world()


@pytest.mark.case("F05")
@pytest.mark.parametrize("count", [100, pytest.param(1000, marks=pytest.mark.long)])
def test_an_import_asks_whether_rules_run_and_the_few_that_change_start_few_runs(
    desk: Desk, world: World, count: int
) -> None:
    few = count // 10
    desk.tenant = world.tenant
    world.connection()
    changed = when(model="crm.lead")
    rule = world.rule(
        "Tell", step("c", "call_webhook", connection="hook"), trigger=changed, condition=leaf("status", "changed")
    )
    once = world.rule(
        "Look",
        step("t", "add_tags", tags=["look"]),
        trigger=when(model="crm.lead", fields=["status"]),
        imports="once",
    )
    with world.acting():
        LeadFactory.create_batch(count, tenant=world.tenant, status="new")
        leads = list(Lead.objects.order_by("id"))
    world.run()
    rows = [[lead.email, "contacted" if number < few else "new"] for number, lead in enumerate(leads)]
    path = desk.write("email,status", *rows)
    assert desk.command("leads", path, "--match=email", code=1) == (
        "Rules listen to leads: “Tell” (for each row); “Look” (once for the import). Say --rules run or --rules skip."
    )
    desk.command("leads", path, "--match=email", "--rules=run")
    world.run()
    assert world.states(rule) == ["succeeded"] * few
    assert world.states(once) == ["succeeded", *["suppressed import_skipped"] * (few - 1)]
    with world.acting():
        job = ImportJob.objects.get()
        assert (job.updated, job.unchanged) == (few, count - few)
        assert Run.objects.filter(event__batch=job.batch).count() == 2 * few


@pytest.mark.case("F05")
@pytest.mark.case("S04")
def test_an_import_without_rules_is_stored_as_such_and_starts_none(desk: Desk, world: World) -> None:
    desk.tenant = world.tenant
    rule = world.rule("Tag", step("t", "add_tags", tags=["x"]), trigger=when("created", model="crm.lead"))
    path = desk.write("name", *[[f"Lead {number}"] for number in range(50)])
    desk.command("leads", path, "--rules=skip")
    world.run()
    assert world.states(rule) == []
    with world.acting():
        assert ImportJob.objects.get().options["rules"] is False
        events = Event.objects.filter(source="import")
        assert events.count() == 50
        assert all(event.facts["quiet"] and event.matched_at for event in events)
