"""Says which versions of actions the rules and runs of all tenants need, and which of them a release doesn't have."""

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Any

from django.core import checks
from django.db import connection

from automation.catalog import registry
from automation.core.states import STEP_STATES, TERMINAL_STEP, UNDER_WAY
from automation.models import Rule, RuleVersion

DONE = sorted(TERMINAL_STEP - {"dead"})
NOT_DONE = [state for state in STEP_STATES if state not in DONE]
NAMED = 20  # so many rules a check names one by one


@dataclass(frozen=True, slots=True)
class Need:
    """A rule that needs an action ("page_on_call@1"), for what and on which of its versions.

    `live`: its published version has it, and `on` that new events may start it. `runs` under way may still come to it;
    `dead_letters` are open ones whose retry would.
    """

    action: str
    tenant: str
    rule_id: int
    rule_name: str
    on: bool
    live: bool = False
    runs: int = 0
    dead_letters: int = 0
    versions: tuple[int, ...] = ()

    @property
    def is_pressing(self) -> bool:
        """Whether something would stand still without the action: a rule that is off only can't be switched on."""
        return bool(self.runs or self.dead_letters or (self.live and self.on))

    def sentence(self) -> str:
        """Who needs it for what, for the people who deploy."""
        parts = [
            f"version {', '.join(map(str, self.versions))}",
            "published and on" if self.live and self.on else "published, off" if self.live else "",
            f"{self.runs} runs" if self.runs else "",
            f"{self.dead_letters} open dead letters" if self.dead_letters else "",
        ]
        return f"{self.tenant}: rule {self.rule_id} “{self.rule_name}”, {'; '.join(part for part in parts if part)}"


def needs(
    *, known: Collection[str] | None = None, without: Collection[str] = (), tenant_id: int | None = None
) -> list[Need]:
    """What needs which action, of all tenants or one, sorted by action and rule; rules that are deleted need nothing.

    With `known` only actions that aren't among them, and those in `without`: what a release would leave behind.
    A step that is off needs nothing, nor does a run that has the step behind it.
    """
    found: dict[tuple[str, int], Need] = {}
    for action, tenant, rule_id, name, on, number, what, count in _rows(known, without, tenant_id):
        need = found.get((action, rule_id)) or Need(action, tenant, rule_id, name, on)
        more: dict[str, Any] = {"live": True} if what == "live" else {what: getattr(need, what) + count}
        found[action, rule_id] = replace(need, versions=tuple(sorted({*need.versions, number})), **more)
    return [found[key] for key in sorted(found)]


def missing(*, without: Collection[str] = ()) -> list[Need]:
    """What needs an action that this process doesn't know, or wouldn't without these."""
    return needs(known=registry.actions, without=without)


def check(app_configs: Any, databases: Collection[str] | None = None, **kwargs: Any) -> list[checks.CheckMessage]:
    """An error for each action version that is gone and still needed; for `check --database` and before a migration.

    A warning where only a rule that is off names it.
    """
    if not databases or not _has_tables():
        return []
    found = [_message(need) for need in missing()]
    return found[:NAMED] + (
        [checks.Error(f"… and {len(found) - NAMED} more.", id="automation.E003")] * (len(found) > NAMED)
    )


def _message(need: Need) -> checks.CheckMessage:
    kind, id_ = (checks.Error, "automation.E003") if need.is_pressing else (checks.Warning, "automation.W003")
    return kind(
        f"The action {need.action} is gone from this release, and is still needed by {need.sentence()}.",
        hint=f"Keep it until these have ended: manage.py automation_actions --without {need.action} says when.",
        id=id_,
    )


def _has_tables() -> bool:
    present = set(connection.introspection.table_names())
    return {Rule._meta.db_table, RuleVersion._meta.db_table, "automation_run", "automation_deadletter"} <= present


def _rows(known: Collection[str] | None, without: Collection[str], tenant_id: int | None) -> list[tuple[Any, ...]]:
    params = {
        "tenant": tenant_id,
        "known": None if known is None else list(known),
        "without": list(without),
        "under_way": list(UNDER_WAY),
        "done": DONE,
        "not_done": NOT_DONE,
    }
    with connection.cursor() as cursor:
        cursor.execute(_NEEDED, params)
        return list(cursor.fetchall())


# A run has a step behind it when that is done and isn't open once more, as in a loop over several records.
_NEEDED = """
WITH named AS MATERIALIZED (
  SELECT DISTINCT v.id, v.tenant_id, v.number, u.id AS rule_id, u.name, u."on", u.published_id, s.step ->> 'id' AS step,
    concat(s.step ->> 'action', '@', COALESCE(s.step ->> 'version', '1')) AS action
  FROM automation_ruleversion v JOIN automation_rule u ON u.id = v.rule_id AND u.deleted_at IS NULL
  CROSS JOIN jsonb_path_query(v.definition, 'lax $.steps.** ? (@.kind == "action" && !(@.off == true))') s (step)
  WHERE (%(tenant)s::bigint IS NULL OR v.tenant_id = %(tenant)s)
), n AS MATERIALIZED (
  SELECT * FROM named WHERE %(known)s::text[] IS NULL OR NOT action = ANY(%(known)s) OR action = ANY(%(without)s)
), r AS (
  SELECT n.*, 'runs' AS what, r.id AS run_id
  FROM n JOIN automation_run r ON r.tenant_id = n.tenant_id AND r.rule_version_id = n.id
    AND r.state = ANY(%(under_way)s)
  UNION ALL
  SELECT n.*, 'dead_letters', r.id
  FROM automation_deadletter d JOIN automation_run r ON r.id = d.run_id JOIN n ON n.id = r.rule_version_id
  WHERE d.resolved_at IS NULL
), found AS (
  SELECT action, tenant_id, rule_id, number, 'live' AS what, 1 AS count FROM n WHERE published_id = id
  UNION ALL
  SELECT action, tenant_id, rule_id, number, what, count(DISTINCT run_id) FROM r
  WHERE NOT EXISTS (SELECT 1 FROM automation_stepexecution s
      WHERE s.run_id = r.run_id AND regexp_replace(s.path, '^.*/', '') = r.step AND s.state = ANY(%(done)s))
    OR EXISTS (SELECT 1 FROM automation_stepexecution s
      WHERE s.run_id = r.run_id AND regexp_replace(s.path, '^.*/', '') = r.step AND s.state = ANY(%(not_done)s))
  GROUP BY 1, 2, 3, 4, 5
)
SELECT f.action, t.slug, f.rule_id, u.name, u."on", f.number, f.what, max(f.count)::int
FROM found f JOIN tenants_tenant t ON t.id = f.tenant_id JOIN automation_rule u ON u.id = f.rule_id
GROUP BY 1, 2, 3, 4, 5, 6, 7 ORDER BY 1, 3, 6, 7
"""
