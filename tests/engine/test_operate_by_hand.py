"""What people do to single runs, steps and timers, seen from a worker on the database's own lanes."""

from datetime import timedelta
from typing import Any

import pytest

from automation.catalog.action import Outcome
from automation.engine import rules
from automation.engine.effects import EffectCall
from automation.engine.operate import Refused
from automation.engine.operate import runs as verbs
from automation.engine.operate import timers as timer_verbs
from automation.engine.operate.dead_letters import retry
from automation.engine.operate.expiry import expire_due
from automation.engine.operate.leaving import left_behind
from automation.engine.operate.replay import replay
from automation.engine.operate.steps import complete, skip
from automation.engine.simulate import succeed
from automation.engine.trace import trace
from automation.models import Attempt, DeadLetter, Lane, Rule, Run, StepExecution, Timer
from automation.store import claims, clock
from northwind.helpdesk.models import Comment, Ticket
from tenants.context import acting_for, every_tenant
from tenants.models import AuditEntry
from tests.engine.crew import Crew
from tests.engine.world import World, leaf, make_world, step, when
from tests.factories import TicketFactory

pytestmark = pytest.mark.django_db
WAIT = {"id": "wait", "kind": "delay", "for": "PT1H"}


def hook(id_: str = "hook", **more: Any) -> dict[str, Any]:
    once = {"max_attempts": 1, "base_delay": "PT1S", "factor": 1.0, "max_delay": "PT1S", "jitter": False}
    return {**step(id_, "call_webhook", connection="hook"), "retry": once, **more}


def note(id_: str, text: str) -> dict[str, Any]:
    return step(id_, "add_note", text=text)


def tell(world: World, *steps: dict[str, Any], **definition: Any) -> Rule:
    """A rule that listens to the priority of tickets."""
    return world.rule("Tell", *steps, trigger=when("updated", fields=["priority"]), **definition)


def refused(call: EffectCall) -> Outcome:
    return Outcome.retry("503")


def changed(world: World, crew: Crew) -> Ticket:
    ticket: Ticket = TicketFactory(tenant=world.tenant)
    crew.work()
    world.change(ticket, run=False, priority="urgent")
    crew.work()
    return ticket


def notes(ticket: Ticket) -> list[str]:
    return list(Comment.objects.filter(ticket=ticket).order_by("id").values_list("body", flat=True))


def step_of(run: Run, path: str) -> StepExecution:
    return StepExecution.objects.get(run=run, path=path)


def claim(crew: Crew) -> list[claims.Claimed]:
    return claims.claim(crew.worker, pool="northwind", most=8, take=4, deadline=40, floor=-1, match_only=False)


