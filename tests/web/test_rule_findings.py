"""The pages of a rule say what to look at before it happens: on the rule itself, and before a draft is published."""

from typing import Any

import pytest

from automation.engine import rules

pytestmark = pytest.mark.django_db


def flipping(to: str, *, at: str) -> dict[str, Any]:
    return {
        "schema_version": 1,
        "trigger": {"kind": "record_changed", "params": {"model": "helpdesk.ticket", "on": ["updated"]}},
        "condition": {"field": "status", "op": "changed_to", "value": at},
        "steps": [
            {
                "id": "set",
                "kind": "action",
                "action": "set_fields",
                "version": 1,
                "params": {"fields": [{"field": "status", "value": to}]},
            }
        ],
    }


def test_a_loop_is_shown_before_the_draft_that_closes_it_is_published(people, acme, text_of):
    there = rules.create("There", definition=flipping("pending", at="open"))
    rules.publish(there.pk, revision=there.draft.revision)
    rules.switch_on(there.pk)
    back = rules.create("Back", definition=flipping("open", at="pending"))
    said = "These rules start each other in a circle: “There” (sets status) → “Back” (sets status) → “There”."
    assert said in text_of(people["publisher"], people.page(f"rules/{back.pk}/publish/"))
    assert "To look at" not in text_of(people["viewer"], people.page(f"rules/{there.pk}/"))
    rules.publish(back.pk, revision=back.draft.revision)
    rules.switch_on(back.pk)
    assert said in text_of(people["viewer"], people.page(f"rules/{there.pk}/"))
