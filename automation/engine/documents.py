"""Definitions on their way into the database: storable, valid, and told apart by their fingerprints."""

import hashlib
import json
from copy import deepcopy
from typing import Any

from django.utils.translation import gettext as _

from automation.catalog import registry
from automation.core.errors import DefinitionError
from automation.definitions.compile import compile_definition
from automation.definitions.guards import check_size
from automation.definitions.schema import parse
from automation.definitions.tree import give_ids
from automation.engine.operate import Refused
from automation.engine.references import References


def valid(definition: Any, references: References) -> dict[str, Any]:
    """The definition as it is published, with every id; DefinitionError with everything that is wrong."""
    document = parse(definition).to_json()
    compile_definition(document, registry, references)
    return document


def storable(definition: Any) -> dict[str, Any]:
    """A copy that the database can hold, with ids for all parts, so that they never change from here on.

    Raises `Refused` for what isn't a JSON object, is too large, too deeply nested, or holds a character that can't be
    stored.
    """
    if not isinstance(definition, dict):
        raise Refused(_("A definition is a JSON object."))
    try:
        check_size(definition)
    except DefinitionError as error:
        raise Refused("\n".join(str(problem) for problem in error.problems)) from error
    kept = deepcopy(definition)
    give_ids(kept)
    return kept


def fingerprint(definition: dict[str, Any]) -> str:
    """The sha256 of a definition, the same however its keys are ordered."""
    return hashlib.sha256(json.dumps(definition, sort_keys=True, separators=(",", ":")).encode()).hexdigest()
