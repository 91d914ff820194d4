"""The plot of W5: what one more turn, and the next call of the model, cost as a session grows."""

from __future__ import annotations

import re
import sys
from importlib import import_module
from importlib.util import find_spec
from itertools import cycle
from pathlib import Path
from typing import Any

from measure import Figures
from plan import FLOOR
from results import Results

PANELS = (("append_ms", "one more turn"), ("next_call_ms", "messages for the next call"))
OURS = "onrecord"
OUR_COLOURS = ("#d62728", "#ff7f0e")
FLOOR_COLOUR = "#000000"
OTHERS = ("#1f77b4", "#2ca02c", "#9467bd", "#8c564b", "#e377c2", "#7f7f7f", "#bcbd22", "#17becf")


def draw(results: Results, path: Path) -> None:
    """Write the picture; say so where matplotlib isn't installed."""
    if find_spec("matplotlib") is None:
        print("no plot: matplotlib is not installed", file=sys.stderr)
        return
    import_module("matplotlib").use("agg")
    pyplot: Any = import_module("matplotlib.pyplot")
    figure, axes = pyplot.subplots(1, 2, figsize=(10, 4.4), sharey=True, layout="constrained")
    colours = _colours(list(results.rounds.get("W5", {})))
    for axis, (measured, title) in zip(axes, PANELS, strict=True):
        for name, told in results.rounds.get("W5", {}).items():
            sizes = _sizes(told[0], measured)
            costs = [results.median("W5", name, f"{measured}@{size}") for size in sizes]
            ours = name.startswith(OURS)
            axis.plot(
                sizes, costs, marker="o", markersize=4, label=name, zorder=3 if ours else 2,
                color=colours[name], linewidth=2.5 if ours else 1.3,
                linestyle="--" if name == FLOOR else "-",
            )  # fmt: skip
        axis.set(xscale="log", yscale="log", title=title, xlabel="messages in the session")
        axis.grid(which="major", alpha=0.3)
    axes[0].set_ylabel("milliseconds")
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside right center", frameon=False, fontsize=8)
    figure.savefig(path, dpi=110)


def _sizes(figures: Figures, measured: str) -> list[int]:
    """Return the sizes at which a store was measured."""
    found = (re.fullmatch(rf"{measured}@(\d+)", key) for key in figures)
    return sorted(int(one[1]) for one in found if one)


def _colours(names: list[str]) -> dict[str, str]:
    ours = [name for name in names if name.startswith(OURS)]
    others = [name for name in names if name not in ours and name != FLOOR]
    return {
        FLOOR: FLOOR_COLOUR,
        **dict(zip(ours, cycle(OUR_COLOURS))),
        **dict(zip(others, cycle(OTHERS))),
    }
