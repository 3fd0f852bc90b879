"""Says what cancelling a run would leave behind, before anybody does it."""

from dataclasses import dataclass

from automation.core.states import TERMINAL_RUN, TERMINAL_STEP
from automation.models import DeadLetter, Run, StepExecution


@dataclass(frozen=True, slots=True)
class LeftBehind:
    """Paths of steps: done ones stay done, nothing undoes them; `under_way` ones may still take effect, of `uncertain`
    ones nobody knows; the others never happen. Open dead letters are closed.
    """

    done: list[str]
    skipped: list[str]
    under_way: list[str]
    uncertain: list[str]
    never: list[str]
    dead_letters: int
    ended: bool


def left_behind(run_id: int) -> LeftBehind:
    """What a cancelled run of the current tenant leaves; `Run.DoesNotExist` where it has none of that id."""
    run = Run.objects.get(pk=run_id)
    rows = StepExecution.objects.filter(run=run).order_by("created_at", "id")
    steps = list(rows.values_list("path", "kind", "state", "effect_state"))
    return LeftBehind(
        done=[path for path, kind, state, _effect in steps if state == "succeeded" and kind == "action"],
        skipped=[path for path, _kind, state, _effect in steps if state == "skipped"],
        under_way=[path for path, _kind, state, _effect in steps if state == "running"],
        uncertain=[path for path, _kind, state, effect in steps if effect == "uncertain" and state != "succeeded"],
        never=[path for path, _kind, state, _effect in steps if state not in {*TERMINAL_STEP, "running"}],
        dead_letters=DeadLetter.objects.filter(run=run, resolved_at=None).count(),
        ended=run.state in TERMINAL_RUN,
    )
