"""What people do to rules: draft, publish, switch, order, delete; each verb one transaction with its audit entry."""

from automation.engine.references import References
from automation.engine.rules.deleting import delete, undelete
from automation.engine.rules.drafting import check, create, rename, restore, save_draft
from automation.engine.rules.finding import Conflict, find, live_rules, order
from automation.engine.rules.ordering import move
from automation.engine.rules.publishing import NothingNew, publish
from automation.engine.rules.switching import WAITING, switch_off, switch_on

__all__ = [
    "WAITING",
    "Conflict",
    "NothingNew",
    "References",
    "check",
    "create",
    "delete",
    "find",
    "live_rules",
    "move",
    "order",
    "publish",
    "rename",
    "restore",
    "save_draft",
    "switch_off",
    "switch_on",
    "undelete",
]
