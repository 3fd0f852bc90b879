"""Stops the whole installation where workers find its database in another place: it was restored from a backup."""

import structlog
from django.db import transaction
from django.utils.translation import gettext as _

from automation.engine.operate.held import find_pause
from automation.engine.operate.installation import pause_installation
from automation.store import place
from tenants.context import NOBODY, acting_as

log = structlog.get_logger(__name__)


def pause_if_restored() -> bool:
    """Whether the database isn't where workers saw it last; then everything is paused until a person has looked.

    What was done since the backup would be done again: whoever resumes chooses what becomes of it. A pause of the
    installation that is open already stays as it is. Asked by each pump when it starts.
    """
    here = place.here()
    with transaction.atomic():
        before = place.seen(here)
        if before == here:
            return False
        log.error("alarm", what="restored", before=before, here=here)
        if find_pause("installation") is None:
            with acting_as(NOBODY):
                pause_installation(reason=_("This database was restored from a backup, or has moved."))
        place.settle(here)
    return True
