"""The field of a record's tags."""

import unicodedata
from collections.abc import Iterable
from typing import Any

from django.contrib.postgres.fields import ArrayField
from django.db import models

TAG_LENGTH = 40


def normalise(tags: Iterable[str]) -> list[str]:
    """Return the tags composed, without outer and doubled white space, each once, sorted; empty ones go."""
    plain = {" ".join(unicodedata.normalize("NFC", tag).split()) for tag in tags}
    return sorted(plain - {""})


class TagsField(ArrayField):  # type: ignore[type-arg]  # the field takes none at run time
    """A set of short texts; however it is written, the database holds it sorted and without doubles."""

    def __init__(self, **kwargs: Any) -> None:
        settings: dict[str, Any] = {"default": list, "blank": True} | kwargs
        super().__init__(**settings | {"base_field": models.CharField(max_length=TAG_LENGTH)})

    def get_db_prep_value(self, value: Any, connection: Any, prepared: bool = False) -> Any:
        """Normalise on the way into the database."""
        if isinstance(value, list | tuple | set | frozenset):
            value = normalise(value)
        return super().get_db_prep_value(value, connection, prepared)

    def pre_save(self, model_instance: models.Model, add: bool) -> Any:
        """Show the instance what the database will hold."""
        value = super().pre_save(model_instance, add)
        if isinstance(value, list | tuple | set | frozenset):
            value = normalise(value)
            setattr(model_instance, self.attname, value)
        return value
