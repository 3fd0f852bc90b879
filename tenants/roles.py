"""The roles of a membership, each including those before it."""

from django.db import models
from django.utils.translation import gettext_lazy as _


class Role(models.TextChoices):
    """What a member may do, weakest first."""

    VIEWER = "viewer", _("Viewer")
    AGENT = "agent", _("Agent")
    EDITOR = "editor", _("Editor")
    PUBLISHER = "publisher", _("Publisher")
    ADMIN = "admin", _("Admin")


ROLES: tuple[str, ...] = tuple(Role.values)


def includes(held: str, wanted: str) -> bool:
    """Say whether a member of role `held` may do what `wanted` may; raise ValueError for a role that doesn't exist."""
    return ROLES.index(held) >= ROLES.index(wanted)
