"""What people do to rules: draft, publish, switch, order, delete; each verb one transaction with its audit entry."""

from automation.engine.references import References
from automation.engine.rules.deleting import Goes, delete, deleted, restorable_until, undelete, what_goes
from automation.engine.rules.drafting import check, create, rename, restore, save_draft
from automation.engine.rules.finding import Conflict, find, live_rules, order
from automation.engine.rules.ordering import move
from automation.engine.rules.owners import after_leaving, give, owned_by, owner_gone, tell_owners_gone
from automation.engine.rules.planning import Plan, plan
from automation.engine.rules.publishing import OLDER_RUNS, NothingNew, cancel_older, publish
from automation.engine.rules.switching import WAITING, switch_off, switch_on
from automation.engine.rules.taking_up import TakingUp, concerned, stop_taking_up, take_up
from automation.engine.rules.versions import VersionUse, in_use, older_in_use

__all__ = [
    "OLDER_RUNS",
    "WAITING",
    "Conflict",
    "Goes",
    "NothingNew",
    "Plan",
    "References",
    "TakingUp",
    "VersionUse",
    "after_leaving",
    "cancel_older",
    "check",
    "concerned",
    "create",
    "delete",
    "deleted",
    "find",
    "give",
    "in_use",
    "live_rules",
    "move",
    "older_in_use",
    "order",
    "owned_by",
    "owner_gone",
    "plan",
    "publish",
    "rename",
    "restorable_until",
    "restore",
    "save_draft",
    "stop_taking_up",
    "switch_off",
    "switch_on",
    "take_up",
    "tell_owners_gone",
    "undelete",
    "what_goes",
]
