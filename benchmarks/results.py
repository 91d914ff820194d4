"""Figures of all rounds, and what follows from them: medians, ratios to the floor, JSON."""

from __future__ import annotations

import json
import statistics
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from measure import Figures
from plan import FLOOR


class NotMeasured(Exception):
    """There is no such figure: the scenario wasn't run, or the store isn't there or failed."""


@dataclass(frozen=True)
class Results:
    """`rounds`: scenario → contestant → a round's figures, or {"failure": …}, one after the other."""

    about: dict[str, Any]
    rounds: dict[str, dict[str, list[Figures]]] = field(default_factory=dict)

    def add(self, scenario: str, contestant: str, figures: Figures) -> None:
        self.rounds.setdefault(scenario, {}).setdefault(contestant, []).append(figures)

    def failed(self, scenario: str, contestant: str, suffix: str = "") -> str | None:
        """Return why a contestant failed, in whichever round."""
        told = self.rounds.get(scenario, {}).get(contestant, [])
        return next(
            (figures[key] for figures in told if (key := f"failure{suffix}") in figures), None
        )

    def values(self, scenario: str, contestant: str, figure: str) -> list[Any]:
        """Return a figure of each round; raise NotMeasured."""
        told = self.rounds.get(scenario, {}).get(contestant, [])
        found = [figures[figure] for figures in told if figure in figures]
        if not found:
            raise NotMeasured(f"{scenario}, {contestant}: {figure}")
        return found

    def median(self, scenario: str, contestant: str, figure: str) -> float:
        return float(statistics.median(self.values(scenario, contestant, figure)))

    def worst(self, scenario: str, contestant: str, figure: str) -> float:
        return float(max(self.values(scenario, contestant, figure)))

    def ratio(
        self, scenario: str, contestant: str, figure: str, to: str = FLOOR, to_figure: str = ""
    ) -> float:
        """Return the median of each round's ratio to another contestant, or to another figure."""
        values = self.values(scenario, contestant, figure)
        others = self.values(scenario, to, to_figure or figure)
        return float(statistics.median(a / b for a, b in zip(values, others, strict=False)))

    def write(self, path: Path) -> None:
        """Write all as JSON."""
        scenarios = {
            scenario: {name: self._summary(scenario, name) for name in told}
            for scenario, told in self.rounds.items()
        }
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps({**self.about, "scenarios": scenarios}, indent=1) + "\n")

    def _summary(self, scenario: str, contestant: str) -> dict[str, Any]:
        told = self.rounds[scenario][contestant]
        numbers = [key for key, value in _last_of(told).items() if isinstance(value, int | float)]
        ratios = {}
        for key in numbers:
            try:
                ratios[key] = self.ratio(scenario, contestant, key)
            except (NotMeasured, ZeroDivisionError):
                continue
        return {
            "median": {key: self.median(scenario, contestant, key) for key in numbers},
            "ratio": ratios,
            "rounds": told,
        }


def read(path: Path) -> Results:
    """Read what `write` wrote."""
    told = json.loads(path.read_text())
    rounds = {
        scenario: {name: summary["rounds"] for name, summary in contestants.items()}
        for scenario, contestants in told.pop("scenarios").items()
    }
    return Results(told, rounds)


def _last_of(told: list[Figures]) -> Mapping[str, Any]:
    return {key: value for figures in told for key, value in figures.items()}