class TestPausingOneRun:
    def test_it_does_nothing_until_it_goes_on_and_other_runs_do(self, world: World, crew: Crew) -> None:
        rule = tell(world, WAIT, hook())
        changed(world, crew)
        run = world.runs(rule)[0]
        due_at = Timer.objects.get(run_id=run.pk).due_at

        verbs.pause(run.pk, "look first")
        verbs.pause(run.pk)
        held = Timer.objects.get(run_id=run.pk)
        changed(world, crew)
        crew.skip_waiting()

        assert (held.state, held.due_at) == ("held", due_at)
        assert world.states(rule) == ["paused", "succeeded"]
        assert len(crew.calls()) == 1
        assert "paused by itself. Reason given: look first" in trace(run.pk).waiting

        verbs.resume(run.pk)
        verbs.resume(run.pk)
        assert world.states(rule) == ["waiting", "succeeded"]
        crew.skip_waiting()
        assert world.states(rule) == ["succeeded", "succeeded"]
        assert AuditEntry.objects.filter(target=f"run:{run.pk}", verb__in=["pause", "resume"]).count() == 2

    def test_the_step_under_way_ends_and_nothing_follows_it(self, world: World, crew: Crew) -> None:
        rule = tell(world, hook("one"), hook("two"))

        def pausing(call: EffectCall) -> Outcome:
            with acting_for(world.tenant.pk):
                verbs.pause(Run.objects.get().pk)
            return Outcome.done()

        crew.script = pausing
        changed(world, crew)
        run = world.runs(rule)[0]

        assert (run.state, step_of(run, "one").state, step_of(run, "two").state) == ("paused", "succeeded", "pending")
        assert Timer.objects.get(run_id=run.pk).state == "held"
        assert Lane.objects.get().running == 0

        crew.script = succeed
        verbs.resume(run.pk)
        crew.work()
        assert world.states(rule) == ["succeeded"]
        assert len(crew.calls()) == 2

    def test_claimed_and_not_begun_it_is_held_without_an_attempt(self, world: World, crew: Crew) -> None:
        rule = tell(world, WAIT, hook())
        changed(world, crew)
        Timer.objects.update(due_at=clock.now() - timedelta(hours=1))
        Lane.objects.update(due_hint=True)
        claimed = claim(crew)

        verbs.pause(world.runs(rule)[0].pk)
        with every_tenant():
            crew.cycle.turn(claimed)

        assert Timer.objects.get().state == "held"
        assert crew.calls() == []
        assert Lane.objects.get().running == 0

    def test_the_last_step_under_way_ends_a_paused_run(self, world: World, crew: Crew) -> None:
        rule = tell(world, hook())

        def pausing(call: EffectCall) -> Outcome:
            with acting_for(world.tenant.pk):
                verbs.pause(Run.objects.get().pk)
            return Outcome.done()

        crew.script = pausing
        changed(world, crew)

        assert world.states(rule) == ["succeeded"]

    def test_it_makes_no_sense_for_a_run_that_ended_or_waits_for_a_person(self, world: World, crew: Crew) -> None:
        tell(world, hook())
        changed(world, crew)
        run = Run.objects.get()

        with pytest.raises(Refused, match="has ended"):
            verbs.pause(run.pk)
        with pytest.raises(Refused, match="has ended"):
            verbs.resume(run.pk)

    def test_a_paused_run_can_be_cancelled(self, world: World, crew: Crew) -> None:
        rule = tell(world, WAIT, hook())
        changed(world, crew)
        run = world.runs(rule)[0]
        verbs.pause(run.pk)

        verbs.cancel(run.pk)

        assert world.states(rule) == ["cancelled cancelled_by"]
        assert not Timer.objects.filter(run_id=run.pk).exists()

    def test_cancelling_says_beforehand_what_it_leaves_behind(self, world: World, crew: Crew) -> None:
        rule = tell(world, hook("one"), WAIT, hook("two"))
        changed(world, crew)

        left = left_behind(world.runs(rule)[0].pk)

        assert (left.done, left.never, left.under_way, left.dead_letters) == (["one"], ["wait"], [], 0)


def test_a_paused_run_is_held_by_the_in_process_runner_too(world: World) -> None:
    rule = tell(world, WAIT, note("tell", "Hi"))
    ticket = world.ticket()
    world.change(ticket, run=False, priority="urgent")
    world.run_until_held()
    with world.acting():
        verbs.pause(world.runs(rule)[0].pk)
    world.run()
    assert world.states(rule) == ["paused"]

    with world.acting():
        verbs.resume(world.runs(rule)[0].pk)
    world.adopt_timers()
    world.run()

    assert world.states(rule) == ["succeeded"]
    with world.acting():
        assert notes(ticket) == ["Hi"]


