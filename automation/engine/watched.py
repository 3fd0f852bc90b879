"""The base of a watched model: every way to write its rows also writes the event."""

from typing import TypeVar

from django.db import models

from tenants.managers import TenantManager, TenantQuerySet
from tenants.models import TenantOwned

M = TypeVar("M", bound=models.Model)


class WatchedQuerySet(TenantQuerySet[M]):
    """Rows whose changes are events."""


class WatchedManager(TenantManager[M]):
    """The tenant's own rows, written so that changes are events."""

    _queryset_class = WatchedQuerySet


class Watched(TenantOwned):
    """A record, or a part of one, whose changes are events."""

    objects = WatchedManager()

    class Meta:
        abstract = True
