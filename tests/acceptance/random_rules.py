"""Draws rules and changes from a seed: what the in-process runner and real workers are compared over.

Runs that are under way side by side write different fields and read none of each other's, for their order in time is
not promised: only one rule of a tenant goes outside or waits. It writes priority and tags; the others write the status.
"""

import random
from dataclasses import dataclass, field
from typing import Any

WORDS = ("printer", "fire", "invoice", "Zürich", "100 %")
CHANNELS, PRIORITIES, STATUSES = ("email", "web", "phone"), ("low", "normal", "high", "urgent"), ("open", "pending")
ANSWERS = (200, 200, 503, 503, 429, 500, "drop", "drop", 404)
WATCHED = ("subject", "priority", "channel")

Json = dict[str, Any]


@dataclass
class Drawn:
    """The rules of one tenant, the answers of its webhooks, and what a person changes, in rounds.

    `pair`: the first round has two changes, both of which are there before anything runs.
    """

    number: int
    plan: str
    rules: list[tuple[str, Json]] = field(default_factory=list)
    answers: list[Json] = field(default_factory=list)
    rounds: list[list[Json]] = field(default_factory=list)


class Drawing:
    """One tenant's share, all from one seed."""

    def __init__(self, number: int) -> None:
        self.rng = random.Random(f"equivalence {number}")
        self.drawn = Drawn(number, plan=self.rng.choice(("", "free", "gold")))
        self._ids = 0
        self._hooks: list[str] = []

    def draw(self) -> Drawn:
        """Everything."""
        rng = self.rng
        rules = [("Long", self._long()), *((f"Short {place}", self._short()) for place in range(rng.randint(0, 2)))]
        rng.shuffle(rules)
        again = next(rule["again"] for name, rule in rules if name == "Long")
        first = [self._change(0)] if again == "both" else [self._change(0), self._change(1)]
        self.drawn.rules, self.drawn.rounds = rules, [first, [self._change(2)]]
        return self.drawn

    def _id(self, kind: str) -> str:
        self._ids += 1
        return f"{kind}{self._ids}"

    def _change(self, number: int) -> Json:
        change: Json = {"subject": f"{self.rng.choice(WORDS)} {number}"}
        if self.rng.random() < 0.5:
            change["channel"] = self.rng.choice(CHANNELS)
        if self.rng.random() < 0.5:
            change["priority"] = self.rng.choice(PRIORITIES)
        return change

    def _rule(self, steps: list[Json], *, fields: list[str], again: str) -> Json:
        trigger = {"model": "helpdesk.ticket", "on": ["updated"], "fields": fields}
        return {
            "schema_version": 1,
            "trigger": {"kind": "record_changed", "params": trigger},
            "condition": self._condition() if self.rng.random() < 0.5 else None,
            "again": again,
            "steps": steps,
        }

    def _long(self) -> Json:
        again = self.rng.choice(("both", "keep", "restart"))
        fields = ["subject", "priority"] if self.rng.random() < 0.5 else ["subject"]
        steps = [self._step(depth=0) for _ in range(self.rng.randint(2, 5))]
        if again != "both" and self.rng.random() < 0.7:
            steps.insert(0, self._delay())
        return self._rule(steps, fields=fields, again=again)

    def _short(self) -> Json:
        fields = self.rng.sample(WATCHED, self.rng.randint(1, 2))
        steps = [self._local_of_short() for _ in range(self.rng.randint(1, 2))]
        if self.rng.random() < 0.2:
            steps.append({"id": self._id("stop"), "kind": "stop", "ends": "later_rules"})
        return self._rule(steps, fields=fields, again="both")

    def _local_of_short(self) -> Json:
        if self.rng.random() < 0.3:
            values = {"title": "Look at {{ ticket.subject }}"}
            return self._action("create_record", model="helpdesk.task", values=values)
        return self._set("status", self.rng.choice(STATUSES))

    def _step(self, *, depth: int) -> Json:
        kinds = ["hook"] * 4 + ["delay"] * 2 + ["set", "tag", "untag", "note", "broken"]
        kind = self.rng.choice([*kinds, "stop"] if depth > 1 else [*kinds, "branch", "branch"])
        step: Json = getattr(self, f"_{kind}")() if kind != "branch" else self._branch(depth)
        if step["kind"] == "action" and self.rng.random() < 0.1:
            step["off"] = True
        if step["kind"] == "action" and self.rng.random() < 0.4:
            step["if_it_fails"] = "continue"
        return step

    def _action(self, action: str, **params: Any) -> Json:
        return {"id": self._id("do"), "kind": "action", "action": action, "version": 1, "params": params}

    def _hook(self) -> Json:
        step = self._action("call_webhook", connection="hook")
        path = f"/s{self.drawn.number}/{step['id']}."
        step["params"] |= {"path": path}
        if self.rng.random() < 0.5:
            step["params"]["body"] = '{"subject": "{{ ticket.subject }}", "before": "' + self._earlier() + '"}'
        attempts = self.rng.randint(1, 3)
        delay = self.rng.choice(("PT0S", "PT0S", "PT1S"))
        step["retry"] = {"max_attempts": attempts, "base_delay": delay, "factor": 1.0, "jitter": False}
        answers = [self.rng.choice(ANSWERS) for _ in range(self.rng.randint(1, 3))]
        self.drawn.answers.append({"match": path, "answers": answers})
        self._hooks.append(step["id"])
        return step

    def _earlier(self) -> str:
        return "{{ steps." + self.rng.choice(self._hooks) + ".status }}" if self._hooks else ""

    def _delay(self) -> Json:
        return {"id": self._id("wait"), "kind": "delay", "for": self.rng.choice(("PT0S", "PT1S"))}

    def _set(self, name: str = "priority", value: str = "") -> Json:
        return self._action("set_fields", fields=[{"field": name, "value": value or self.rng.choice(PRIORITIES)}])

    def _tag(self) -> Json:
        return self._action("add_tags", tags=self.rng.sample(("a", "b", "c"), 2))

    def _untag(self) -> Json:
        return self._action("remove_tags", tags=[self.rng.choice(("a", "b", "c"))])

    def _note(self) -> Json:
        return self._action("add_note", text="{{ ticket.priority }} {{ ticket.tags | json }} " + self._earlier())

    def _broken(self) -> Json:
        return self._action("add_note", text="{{ ticket.customer.plan | required }}")

    def _stop(self) -> Json:
        return {"id": self._id("stop"), "kind": "stop"}

    def _branch(self, depth: int) -> Json:
        arms = [
            {"id": self._id("arm"), "if": self._condition(), "steps": self._inside(depth)}
            for _ in range(self.rng.randint(1, 2))
        ]
        return {"id": self._id("split"), "kind": "branch", "arms": arms, "otherwise": self._inside(depth)}

    def _inside(self, depth: int) -> list[Json]:
        return [self._step(depth=depth + 1) for _ in range(self.rng.randint(0, 2))]

    def _condition(self, depth: int = 0) -> Json:
        if depth < 2 and self.rng.random() < 0.4:
            mode = self.rng.choice(("all", "any", "none"))
            items = [self._condition(depth + 1) for _ in range(self.rng.randint(1, 3))]
            return {"id": self._id("g"), mode: items}
        return {"id": self._id("c"), **self._leaf()}

    def _leaf(self) -> Json:
        rng = self.rng
        word, channel, priority = rng.choice(WORDS), rng.choice(CHANNELS), rng.choice(PRIORITIES)
        leaf: Json = rng.choice(
            (
                {"field": "subject", "op": rng.choice(("contains", "starts_with", "not_contains")), "value": word},
                {"field": "channel", "op": rng.choice(("is", "is_not", "changed_to", "was")), "value": channel},
                {
                    "field": "priority",
                    "op": rng.choice(("is", "is_not", "changed_to", "changed_from")),
                    "value": priority,
                },
                {"field": "priority", "op": "in", "value": list(PRIORITIES[:2])},
                {"field": "subject", "op": "changed"},
                {"field": "customer.plan", "op": rng.choice(("is", "is_not")), "value": "gold"},
                {"field": "customer.plan", "op": rng.choice(("is_empty", "is_not_empty"))},
            )
        )
        return leaf


def draw(count: int) -> list[Drawn]:
    """So many tenants, always the same."""
    return [Drawing(number).draw() for number in range(count)]
