"""People make, change, publish, switch, order and delete rules by plain forms."""

import json
import re
from copy import deepcopy

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from factories import TicketFactory
from operating import DEFINITION, make_dead_run, make_live_run, make_rule, make_run

from automation.engine import rules as engine_rules
from automation.engine.operate import pause
from automation.models import Event, Rule, RuleDraft
from automation.web import texts

HOSTILE = '<img src=x onerror="alert(1)">'


def changed(text: str = "Very urgent!") -> dict:
    definition = deepcopy(DEFINITION)
    definition["steps"][0]["params"]["text"] = text
    return definition


def save(client, address, definition, revision, **more):
    text = definition if isinstance(definition, str) else json.dumps(definition)
    return client.post(address, {"definition": text, "revision": revision, **more})


@pytest.fixture
def rule(acme):
    return make_rule(acme.tenant)


def test_a_new_rule_is_off_and_opens_its_draft(people):
    answer = people["editor"].post(people.page("rules/new/"), {"name": "Escalate", "start": "example"}, follow=True)
    rule = Rule.objects.get()
    assert (rule.name, rule.on, rule.published) == ("Escalate", False, None)
    assert "None. It can be published." in answer.content.decode()


@pytest.mark.parametrize(("name", "says"), [("", "Give the rule a name"), ("x" * 121, "at most 120 characters")])
def test_a_name_that_does_not_fit_is_said_beside_it_and_kept(people, name, says):
    answer = people["editor"].post(people.page("rules/new/"), {"name": name, "start": "empty"})
    text = answer.content.decode()
    assert answer.status_code == 422
    assert text.count(says) == 2  # in the summary and at the field
    assert f'value="{name}"' in text
    assert re.search(r"<title>\s*Problem:", text)
    assert not Rule.objects.exists()


def test_a_draft_with_problems_is_saved_and_each_problem_names_its_line(people, rule, text_of):
    broken = changed()
    broken["steps"][0]["action"] = "no_such_action"
    page = people.page(f"rules/{rule.pk}/draft/")
    assert save(people["editor"], page, broken, 0).status_code == 302
    draft = RuleDraft.objects.get(rule=rule)
    assert draft.definition["steps"][0]["action"] == "no_such_action"
    text = text_of(people["editor"], page)
    line = next(n for n, line in enumerate(texts.write(draft.definition).split("\n"), 1) if "no_such_action" in line)
    assert "/steps/0/action" in text
    assert f'data-line="{line}"' in text


@pytest.mark.parametrize(
    ("typed", "says"),
    [
        ("{ not json", "This is not JSON"),
        ("[]", "begins with {"),
        ('{"trigger": NaN}', "NaN is not a number"),
        ('{"a": "\\u0000"}', "stored"),
        ('{"a": "\\ud800"}', "stored"),
        ('{"a": 1e999}', "JSON"),
        ('{"a":' * 61 + "1" + "}" * 61, "deep"),
        (json.dumps({"a": "x" * 70_000}), "64 KB"),
    ],
)
def test_what_cannot_be_saved_is_explained_and_every_letter_typed_is_still_there(people, rule, typed, says):
    answer = save(people["editor"], people.page(f"rules/{rule.pk}/draft/"), typed, 0)
    assert answer.status_code == 422
    assert says in answer.content.decode()
    assert answer.context["text"] == typed
    assert RuleDraft.objects.get(rule=rule).revision == 0


def test_the_second_of_two_editors_sees_what_the_first_did_and_chooses(people, rule):
    page = people.page(f"rules/{rule.pk}/draft/")
    base = texts.write(RuleDraft.objects.get(rule=rule).definition)
    save(people["editor"], page, changed("theirs"), 0)
    answer = save(people["publisher"], page, changed("mine"), 0, base=base)
    text = answer.content.decode()
    assert answer.status_code == 409
    assert "Editor Person saved the draft while you were editing" in text
    assert [
        (change.before["params"]["text"], change.after["params"]["text"]) for change in answer.context["theirs"]
    ] == [("Urgent!", "theirs")]
    assert "mine" in answer.context["text"]
    assert RuleDraft.objects.get(rule=rule).definition["steps"][0]["params"]["text"] == "theirs"
    again = save(people["publisher"], page, changed("mine"), answer.context["draft"].revision)
    assert again.status_code == 302
    assert RuleDraft.objects.get(rule=rule).definition["steps"][0]["params"]["text"] == "mine"


