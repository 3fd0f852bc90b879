"""Differences between two definitions in words."""

from collections.abc import Callable

from django.utils.translation import gettext as _

from automation.definitions.diff import Change


def change_sentence(change: Change) -> str:
    """One difference, such as “The step wait is changed: for.”."""
    kind = change.part or "word"
    places = {"id": change.id, "word": change.pointer.lstrip("/"), "words": ", ".join(_changed_words(change))}
    return _SENTENCES[kind, change.kind]() % places


def _changed_words(change: Change) -> list[str]:
    if not isinstance(change.before, dict) or not isinstance(change.after, dict):
        return []
    names = dict.fromkeys((*change.before, *change.after))
    return [name for name in names if change.before.get(name) != change.after.get(name)]


_SENTENCES: dict[tuple[str, str], Callable[[], str]] = {
    ("word", "added"): lambda: _("“%(word)s” is new."),
    ("word", "removed"): lambda: _("“%(word)s” is gone."),
    ("word", "changed"): lambda: _("“%(word)s” is changed."),
    ("step", "added"): lambda: _("The step “%(id)s” is new."),
    ("step", "removed"): lambda: _("The step “%(id)s” is gone."),
    ("step", "changed"): lambda: _("The step “%(id)s” is changed: %(words)s."),
    ("step", "moved"): lambda: _("The step “%(id)s” has moved."),
    ("arm", "added"): lambda: _("The arm “%(id)s” is new."),
    ("arm", "removed"): lambda: _("The arm “%(id)s” is gone."),
    ("arm", "changed"): lambda: _("The arm “%(id)s” is changed: %(words)s."),
    ("arm", "moved"): lambda: _("The arm “%(id)s” has moved."),
    ("group", "added"): lambda: _("The group of conditions “%(id)s” is new."),
    ("group", "removed"): lambda: _("The group of conditions “%(id)s” is gone."),
    ("group", "changed"): lambda: _("The group of conditions “%(id)s” is changed: %(words)s."),
    ("group", "moved"): lambda: _("The group of conditions “%(id)s” has moved."),
    ("condition", "added"): lambda: _("The comparison “%(id)s” is new."),
    ("condition", "removed"): lambda: _("The comparison “%(id)s” is gone."),
    ("condition", "changed"): lambda: _("The comparison “%(id)s” is changed: %(words)s."),
    ("condition", "moved"): lambda: _("The comparison “%(id)s” has moved."),
}