class TestByHand:
    def test_a_dead_step_that_was_done_by_hand_lets_its_run_go_on_with_its_output(
        self, world: World, crew: Crew
    ) -> None:
        rule = tell(world, hook(), note("tell", "Called: {{ steps.hook.who }}"))
        crew.script = refused
        ticket = changed(world, crew)
        run = world.runs(rule)[0]

        complete(step_of(run, "hook").pk, output={"who": "Bo"}, reason="called myself")
        complete(step_of(run, "hook").pk, output={"who": "Cy"})
        crew.work()

        assert world.states(rule) == ["succeeded"]
        assert notes(ticket) == ["Called: Bo"]
        done = step_of(run, "hook")
        assert (done.state, done.reason, done.output) == ("succeeded", "by_hand", {"who": "Bo"})
        assert "Bo" not in str(AuditEntry.objects.filter(verb="complete").values_list("after", flat=True))
        assert DeadLetter.objects.get().resolution == "completed"
        [entry] = AuditEntry.objects.filter(verb="complete")
        assert (entry.actor_name, entry.reason, entry.target) == ("Ana", "called myself", f"run:{run.pk}")
        with pytest.raises(Refused, match="completed the step by hand"):
            retry(DeadLetter.objects.get().pk)

    def test_a_parked_step_that_is_skipped_lets_its_run_go_on(self, world: World, crew: Crew) -> None:
        world.connection("sms", "sms")
        text = {"connection": "sms", "to": "number", "number": "+15550100", "text": "Hello"}
        rule = tell(world, {**hook("sms"), "action": "send_sms", "params": text}, note("tell", "On"))
        crew.script = lambda call: Outcome.uncertain("no answer")
        ticket = changed(world, crew)
        assert world.states(rule) == ["waiting delivery_unknown"]
        run = world.runs(rule)[0]

        skip(step_of(run, "sms").pk)
        skip(step_of(run, "sms").pk)
        crew.work()

        assert world.states(rule) == ["succeeded"]
        assert notes(ticket) == ["On"]
        assert (step_of(run, "sms").state, step_of(run, "sms").effect_state) == ("skipped", "uncertain")

    @pytest.mark.fault(40)
    def test_completed_while_its_worker_is_on_it_the_workers_outcome_is_refused(self, world: World, crew: Crew) -> None:
        rule = tell(world, hook(), note("tell", "Said {{ steps.hook.by }}"))

        def meanwhile(call: EffectCall) -> Outcome:
            with world.acting():
                complete(call.step_id or 0, output={"by": "hand"})
            return Outcome.done({"by": "worker"})

        crew.script = meanwhile
        ticket = changed(world, crew)
        run = world.runs(rule)[0]

        assert run.state == "succeeded"
        assert notes(ticket) == ["Said hand"]
        assert step_of(run, "hook").output == {"by": "hand"}
        assert world.attempts(run, "hook") == ["cancelled"]
        assert Lane.objects.get().running == 0
        assert not Timer.objects.filter(run_id=run.pk).exists()

    def test_a_delay_that_is_completed_ends_now(self, world: World, crew: Crew) -> None:
        rule = tell(world, WAIT, hook())
        changed(world, crew)

        complete(step_of(world.runs(rule)[0], "wait").pk)
        crew.work()

        assert world.states(rule) == ["succeeded"]

    def test_the_last_step_completed_ends_the_run(self, world: World, crew: Crew) -> None:
        rule = tell(world, hook())
        crew.script = refused
        changed(world, crew)

        complete(step_of(world.runs(rule)[0], "hook").pk)

        assert world.states(rule) == ["succeeded"]

    def test_a_paused_run_stays_paused(self, world: World, crew: Crew) -> None:
        rule = tell(world, WAIT, hook())
        changed(world, crew)
        run = world.runs(rule)[0]
        verbs.pause(run.pk)

        skip(step_of(run, "wait").pk)
        crew.skip_waiting()

        assert world.states(rule) == ["paused"]
        assert Timer.objects.get(run_id=run.pk).state == "held"

    def test_what_has_ended_is_refused_and_so_is_an_output_that_is_none(self, world: World, crew: Crew) -> None:
        tell(world, hook())
        changed(world, crew)
        done = StepExecution.objects.get()

        for act in (complete, skip):
            with pytest.raises(Refused, match="has ended already"):
                act(done.pk)
        with pytest.raises(Refused, match="JSON object"):
            complete(done.pk, output=["no"])  # type: ignore[arg-type]
        with pytest.raises(Refused, match="64 KB"):
            complete(done.pk, output={"text": "x" * 70_000})

    def test_another_tenants_step_is_as_if_it_did_not_exist(self, world: World, crew: Crew) -> None:
        rule = tell(world, WAIT)
        changed(world, crew)
        run = world.runs(rule)[0]
        step_id, timer_id = step_of(run, "wait").pk, Timer.objects.get(run_id=run.pk).pk
        other = make_world()

        with other.acting():
            for verb in (complete, skip):
                with pytest.raises(StepExecution.DoesNotExist):
                    verb(step_id)
            for act in (verbs.pause, verbs.resume, verbs.cancel, replay, left_behind):
                with pytest.raises(Run.DoesNotExist):
                    act(run.pk)
            for timed in (timer_verbs.run_now, timer_verbs.cancel):
                with pytest.raises(Timer.DoesNotExist):
                    timed(timer_id)


