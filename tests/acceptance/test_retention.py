"""Workers prune beside their work: what is old goes, what lives isn't touched, and a death amid it loses nothing."""

import pytest
from acceptance.harness.scenario import webhook
from acceptance.harness.waiting import until
from acceptance.harness.world import World

from tests.retention.large import DAYS, FILL

pytestmark = pytest.mark.acceptance
OLD, NEW = 3000, 400


@pytest.mark.long
@pytest.mark.case("H02")
def test_old_runs_go_while_new_ones_are_worked_on_and_workers_die(world: World) -> None:
    hook = world.server("webhooks", "--delay-ms", "20")
    site = world.site(max_running=8)
    site.connect(hook.url)
    rule, tickets = site.rule([webhook()]), site.tickets(100)
    version = world.db.value("SELECT published_id FROM automation_rule WHERE id = %s", rule)
    asked = {"tenant": site.id, "rule": rule, "version": version, "runs": OLD, "days": DAYS}
    world.db.connection.execute(FILL, asked)
    for table in ("run", "stepexecution"):
        world.db.run(
            f"UPDATE automation_{table} SET state = 'succeeded', ended_at = created_at WHERE state = 'waiting'"
        )
    world.db.run("UPDATE tenants_tenant SET created_at = now() - interval '2 hours' WHERE id = %s", site.id)
    world.db.run("UPDATE automation_limits SET retention_days = 20, header_days = 30 WHERE tenant_id = %s", site.id)
    old = "created_at < now() - interval '30 days 1 hour'"
    details = "details_removed_at IS NULL AND created_at < now() - interval '20 days 1 hour'"
    assert len(site.runs(old)) > OLD / 3

    recent = f"id > {site.runs()[-1]['id']} AND state = 'succeeded'"
    for _ in range(NEW // len(tickets)):
        site.backlog(rule, tickets)
    cluster = world.cluster(3, retention=1)
    until(lambda: len(site.runs(recent)) > NEW // 8, within=60, about="some runs", told=world.tails)
    cluster.kill(cluster.pumps()[0])
    until(lambda: not site.runs(f"({old}) OR ({details})"), within=90, about="pruning", told=world.tails)
    until(lambda: len(site.runs(recent)) == NEW, within=90, about="the new runs", told=world.tails)

    assert len({entry["key"] for entry in hook.entries()}) == NEW
    assert all(one["input"] for one in site.steps("created_at > now() - interval '19 days'"))
    assert not [one for one in site.events() if one["created_at"] < site.runs()[0]["created_at"]]
    world.check(reaped=range(NEW), stale_settle=range(NEW))
