"""What a customer pays for, where a ticket is on its way, how urgent it is, and how it reached us."""

from django.db import models
from django.utils.translation import gettext_lazy as _


class Plan(models.TextChoices):
    """What a customer pays for."""

    FREE = "free", _("Free")
    SILVER = "silver", _("Silver")
    GOLD = "gold", _("Gold")


class Status(models.TextChoices):
    """Where a ticket is on its way."""

    NEW = "new", _("New")
    OPEN = "open", _("Open")
    PENDING = "pending", _("Pending")
    ON_HOLD = "on_hold", _("On hold")
    SOLVED = "solved", _("Solved")
    CLOSED = "closed", _("Closed")


class StatusCategory(models.TextChoices):
    """What a status means for the work: it is our turn, somebody else's, or nobody's any more."""

    OPEN = "open", _("Open")
    PAUSED = "paused", _("Paused")
    CLOSED = "closed", _("Closed")


CATEGORIES: dict[str, StatusCategory] = {
    Status.NEW: StatusCategory.OPEN,
    Status.OPEN: StatusCategory.OPEN,
    Status.PENDING: StatusCategory.PAUSED,
    Status.ON_HOLD: StatusCategory.PAUSED,
    Status.SOLVED: StatusCategory.CLOSED,
    Status.CLOSED: StatusCategory.CLOSED,
}


def statuses_of(category: StatusCategory) -> list[str]:
    """Return the statuses of a category, in their order."""
    return [str(status) for status, its_category in CATEGORIES.items() if its_category == category]


class Priority(models.TextChoices):
    """How urgent a ticket is."""

    LOW = "low", _("Low")
    NORMAL = "normal", _("Normal")
    HIGH = "high", _("High")
    URGENT = "urgent", _("Urgent")


class Channel(models.TextChoices):
    """How a ticket reached us."""

    EMAIL = "email", _("E-mail")
    WEB = "web", _("Web form")
    PHONE = "phone", _("Phone")
    CHAT = "chat", _("Chat")
    API = "api", _("API")
    IMPORT = "import", _("Import")
