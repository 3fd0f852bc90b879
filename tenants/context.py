"""Says which tenant this request or step acts for, and who is acting."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Literal

ActorKind = Literal["person", "api", "system"]


@dataclass(frozen=True, slots=True)
class Actor:
    """Who makes a change: `id` is a user's id for a person or a token, None for the system itself."""

    kind: ActorKind
    id: int | None
    name: str


NOBODY = Actor("system", None, "")


@dataclass(frozen=True, slots=True)
class _Scope:
    """One tenant's rows, or every tenant's when `tenant_id` is None."""

    tenant_id: int | None


# They follow a request or an async task; a new thread starts without a scope and must enter its own.
_scope: ContextVar[_Scope] = ContextVar("tenants_scope")
_actor: ContextVar[Actor] = ContextVar("tenants_actor", default=NOBODY)


class NoTenantError(LookupError):
    """Tenant-owned rows were asked for, and nothing says which tenant's."""


class OtherTenantError(LookupError):
    """A row of one tenant was about to be written while acting for another."""


def current_tenant() -> int:
    """Return the id of the tenant acted for; raise `NoTenantError` when there is none, or when the scope is lifted."""
    tenant_id = tenant_filter()
    if tenant_id is None:
        raise NoTenantError("Every tenant is in scope here: name the one that is meant.")
    return tenant_id


def tenant_filter() -> int | None:
    """Return the tenant queries are limited to, None inside `every_tenant()`; raise `NoTenantError` without a scope."""
    scope = _scope.get(None)
    if scope is None:
        raise NoTenantError("No tenant is set: enter acting_for(tenant_id), or every_tenant() where staff may see all.")
    return scope.tenant_id


def has_scope() -> bool:
    """Say whether a tenant, or every tenant, has been entered here."""
    return _scope.get(None) is not None


def owner_for_write(tenant_id: int | None) -> int:
    """Return whose row is being written: the tenant acted for where `tenant_id` is None.

    Raises `NoTenantError` when neither says it, `OtherTenantError` when the two differ. Inside `every_tenant()`
    and outside any scope the row's own tenant counts.
    """
    if tenant_id is None:
        return current_tenant()
    if has_scope() and tenant_filter() not in (None, tenant_id):
        raise OtherTenantError(
            f"A row of tenant {tenant_id} can't be written while acting for tenant {tenant_filter()}."
        )
    return tenant_id


@contextmanager
def acting_for(tenant_id: int, actor: Actor | None = None) -> Iterator[None]:
    """Limit tenant-owned queries to one tenant, and say who acts where `actor` is given; the outer scope comes back."""
    token = _scope.set(_Scope(tenant_id))
    try:
        if actor is None:
            yield
        else:
            with acting_as(actor):
                yield
    finally:
        _scope.reset(token)


@contextmanager
def every_tenant() -> Iterator[None]:
    """Lift the scope, so that queries see every tenant: for staff in the admin and the engine, never for a page."""
    token = _scope.set(_Scope(None))
    try:
        yield
    finally:
        _scope.reset(token)


def current_actor() -> Actor:
    """Return who acts, `NOBODY` when nobody said."""
    return _actor.get()


@contextmanager
def acting_as(actor: Actor) -> Iterator[None]:
    """Say who makes the changes inside."""
    token = _actor.set(actor)
    try:
        yield
    finally:
        _actor.reset(token)
