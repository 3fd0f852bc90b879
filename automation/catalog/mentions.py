"""Where else people may be mentioned: texts of the host's own tables that go along when a person is erased."""

from django.core.exceptions import FieldDoesNotExist
from django.db import models

mentions: dict[type[models.Model], tuple[str, ...]] = {}
"""Names of text and JSON columns by model."""


def may_mention(model: type[models.Model], *fields: str) -> None:
    """Say that these texts or JSON values of a tenant's table may name a person; erasing one takes the words out.

    Not for a record's own texts, which the host deletes or empties itself. Raises FieldDoesNotExist.
    """
    for name in fields:
        if not isinstance(model._meta.get_field(name), models.CharField | models.TextField | models.JSONField):
            raise FieldDoesNotExist(f"{name!r} of {model._meta.label_lower} is neither a text nor JSON")
    mentions[model] = fields
