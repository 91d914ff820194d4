"""The tables: on the terminal, and in README.md between its markers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from rich import box
from rich.console import Console
from rich.table import Table

from machine import line
from plan import FLOOR
from results import NotMeasured, Results
from targets import TARGETS, Verdict

WIDTH = 80
BEGIN, END = "<!-- figures -->", "<!-- /figures -->"
NONE = "–"
_MET = {True: "yes", False: "no", None: ""}
_COLOUR = {True: "green", False: "red", None: "default"}


def show(results: Results) -> None:
    """Print the targets that this run measured."""
    title = "Target and figure (in brackets: what it is compared with)"
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, title=title)
    for heading in ("what", "target", "figure", "ratio", "met"):
        table.add_column(heading, justify="right" if heading == "ratio" else "left")
    for target in TARGETS:
        verdict = target.verdict(results)
        if verdict is not None:
            met = f"[{_COLOUR[verdict.met]}]{_MET[verdict.met]}"
            table.add_row(target.what, target.target, verdict.figure, _ratio(verdict), met)
    console = Console(width=WIDTH)
    console.print(table)
    console.print(line(results.about["machine"]), style="dim", highlight=False)


def write(results: Results, path: Path, picture: Path) -> None:
    """Replace what stands between the markers of a page; the picture is shown if it is there."""
    text = path.read_text(encoding="utf-8")
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    shown = [f"\n![W5: cost against a session's length, log-log]({picture.name})"]
    made = "\n".join([BEGIN, *_lines(results), *(shown if picture.exists() else []), END])
    path.write_text(f"{before}{made}{after}", encoding="utf-8")


def _lines(results: Results) -> Iterator[str]:
    yield f"{line(results.about['machine'])}."
    yield ""
    yield "| what | target | figure | ratio | met |"
    yield "|---|---|---|---|---|"
    for target in TARGETS:
        verdict = target.verdict(results)
        cells = [NONE, "", "not measured"]
        if verdict is not None:
            cells = [
                verdict.figure,
                _ratio(verdict),
                _MET[verdict.met],
            ]
        yield "| " + " | ".join([target.what, target.target, *cells]) + " |"
    yield ""
    yield "| | " + " | ".join(heading for heading, _ in _COLUMNS) + " |"
    yield "|---" * (len(_COLUMNS) + 1) + "|"
    for name in results.rounds.get("W1", {}):
        yield f"| {name} | " + " | ".join(_cell(results, name, read) for _, read in _COLUMNS) + " |"
    yield ""
    versions = results.about["peers"].items()
    yield ", ".join(f"{package} {version or 'missing'}" for package, version in versions) + "."


def _ratio(verdict: Verdict) -> str:
    return "" if verdict.ratio is None else f"{verdict.ratio:.2f}"


def _cell(results: Results, name: str, read: Callable[[Results, str], str]) -> str:
    try:
        return read(results, name)
    except NotMeasured:
        return NONE


def _times_floor(scenario: str) -> Callable[[Results, str], str]:
    return lambda results, name: f"{results.ratio(scenario, name, 'turns_per_second', FLOOR):.2f}"


def _median(scenario: str, figure: str, form: str) -> Callable[[Results, str], str]:
    return lambda results, name: form.format(results.median(scenario, name, figure))


def _shared(results: Results, name: str) -> str:
    counts = (int(results.worst("W4b", name, key)) for key in ("errors", "lost", "broken"))
    return " / ".join(map(str, counts))


def _growth(figure: str) -> Callable[[Results, str], str]:
    """Return the cost in a short session and in the longest that the store was measured at."""

    def read(results: Results, name: str) -> str:
        short = results.median("W5", name, f"{figure}@100")
        for size in (50_000, 10_000, 1_000):
            try:
                long = results.median("W5", name, f"{figure}@{size}")
            except NotMeasured:
                continue
            return f"{short:.2f} → {long:,.2f}" + ("" if size == 50_000 else f" (at {size:,})")
        raise NotMeasured(f"W5, {name}")

    return read


def _after_kill(results: Results, name: str) -> str:
    return "{:.0f} of {:.0f}".format(
        *(results.median("W6", name, figure) for figure in ("lost", "sent"))
    )


_COLUMNS: tuple[tuple[str, Callable[[Results, str], str]], ...] = (
    ("W1 × floor", _times_floor("W1")),
    ("bytes a turn", _median("W1", "bytes", "{:,.0f}")),
    ("processor ms a turn", _median("W1", "cpu_ms", "{:.2f}")),
    ("W2 ms", _median("W2", "open_and_load_ms", "{:,.0f}")),
    ("W3 × floor", _times_floor("W3")),
    ("W4a × floor", _times_floor("W4a")),
    ("W4a longest ms", _median("W4a", "longest_ms", "{:,.0f}")),
    ("W4b refused / lost / broken", _shared),
    ("W5 append ms, 100 → 50,000", _growth("append_ms")),
    ("W5 next call ms", _growth("next_call_ms")),
    ("W6 chunks lost", _after_kill),
)