def test_publishing_shows_the_difference_and_makes_the_draft_live(people, rule, text_of):
    engine_rules.save_draft(rule.pk, changed(), base_revision=0)
    page = people.page(f"rules/{rule.pk}/publish/")
    shown = text_of(people["publisher"], page)
    assert "Changed" in shown
    assert "Very urgent!" in shown
    answer = people["publisher"].post(page, {"revision": 1, "note": "louder"}, follow=True)
    assert "Version 2 is live" in answer.content.decode()
    rule.refresh_from_db()
    assert (rule.published.number, rule.published.note) == (2, "louder")


def test_publishing_something_else_than_was_looked_at_is_refused(people, rule):
    engine_rules.save_draft(rule.pk, changed(), base_revision=0)
    engine_rules.save_draft(rule.pk, changed("And again"), base_revision=1)
    answer = people["publisher"].post(people.page(f"rules/{rule.pk}/publish/"), {"revision": 1})
    assert answer.status_code == 409
    assert "changed the draft meanwhile" in answer.content.decode()
    assert "And again" in answer.content.decode()
    rule.refresh_from_db()
    assert rule.published.number == 1


def test_a_draft_with_problems_cannot_be_published(people, rule, text_of):
    engine_rules.save_draft(rule.pk, {**DEFINITION, "steps": [{"kind": "dance"}]}, base_revision=0)
    page = people.page(f"rules/{rule.pk}/publish/")
    assert "can't be published yet" in text_of(people["publisher"], page).replace("&#x27;", "'")
    assert people["publisher"].post(page, {"revision": 1}).status_code == 422


def test_publishing_twice_happens_once(people, rule):
    engine_rules.save_draft(rule.pk, changed(), base_revision=0)
    for _press in range(2):
        answer = people["publisher"].post(people.page(f"rules/{rule.pk}/publish/"), {"revision": 1}, follow=True)
    assert "Nothing to publish" in answer.content.decode()
    assert rule.versions.count() == 2


def test_an_old_version_comes_back_as_a_draft(people, rule):
    engine_rules.save_draft(rule.pk, changed(), base_revision=0)
    engine_rules.publish(rule.pk, revision=1)
    page = people.page(f"rules/{rule.pk}/versions/1/restore/")
    people["editor"].post(page)
    assert RuleDraft.objects.get(rule=rule).definition == DEFINITION
    assert "They are replaced" in people["editor"].post(page).content.decode()
    assert "is the draft now" in people["editor"].post(page, {"replace": "yes"}, follow=True).content.decode()
    assert people["editor"].get(people.page(f"rules/{rule.pk}/versions/9/")).status_code == 404


def test_switching_off_asks_with_the_number_of_runs_and_does_as_told(people, rule, text_of):
    run = make_live_run(rule, state="waiting")
    page = people.page(f"rules/{rule.pk}/off/")
    assert "1 run under way" in text_of(people["publisher"], page)
    people["publisher"].post(page, {"waiting": "cancel"})
    rule.refresh_from_db()
    run.refresh_from_db()
    assert (rule.on, run.state) == (False, "cancelled")


def test_a_switch_that_is_not_one_of_the_three_changes_nothing(people, rule):
    people["publisher"].post(people.page(f"rules/{rule.pk}/off/"), {"waiting": "explode"})
    rule.refresh_from_db()
    assert rule.on


def test_a_rule_that_was_never_published_cannot_be_switched_on(people, acme):
    rule = make_rule(acme.tenant, published=False)
    answer = people["publisher"].post(people.page(f"rules/{rule.pk}/on/"), follow=True)
    assert "Publish the rule before" in answer.content.decode()