class TestTimers:
    def test_a_delay_is_put_off_then_made_due_now(self, world: World, crew: Crew) -> None:
        rule = tell(world, WAIT, hook())
        changed(world, crew)
        timer, later = Timer.objects.get(), clock.now() + timedelta(days=3)

        timer_verbs.postpone(timer.pk, until=later, step_id=timer.step_id)
        timer_verbs.postpone(timer.pk, until=later)
        crew.skip_waiting()
        assert world.states(rule) == ["waiting"]
        timer_verbs.run_now(timer.pk)
        timer_verbs.run_now(timer.pk)
        crew.work()

        assert world.states(rule) == ["succeeded"]
        assert list(
            AuditEntry.objects.filter(target__startswith="run:").order_by("id").values_list("verb", flat=True)
        ) == [
            "postpone",
            "run_now",
        ]

    def test_what_the_timer_stood_for_is_done_and_another_step_is_left_alone(self, world: World, crew: Crew) -> None:
        tell(world, WAIT, hook(), {**WAIT, "id": "again"})
        changed(world, crew)
        seen = Timer.objects.get()
        timer_verbs.run_now(seen.pk, step_id=seen.step_id)
        crew.work()

        with pytest.raises(Refused, match="another step now"):
            timer_verbs.run_now(seen.pk, step_id=seen.step_id)

    def test_senseless_moments_are_refused(self, world: World, crew: Crew) -> None:
        rule = tell(world, WAIT, expires="P1D")
        changed(world, crew)
        timer = Timer.objects.get()

        with pytest.raises(Refused, match="past"):
            timer_verbs.postpone(timer.pk, until=clock.now() - timedelta(seconds=1))
        with pytest.raises(Refused, match="longest life"):
            timer_verbs.postpone(timer.pk, until=clock.now() + timedelta(days=2))
        verbs.pause(world.runs(rule)[0].pk)
        with pytest.raises(Refused, match="paused"):
            timer_verbs.run_now(timer.pk)

    def test_what_a_pause_has_left_for_later_may_be_made_due_at_once(self, world: World, crew: Crew) -> None:
        rule = tell(world, WAIT, hook())
        changed(world, crew)
        Timer.objects.update(state="held")  # as a resume at a rate leaves it

        timer_verbs.run_now(Timer.objects.get().pk)
        crew.work()

        assert world.states(rule) == ["succeeded"]

    def test_cancelling_what_waits_cancels_its_run(self, world: World, crew: Crew) -> None:
        rule = tell(world, WAIT, hook())
        changed(world, crew)

        timer_verbs.cancel(Timer.objects.get().pk)

        assert world.states(rule) == ["cancelled cancelled_by"]
        assert not Timer.objects.exists()

    def test_a_timer_that_no_run_has_is_refused(self, world: World, crew: Crew) -> None:
        world.change(TicketFactory(tenant=world.tenant), run=False, priority="urgent")
        from_arming = Timer(tenant=world.tenant, lane=Lane.objects.get(), kind="match", due_at=clock.now())
        from_arming.save()

        with pytest.raises(Refused, match="pause the tenant"):
            timer_verbs.cancel(from_arming.pk)


