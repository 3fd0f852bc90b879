"""The engine's tables."""

from automation.models.addresses import OwnAddress
from automation.models.backtests import Backtest
from automation.models.bulk import BulkJob
from automation.models.connections import Connection, ConnectionCall
from automation.models.events import Event
from automation.models.imports import ServedBatch
from automation.models.installation import Installation
from automation.models.lanes import Lane, Limits, Sweep, Timer, Worker
from automation.models.notices import Notice
from automation.models.pauses import Drip, Pause
from automation.models.retention import Retention
from automation.models.rules import Rule, RuleDraft, RuleVersion
from automation.models.runs import Attempt, DeadLetter, Run, StepExecution

__all__ = [
    "Attempt",
    "Backtest",
    "BulkJob",
    "Connection",
    "ConnectionCall",
    "DeadLetter",
    "Drip",
    "Event",
    "Installation",
    "Lane",
    "Limits",
    "Notice",
    "OwnAddress",
    "Pause",
    "Retention",
    "Rule",
    "RuleDraft",
    "RuleVersion",
    "Run",
    "ServedBatch",
    "StepExecution",
    "Sweep",
    "Timer",
    "Worker",
]