def test_rules_move_by_one_place_and_stop_at_the_ends(people, acme):
    first, second = (engine_rules.create(name) for name in ("First", "Second"))
    move = people.page("rules/{}/move/")
    people["publisher"].post(move.format(second.pk), {"to": "up"})
    assert list(Rule.objects.order_by("position").values_list("name", flat=True)) == ["Second", "First"]
    people["publisher"].post(move.format(second.pk), {"to": "up"})
    people["publisher"].post(move.format(first.pk), {"to": "down"})
    assert list(Rule.objects.order_by("position").values_list("name", flat=True)) == ["Second", "First"]


def test_deleting_needs_the_name_and_cancels_what_waits(people, rule, text_of):
    run = make_live_run(rule, state="waiting")
    page = people.page(f"rules/{rule.pk}/delete/")
    assert "1 run that is under way is cancelled" in text_of(people["publisher"], page)
    assert people["publisher"].post(page, {"name": "something else"}).status_code == 422
    people["publisher"].post(page, {"name": f"  {rule.name} "})
    run.refresh_from_db()
    assert run.state == "cancelled"
    assert people["publisher"].get(people.page(f"rules/{rule.pk}/")).status_code == 404


def test_a_deleted_rule_is_brought_back_switched_off(people, rule, text_of):
    engine_rules.delete(rule.pk)
    assert rule.name not in text_of(people["publisher"], people.page("rules/"))
    assert "Bring back" in text_of(people["publisher"], people.page("rules/?state=deleted"))
    assert "Bring back" not in text_of(people["viewer"], people.page("rules/?state=deleted"))
    people["publisher"].post(people.page(f"rules/{rule.pk}/undelete/"))
    rule.refresh_from_db()
    assert (rule.deleted_at, rule.on) == (None, False)


def test_renaming_keeps_what_was_typed_when_it_does_not_fit(people, rule):
    page = people.page(f"rules/{rule.pk}/rename/")
    assert people["editor"].post(page, {"name": "x" * 200}).status_code == 422
    assert people["editor"].post(page, {"name": HOSTILE}, follow=True).status_code == 200
    rule.refresh_from_db()
    assert rule.name == HOSTILE


def test_one_rule_is_paused_with_a_reason_and_resumed(people, rule, text_of):
    page = people.page(f"rules/{rule.pk}/")
    assert people["publisher"].post(f"{page}pause/", {"reason": ""}).status_code == 422
    people["publisher"].post(f"{page}pause/", {"reason": "too loud"})
    assert "too loud" in text_of(people["viewer"], page)
    assert "On, but paused" in text_of(people["viewer"], people.page("rules/"))
    people["publisher"].post(f"{page}resume/")
    assert pause.open_pause(rule.pk) is None


def test_a_rule_for_hands_is_started_on_a_record_by_an_agent(people, acme, text_of):
    ticket = TicketFactory(tenant=acme.tenant, subject="Leaking pipe")
    trigger = {"kind": "manual", "params": {"model": "helpdesk.ticket"}}
    rule = make_rule(acme.tenant, definition={**DEFINITION, "trigger": trigger, "condition": None})
    page = people.page(f"rules/{rule.pk}/run/")
    assert "Leaking pipe" in text_of(people["agent"], page)
    assert "Leaking pipe" not in text_of(people["agent"], f"{page}?q=nothing+like+it")
    assert people["agent"].post(page, {"record": "999999999"}).status_code == 422
    before = Event.objects.filter(kind="manual").count()
    answer = people["agent"].post(page, {"record": ticket.pk})
    assert answer.headers["Location"].endswith(f"/runs/?rule={rule.pk}")
    assert Event.objects.filter(kind="manual").count() == before + 1
    assert people["viewer"].get(page).status_code == 403


def test_a_rule_that_hands_do_not_start_has_no_such_page(people, rule):
    assert people["agent"].get(people.page(f"rules/{rule.pk}/run/")).status_code == 404


