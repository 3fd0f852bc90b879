"""Names records for people."""

from collections.abc import Iterable

from django.utils.translation import gettext as _

from automation.catalog import registry

Key = tuple[str, int]


def labels(keys: Iterable[Key | None]) -> dict[Key, str]:
    """{("helpdesk.ticket", 12): "Printer on fire (ticket 12)"} of the current tenant's records; one query a model.

    A record that is gone, or another tenant's, is named by its number only.
    """
    wanted: dict[str, set[int]] = {}
    for key in keys:
        if key is not None:
            wanted.setdefault(key[0], set()).add(key[1])
    found: dict[Key, str] = {}
    for model, ids in wanted.items():
        found |= _of_model(model, ids)
    return found


def label(model: str, record: int | None) -> str:
    """One record's name; "" where there is none."""
    return "" if record is None else labels([(model, record)])[(model, record)]


def _of_model(model: str, ids: set[int]) -> dict[Key, str]:
    entry = registry.models.get(model)
    if entry is None:
        return {(model, one): f"{model} {one}" for one in ids}
    known: dict[int, str] = {}
    if entry.name_field:
        known = dict(entry.model._default_manager.filter(pk__in=ids).values_list("pk", entry.name_field))
    plain = {one: _("%(kind)s %(id)s") % {"kind": entry.label, "id": one} for one in ids}
    return {
        (model, one): _("%(name)s (%(record)s)") % {"name": known[one], "record": plain[one]}
        if known.get(one)
        else plain[one]
        for one in ids
    }
