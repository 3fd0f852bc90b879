"""An outside action that goes nowhere: what it costs is what the engine itself costs."""

import time

from pydantic import Field

from automation.extend import Action, ActionParams, Effect, Outcome, OutsideContext, register


@register
class BenchNoop(Action):
    """Passes through intent, thread and settle like any effect, and may take a while."""

    kind, version, label = "bench_noop", 1, "Do nothing"
    effects = (Effect.IDEMPOTENT,)

    class Params(ActionParams):
        """How long it takes."""

        milliseconds: int = Field(default=0, ge=0, le=10_000)

    def perform(self, params: Params, context: OutsideContext) -> Outcome:
        """Waits that long, as for an answer."""
        if params.milliseconds:
            time.sleep(params.milliseconds / 1000)
        return Outcome.done()