def test_the_list_tells_sentence_state_counts_and_problems(people, acme, text_of):
    good = make_rule(acme.tenant, name="Good one")
    make_run(good, state="succeeded")
    make_dead_run(good)
    lost = deepcopy(DEFINITION)
    lost["condition"]["field"] = "crm_id"
    make_rule(acme.tenant, name="Old sync", definition=lost, on=False)
    text = text_of(people["viewer"], people.page("rules/"))
    assert "priority becomes urgent" in text
    assert "1 done" in text
    assert "1 failed" in text
    assert "1 dead letter" in text
    assert "crm_id" in text
    assert "2 rules, 1 on." in text
    assert "Good one" not in text_of(people["viewer"], people.page("rules/?q=old+SYNC"))
    assert "Old sync" not in text_of(people["viewer"], people.page("rules/?state=on"))
    assert "No rule matches" in text_of(people["viewer"], people.page("rules/?q=zzz"))


def test_an_empty_list_says_what_a_rule_is(people, text_of):
    assert "No rules yet" in text_of(people["viewer"], people.page("rules/"))


def test_the_list_asks_the_database_equally_often_however_many_rules_there_are(people, acme):
    def queries() -> int:
        with CaptureQueriesContext(connection) as asked:
            people["publisher"].get(people.page("rules/"))
        return len(asked)

    make_rule(acme.tenant)
    queries()
    few = queries()
    for number in range(15):
        make_run(make_rule(acme.tenant, name=f"Rule {number}", position=number), state="succeeded")
    assert queries() == few
    assert few <= 18


def test_a_long_list_has_pages_and_a_moved_rule_is_shown_on_its_own(people, acme, text_of):
    rules = [make_rule(acme.tenant, name=f"Rule {n:02}", position=n) for n in range(1, 53)]
    assert "Rule 51" not in text_of(people["publisher"], people.page("rules/"))
    assert "Rule 51" in text_of(people["publisher"], people.page("rules/?page=2"))
    assert "Rule 51" in text_of(people["publisher"], people.page("rules/?q=rule+51"))
    answer = people["publisher"].post(people.page(f"rules/{rules[49].pk}/move/"), {"to": "down"})
    assert answer.headers["Location"] == people.page(f"rules/?page=2#down-{rules[49].pk}")


@pytest.mark.parametrize("path", ["rules/", "rules/{rule}/", "rules/{rule}/draft/", "rules/{rule}/publish/", "runs/"])
def test_hostile_names_are_shown_as_they_are(people, acme, text_of, path):
    rule = make_rule(acme.tenant, name=HOSTILE, definition=changed(HOSTILE))
    engine_rules.save_draft(rule.pk, changed(f"</textarea>{HOSTILE}"), base_revision=0)
    make_run(rule, state="succeeded")
    text = text_of(people["admin"], people.page(path.format(rule=rule.pk)))
    assert "<img" not in text
    assert "&lt;img src=x" in text


@pytest.mark.parametrize("way", ["sideways", ""])
def test_a_rule_that_is_to_move_nowhere_stays_and_the_page_says_so(people, acme, way):
    rule = make_rule(acme.tenant)
    answer = people["publisher"].post(people.page(f"rules/{rule.pk}/move/"), {"to": way})
    assert answer.status_code == 422
    assert "Nothing was moved" in answer.content.decode()


def test_resuming_a_rule_that_is_not_paused_says_so(people, acme):
    rule = make_rule(acme.tenant)
    answer = people["publisher"].post(people.page(f"rules/{rule.pk}/resume/"), follow=True)
    assert "t paused." in answer.content.decode()
    assert "runs again" not in answer.content.decode()


def test_a_text_too_large_for_any_page_is_refused_in_words(people, acme):
    rule = make_rule(acme.tenant)
    answer = people["editor"].post(people.page(f"rules/{rule.pk}/draft/"), {"definition": "x" * 3_000_000})
    text = answer.content.decode()
    assert answer.status_code == 413
    assert "2.5\N{NO-BREAK SPACE}MB at most" in text
    assert "262144 characters at most" in text
    assert "what you typed is still there" in text
