"""Each role sees what it may do, and the server refuses what it may not."""

import pytest
from operating import make_dead_run, make_live_run, make_rule

from automation.models import Rule, Run
from tenants.roles import ROLES, includes

READ = [
    *("rules/", "rules/{rule}/", "rules/{rule}/versions/1/"),
    *("runs/", "runs/{run}/", "dead-letters/", "notices/", "pause/"),
]
ACTS = {
    "editor": ["rules/new/", "rules/{rule}/draft/", "rules/{rule}/rename/", "rules/{rule}/versions/1/restore/"],
    "publisher": [
        "rules/{rule}/publish/",
        "rules/{rule}/on/",
        "rules/{rule}/off/",
        "rules/{rule}/move/",
        "rules/{rule}/pause/",
        "rules/{rule}/resume/",
        "rules/{rule}/delete/",
        "rules/{rule}/undelete/",
        "runs/{run}/cancel/",
        "dead-letters/{letter}/retry/",
        "dead-letters/{letter}/discard/",
        "pause/",
        "pause/resume/",
    ],
}


@pytest.fixture
def rows(acme):
    rule = make_rule(acme.tenant)
    letter = make_dead_run(rule)
    return {"rule": rule.pk, "run": make_live_run(rule).pk, "letter": letter.pk}


@pytest.mark.parametrize("path", READ)
@pytest.mark.parametrize("role", ROLES)
def test_everybody_in_the_tenant_may_look(people, rows, role, path):
    assert people[role].get(people.page(path.format(**rows))).status_code == 200


@pytest.mark.parametrize(("wanted", "path"), [(role, path) for role, paths in ACTS.items() for path in paths])
def test_what_a_role_may_not_do_is_refused_and_changes_nothing(people, rows, wanted, path):
    before = (list(Rule.objects.values()), list(Run.objects.values("id", "state")))
    for role in ROLES:
        if not includes(role, wanted):
            answer = people[role].post(people.page(path.format(**rows)), {"level": "hold", "reason": "x"})
            assert answer.status_code == 403, (role, path)
            assert "Your role" in answer.content.decode()
    assert (list(Rule.objects.values()), list(Run.objects.values("id", "state"))) == before


@pytest.mark.parametrize(
    ("role", "shown", "hidden"),
    [
        ("viewer", ["What it does"], ["Edit draft", "Switch off", "Delete the rule", "Review and publish"]),
        ("agent", ["What it does"], ["Edit draft", "Switch off"]),
        ("editor", ["Edit draft", "Rename"], ["Switch off", "Delete the rule", "Review and publish"]),
        ("publisher", ["Edit draft", "Switch off", "Delete the rule"], []),
    ],
)
def test_a_control_that_a_role_can_never_use_is_not_shown(people, rows, text_of, role, shown, hidden):
    text = text_of(people[role], people.page(f"rules/{rows['rule']}/"))
    assert all(word in text for word in shown)
    assert not any(word in text for word in hidden)


def test_only_admins_are_offered_to_cancel_everything_and_only_they_can(people, text_of):
    assert "cancel every run" not in text_of(people["publisher"], people.page("pause/"))
    assert "cancel every run" in text_of(people["admin"], people.page("pause/"))
    asked = {"level": "cancel", "reason": "stop it all"}
    assert people["publisher"].post(people.page("pause/"), asked).status_code == 403
    assert people["admin"].post(people.page("pause/"), asked).status_code == 302


def test_someone_who_is_not_logged_in_is_sent_to_log_in_and_comes_back(client, people):
    answer = client.get(people.page("runs/?state=failed"))
    assert answer.headers["Location"] == "/accounts/login/?next=/t/acme/runs/%3Fstate%3Dfailed"