class TestReplay:
    def test_only_the_steps_from_there_on_run_and_nothing_confirmed_is_sent_again(
        self, world: World, crew: Crew
    ) -> None:
        rule = tell(world, note("first", "Once"), hook("one"), hook("two"), note("last", "Told"))
        crew.script = lambda call: refused(call) if len(crew.calls()) == 2 else succeed(call)
        ticket = changed(world, crew)
        old = world.runs(rule)[0]
        assert (old.state, notes(ticket), len(crew.calls())) == ("failed", ["Once"], 2)
        crew.script = succeed

        new = replay(old.pk, step="one", reason="the hook is back")
        assert replay(old.pk, step="one") == new
        with pytest.raises(Refused, match="still under way"):
            replay(old.pk, step="two")
        crew.work()

        again = Run.objects.get(pk=new)
        assert (again.state, again.forked_from_run_id, again.forked_from_step) == ("succeeded", old.pk, "one")
        assert notes(ticket) == ["Once", "Told"]
        one, two, two_again = (key for key, _attempt in crew.calls())
        assert two == two_again != one
        assert (step_of(again, "one").output or {})["note"] == f"Run {old.pk} has done this: it wasn't sent again."
        assert [entry.outcome for entry in Attempt.objects.filter(step__run=again)].count("ok") == 2
        old.refresh_from_db()
        assert old.state == "failed"
        assert trace(old.pk).replays == [new]

    def test_as_new_sends_all_of_them_again_under_other_keys(self, world: World, crew: Crew) -> None:
        rule = tell(world, hook("one"), hook("two"))
        changed(world, crew)
        old = world.runs(rule)[0]

        new = replay(old.pk, as_new=True)
        crew.work()
        with pytest.raises(Refused, match=f"Run {new} has sent this again as new already"):
            replay(old.pk, as_new=True)
        assert len(crew.calls()) == 4
        replay(new, as_new=True)
        crew.work()

        keys = [key for key, _attempt in crew.calls()]
        assert len(keys) == len(set(keys)) == 6
        assert world.states(rule) == ["succeeded"] * 3

    def test_what_may_have_been_sent_and_must_not_be_twice_waits_for_a_person(self, world: World, crew: Crew) -> None:
        world.connection("sms", "sms")
        text = {"connection": "sms", "to": "number", "number": "+15550100", "text": "Hello"}
        rule = tell(world, {**hook("sms"), "action": "send_sms", "params": text})
        crew.script = lambda call: Outcome.uncertain("no answer")
        changed(world, crew)
        old = world.runs(rule)[0]
        with pytest.raises(Refused, match="hasn't ended"):
            replay(old.pk)
        verbs.cancel(old.pk)
        crew.script = succeed

        replay(old.pk)
        crew.work()

        assert world.states(rule) == ["cancelled cancelled_by", "waiting delivery_unknown"]
        assert len(crew.calls()) == 1

    def test_the_live_version_takes_over_the_outcomes_before_the_step(self, world: World, crew: Crew) -> None:
        rule = tell(world, hook("one"), hook("two"))
        crew.script = lambda call: refused(call) if len(crew.calls()) == 2 else succeed(call)
        ticket = changed(world, crew)
        world.republish(rule, hook("one"), note("tell", "{{ steps.one.captured }}"))
        crew.script = succeed
        old = world.runs(rule)[0]

        with pytest.raises(Refused, match="no step “two”"):
            replay(old.pk, step="two", live=True)
        new = replay(old.pk, step="tell", live=True)
        crew.work()

        again = Run.objects.select_related("rule_version").get(pk=new)
        assert (again.state, again.rule_version.number) == ("succeeded", 2)
        assert notes(ticket) == ["true"]

    def test_a_step_behind_a_branch_that_went_elsewhere_is_refused(self, world: World, crew: Crew) -> None:
        arm = {"id": "a", "if": leaf("priority", "is", "low"), "steps": [hook("low")]}
        split = {"id": "split", "kind": "branch", "arms": [arm], "otherwise": [hook("other")]}
        rule = tell(world, split, hook("last"))
        changed(world, crew)
        old = world.runs(rule)[0]

        with pytest.raises(Refused, match="never came to"):
            replay(old.pk, step="low")
        new = replay(old.pk, step="last", as_new=True)
        crew.work()

        assert world.states(rule) == ["succeeded", "succeeded"]
        assert len(crew.calls()) == 3
        steps = StepExecution.objects.filter(run_id=new)
        assert {one.path: one.attempts for one in steps} == {"split": 0, "other": 0, "last": 1}

    def test_from_the_step_after_a_delay_the_record_is_read_as_it_is_now(self, world: World, crew: Crew) -> None:
        rule = tell(world, WAIT, hook(), note("tell", "{{ ticket.subject }}"))
        crew.script = refused
        ticket = changed(world, crew)
        crew.skip_waiting()
        world.commit()
        world.change(ticket, run=False, subject="Changed since")
        crew.script = succeed

        replay(world.runs(rule)[0].pk, step="hook")
        crew.work()

        assert notes(ticket)[-1] == "Changed since"

    def test_a_replay_that_fails_is_retried_under_its_key(self, world: World, crew: Crew) -> None:
        rule = tell(world, hook())
        crew.script = refused
        changed(world, crew)
        replay(world.runs(rule)[0].pk)
        crew.work()
        letter = DeadLetter.objects.order_by("-id").first()
        assert letter is not None

        crew.script = succeed
        retry(letter.pk)
        crew.work()

        assert world.states(rule) == ["failed exhausted", "succeeded"]
        assert len({key for key, _attempt in crew.calls()}) == 1

    def test_what_never_ran_and_deleted_rules_are_refused(self, world: World, crew: Crew) -> None:
        rule = tell(world, hook())
        changed(world, crew)
        run = world.runs(rule)[0]
        rules.delete(rule.pk)

        with pytest.raises(Refused, match="was deleted"):
            replay(run.pk)


