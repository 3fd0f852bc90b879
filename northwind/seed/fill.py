"""Fills a database with the seeded tenants; a tenant that is there already is left as it is."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.contrib.auth.hashers import make_password
from django.contrib.auth.models import User
from django.db import transaction

from automation.extend import importing
from automation.models import Connection
from northwind.crm.models import Company, Lead
from northwind.helpdesk.models import Comment, Customer, Ticket
from northwind.seed.files import SLUGS, rules_of, tenant_file
from northwind.seed.publish import publish
from tenants.context import Actor, acting_for
from tenants.models import Group, GroupMember, Membership, Tenant

PASSWORD = "northwind"  # noqa: S105 the demo says it on the terminal
STAFF = "admin"


class ForeignDatabaseError(RuntimeError):
    """The database belongs to somebody: known passwords have no place in it."""


@dataclass(frozen=True, slots=True)
class Login:
    """Who can log in, where, and as what."""

    name: str
    tenant: str
    role: str


def fill(servers: Mapping[str, str]) -> list[str]:
    """Make what is missing; answer the slugs of the tenants made now.

    `servers` are the addresses of the receivers by name, "http://127.0.0.1:8101". Where they have moved, the seeded
    connections follow them, and nothing else of a tenant that is there is touched. Raises `ForeignDatabaseError` for a
    database that holds tenants or people of somebody else's.
    """
    _refuse_foreign()
    with transaction.atomic():
        if not User.objects.filter(username=STAFF).exists():
            User.objects.create_superuser(STAFF, f"{STAFF}@northwind.example", PASSWORD)
    present = set(Tenant.objects.filter(slug__in=SLUGS).values_list("slug", flat=True))
    for slug in SLUGS:
        with transaction.atomic():
            if slug in present:
                _follow(slug, servers)
            else:
                _make(slug, servers)
    return [slug for slug in SLUGS if slug not in present]


def logins() -> list[Login]:
    """One login for each role of each seeded tenant, and the installation's staff first."""
    found = [Login(STAFF, "", "staff")]
    for slug in SLUGS:
        seen: set[str] = set()
        for person in tenant_file(slug)["people"]:
            if person["role"] not in seen and not person.get("is_away"):
                seen.add(person["role"])
                found.append(Login(_login(person, slug), slug, person["role"]))
    return found


def _refuse_foreign() -> None:
    if Tenant.objects.filter(slug__in=SLUGS).exists():
        return
    if Tenant.objects.exists() or User.objects.exclude(username=STAFF).exists():
        raise ForeignDatabaseError(
            "This database holds other people's data. The demo makes logins with a password that everybody knows: "
            "give it a database of its own, or unset DATABASE_URL for the embedded one."
        )


def _make(slug: str, servers: Mapping[str, str]) -> None:
    data = tenant_file(slug)
    tenant = Tenant.objects.create(name=data["name"], slug=slug, time_zone=data["time_zone"])
    with acting_for(tenant.pk):
        members = _people(slug, data["people"])
        groups = _groups(data["groups"], members)
        _connections(data["connections"], servers)
        publisher = next(member for member in members.values() if member.role == "publisher")
    with acting_for(tenant.pk, _actor(publisher)):
        for rule in rules_of(slug):
            publish(rule["name"], rule["definition"])
    with acting_for(tenant.pk):
        _records(data, members, groups)
        _activity(data, members)


def _people(slug: str, people: Sequence[Mapping[str, Any]]) -> dict[str, Membership]:
    password, members = make_password(PASSWORD), {}
    for person in people:
        first, _space, last = person["name"].partition(" ")
        user = User.objects.create(
            username=_login(person, slug),
            first_name=first,
            last_name=last,
            email=f"{first.lower()}@{slug}.example",
            password=password,
        )
        members[first.lower()] = Membership.objects.create(
            user=user, role=person["role"], is_away=person.get("is_away", False)
        )
    return members


def _groups(groups: Mapping[str, Sequence[str]], members: Mapping[str, Membership]) -> dict[str, Group]:
    found = {}
    for name, names in groups.items():
        found[name] = Group.objects.create(name=name)
        for one in names:
            GroupMember.objects.create(group=found[name], member=members[one])
    return found


def _connections(connections: Sequence[Mapping[str, Any]], servers: Mapping[str, str]) -> None:
    for one in connections:
        connection = Connection(
            name=one["name"], kind=one["kind"], endpoint=_endpoint(one, servers), settings=one.get("settings", {})
        )
        connection.set_secret(one["secret"])
        connection.save()


def _records(data: Mapping[str, Any], members: Mapping[str, Membership], groups: Mapping[str, Group]) -> None:
    customers = {one["name"]: Customer.objects.create(**one) for one in data["customers"]}
    for one in data["tickets"]:
        links = {"customer": customers[one["customer"]]}
        links |= {"assignee": members[one["assignee"]]} if "assignee" in one else {}
        links |= {"group": groups[one["group"]]} if "group" in one else {}
        Ticket.objects.create(**{**one, **links})
    companies = {one["name"]: Company.objects.create(**one) for one in data.get("companies", [])}
    for one in data.get("leads", []):
        links = {"company": companies[one["company"]]}
        links |= {"assignee": members[one["assignee"]]} if "assignee" in one else {}
        Lead.objects.create(**{**one, **links})


def _activity(data: Mapping[str, Any], members: Mapping[str, Membership]) -> None:
    """What happened this morning: changes by people and an import, so that there are runs to look at."""
    activity = data.get("activity", {})
    tenant_id = next(iter(members.values())).tenant_id
    for change in activity.get("changes", []):
        with acting_for(tenant_id, _actor(members[change["by"]])):
            ticket = Ticket.objects.get(subject=change["ticket"])
            for name, value in change.get("set", {}).items():
                setattr(ticket, name, value)
            ticket.save()
            if "comment" in change:
                Comment.objects.create(ticket=ticket, author=members[change["by"]], body=change["comment"])
    for lead in activity.get("leads", []):
        company = Company.objects.get(name=lead["company"])
        Lead.objects.create(**{**lead, "company": company})
    if "import" in activity:
        with importing(activity["import"]["batch"]):
            for subject in activity["import"]["tickets"]:
                Ticket.objects.create(subject=subject, channel="import")


def _follow(slug: str, servers: Mapping[str, str]) -> None:
    """Let the seeded connections follow receivers that listen on another port than last time."""
    tenant = Tenant.objects.get(slug=slug)
    wanted = {one["name"]: _endpoint(one, servers) for one in tenant_file(slug)["connections"]}
    with acting_for(tenant.pk):
        for connection in Connection.objects.filter(name__in=wanted, endpoint__startswith="http://127.0.0.1:"):
            if connection.endpoint != wanted[connection.name]:
                connection.endpoint = wanted[connection.name]
                connection.revision += 1
                connection.save(update_fields=["endpoint", "revision"])


def _endpoint(connection: Mapping[str, Any], servers: Mapping[str, str]) -> str:
    return f"{servers[connection['server']]}{connection['path']}"


def _login(person: Mapping[str, Any], slug: str) -> str:
    return f"{str(person['name']).split()[0].lower()}@{slug}"


def _actor(member: Membership) -> Actor:
    return Actor("person", member.user_id, member.name)
