"""Makes a row of any tenant-owned model, with the least that it needs."""

from datetime import UTC, datetime
from typing import Any

from django.contrib.auth.models import User
from django.db import models

from tenants.context import acting_for
from tenants.models import Tenant

NUMBER = 424_242  # the id of every row made here, so that an address with any other tenant's id can be guessed
MOMENT = datetime(2026, 3, 1, 12, tzinfo=UTC)
BY_TYPE: dict[type[models.Field], Any] = {
    models.CharField: "x",
    models.TextField: "x",
    models.EmailField: "x@example.com",
    models.IntegerField: 1,
    models.BigIntegerField: 1,
    models.JSONField: {},
    models.DateTimeField: MOMENT,
    models.BooleanField: False,
    models.FloatField: 1.0,
}


def row_of(model: type[models.Model], tenant: Tenant, **given: Any) -> models.Model:
    """Return the tenant's row of that model, made with what it refers to where it isn't there."""
    with acting_for(tenant.pk):
        found = model._base_manager.filter(pk=NUMBER).first()
        if found is not None:
            return found
        values = {field.name: value_of(field, tenant) for field in model._meta.concrete_fields if needed(field)}
        row = model(**{"pk": NUMBER, **values, **given})
        row.save(force_insert=True)
        return row


def needed(field: models.Field[Any, Any]) -> bool:
    if field.generated:
        return False
    return not (field.null or field.primary_key or field.has_default() or field.has_db_default())


def value_of(field: models.Field[Any, Any], tenant: Tenant) -> Any:
    if not isinstance(field, models.ForeignKey):
        if field.choices:
            return field.choices[0][0]
        return next(value for kind, value in BY_TYPE.items() if isinstance(field, kind))
    if field.related_model is Tenant:
        return tenant
    if field.related_model is User:
        return User.objects.get_or_create(username=f"someone-{tenant.pk}")[0]
    return row_of(field.related_model, tenant)
