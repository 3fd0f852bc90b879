"""What a bench has found: its figures, its rate against the floor, and the bars it is to reach."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Bar:
    """A figure and what it is to reach: at least or at most `first`, and in the end `goal`."""

    what: str
    value: float
    first: float
    goal: float
    at_most: bool = True

    @property
    def reached(self) -> bool:
        """Whether the first bar is reached."""
        return self.value <= self.first if self.at_most else self.value >= self.first

    def __str__(self) -> str:
        sign = "≤" if self.at_most else "≥"
        word = "reached" if self.reached else "NOT reached"
        return (
            f"{self.what:<34}{self.value:>10.4g}   first bar {sign} {self.first:g}: {word}, goal {sign} {self.goal:g}"
        )


@dataclass(slots=True)
class Measured:
    """Figures by name, and `rate`, what a second is compared with the floor; None where that has no meaning."""

    figures: dict[str, float]
    bars: list[Bar] = field(default_factory=list)
    rate: float | None = None


@dataclass(frozen=True, slots=True)
class Report:
    """A bench that was run."""

    name: str
    floor: float
    measured: Measured

    @property
    def ratio(self) -> float | None:
        """The rate as a multiple of the floor."""
        return None if self.measured.rate is None else round(self.measured.rate / self.floor, 3)

    def to_json(self) -> dict[str, Any]:
        """The report by its agreed names."""
        figures = {name: round(value, 4) for name, value in self.measured.figures.items()}
        return {
            "name": self.name,
            "floor_per_s": round(self.floor, 1),
            "ratio_to_floor": self.ratio,
            "figures": figures | {"first_bar_reached": all(bar.reached for bar in self.measured.bars)},
        }

    def lines(self) -> list[str]:
        """The report for people."""
        found = [f"{self.name}: floor {self.floor:,.0f} commits a second (UPDATE + INSERT, 2 connections)"]
        if self.ratio is not None:
            found.append(f"  {'ratio to the floor':<34}{self.ratio:>10.3f}")
        found += [f"  {name.replace('_', ' '):<34}{value:>10.4g}" for name, value in self.measured.figures.items()]
        return [*found, "", *(f"  {bar}" for bar in self.measured.bars)]


def percentile(values: Sequence[float], percent: float) -> float:
    """The nearest-rank percentile; 0 for no values."""
    ordered = sorted(values)
    return ordered[max(math.ceil(len(ordered) * percent / 100), 1) - 1] if ordered else 0.0