class TestExpiry:
    def test_a_run_that_outlives_its_rules_limit_fails_as_expired(self, world: World, crew: Crew) -> None:
        rule = tell(world, {**WAIT, "for": "P2D"}, hook(), expires="PT1H")
        changed(world, crew)
        run = world.runs(rule)[0]
        assert run.deadline_at is not None
        assert timedelta(minutes=59) < run.deadline_at - clock.now() < timedelta(minutes=61)
        assert expire_due() == 0

        Run.objects.filter(pk=run.pk).update(deadline_at=clock.now() - timedelta(seconds=1))
        assert (expire_due(), expire_due()) == (1, 0)

        assert world.states(rule) == ["failed expired"]
        assert (step_of(run, "wait").state, step_of(run, "wait").reason) == ("cancelled", "expired")
        assert not Timer.objects.filter(run_id=run.pk).exists()

    def test_a_step_whose_run_is_over_is_not_begun(self, world: World, crew: Crew) -> None:
        rule = tell(world, WAIT, hook(), expires="PT2H")
        changed(world, crew)
        Run.objects.update(deadline_at=clock.now() - timedelta(seconds=1))

        crew.skip_waiting()

        assert world.states(rule) == ["failed expired"]
        assert crew.calls() == []

    def test_a_worker_on_its_last_step_may_end_it(self, world: World, crew: Crew) -> None:
        rule = tell(world, hook())

        def meanwhile(call: EffectCall) -> Outcome:
            Run.objects.update(deadline_at=clock.now() - timedelta(seconds=1))
            assert expire_due() == 0
            return Outcome.done()

        crew.script = meanwhile
        changed(world, crew)

        assert world.states(rule) == ["succeeded"]

    def test_rules_that_listen_to_ends_hear_of_it_and_of_a_run_that_a_person_ended(
        self, world: World, crew: Crew
    ) -> None:
        listening = {"kind": "run_ended", "params": {"model": "helpdesk.ticket", "on": ["failed", "finished"]}}
        world.rule("Hear", note("heard", "{{ event.outcome }} {{ event.reason }}"), trigger=listening)
        tell(world, WAIT, expires="PT1H")
        ticket = changed(world, crew)
        Run.objects.update(deadline_at=clock.now() - timedelta(seconds=1))
        assert expire_due() == 1
        crew.work()
        assert notes(ticket) == ["failed expired"]

        ticket = changed(world, crew)
        complete(StepExecution.objects.get(state="waiting").pk)
        crew.work()
        assert notes(ticket) == ["finished "]

    def test_without_a_word_of_the_rule_it_is_400_days(self, world: World, crew: Crew) -> None:
        rule: Rule = tell(world, hook())
        changed(world, crew)
        run = world.runs(rule)[0]
        assert run.deadline_at is not None
        assert (run.deadline_at - run.created_at).days == 400
