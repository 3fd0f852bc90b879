"""Changes tickets in a process of its own, which a failpoint may end: `python -m acceptance.harness.act VERB …`."""

import sys
import time

import django

django.setup()

from django.db import transaction  # noqa: E402 the settings must stand first

from northwind.helpdesk.models import Ticket  # noqa: E402
from tenants.context import Actor, acting_as, acting_for  # noqa: E402

PERSON = Actor("person", 1, "Ana Admin")


def change(tenant_id: int, ticket_id: int, field: str, value: str) -> None:
    """Saves one ticket in autocommit."""
    with acting_for(tenant_id), acting_as(PERSON):
        ticket = Ticket.objects.get(pk=ticket_id)
        setattr(ticket, field, value)
        ticket.save()


def save_often(tenant_id: int, ticket_ids: list[int], times: int) -> tuple[int, float]:
    """Saves tickets in turn, each in its transaction.

    Answers how many saves failed, and for how many milliseconds 98 in 100 of them held their row at most.
    """
    failed, held = 0, [0.0]
    with acting_for(tenant_id), acting_as(PERSON):
        for number in range(times):
            try:
                with transaction.atomic():
                    ticket = Ticket.objects.select_for_update(no_key=True).get(pk=ticket_ids[number % len(ticket_ids)])
                    locked = time.monotonic()
                    ticket.description = f"Save {number}"
                    ticket.save(update_fields=["description"])
                held.append((time.monotonic() - locked) * 1000)
            except Exception as error:
                failed += 1
                sys.stderr.write(f"{error!r}\n")
    return failed, sorted(held)[int(len(held) * 0.98)]


if __name__ == "__main__":
    verb, *given = sys.argv[1:]
    if verb == "change":
        change(int(given[0]), int(given[1]), given[2], given[3])
    elif verb == "save_often":
        failures, held = save_often(int(given[0]), [int(one) for one in given[1].split(",")], int(given[2]))
        sys.stdout.write(f"{failures} {held:.1f}\n")
    else:
        raise SystemExit(f"no verb {verb}")
