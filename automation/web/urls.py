"""The addresses of the automation's pages below /t/<slug>/."""

from django.urls import path

from automation.web import dead_letters, drafts, home, manual, notices, pause, rule_list, rules, runs, trace

app_name = "automation"

urlpatterns = [
    path("", home.tenant, name="tenant"),
    path("rules/", rule_list.rules, name="rules"),
    path("rules/new/", rules.create, name="rule_new"),
    path("rules/<int:rule_id>/", rules.rule, name="rule"),
    path("rules/<int:rule_id>/rename/", rules.rename, name="rule_rename"),
    path("rules/<int:rule_id>/move/", rules.move, name="rule_move"),
    path("rules/<int:rule_id>/on/", rules.switch_on, name="rule_on"),
    path("rules/<int:rule_id>/off/", rules.switch_off, name="rule_off"),
    path("rules/<int:rule_id>/pause/", rules.hold, name="rule_pause"),
    path("rules/<int:rule_id>/resume/", rules.go_on, name="rule_resume"),
    path("rules/<int:rule_id>/delete/", rules.delete, name="rule_delete"),
    path("rules/<int:rule_id>/undelete/", rules.undelete, name="rule_undelete"),
    path("rules/<int:rule_id>/run/", manual.by_hand, name="rule_run"),
    path("rules/<int:rule_id>/draft/", drafts.draft, name="rule_draft"),
    path("rules/<int:rule_id>/publish/", drafts.publish, name="rule_publish"),
    path("rules/<int:rule_id>/versions/<int:number>/", rules.version, name="rule_version"),
    path("rules/<int:rule_id>/versions/<int:number>/restore/", rules.restore, name="rule_restore"),
    path("runs/", runs.runs, name="runs"),
    path("runs/<int:run_id>/", trace.run, name="run"),
    path("runs/<int:run_id>/cancel/", runs.cancel, name="run_cancel"),
    path("dead-letters/", dead_letters.dead_letters, name="dead_letters"),
    path("dead-letters/<int:letter_id>/retry/", dead_letters.retry, name="dead_letter_retry"),
    path("dead-letters/<int:letter_id>/discard/", dead_letters.discard, name="dead_letter_discard"),
    path("notices/", notices.notices, name="notices"),
    path("pause/", pause.overview, name="pause"),
    path("pause/resume/", pause.resume, name="resume"),
]
