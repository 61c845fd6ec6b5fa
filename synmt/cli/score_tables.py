"""How `synmt score` shows what it has found: as tables, or as JSON."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, TypeAlias

from synmt.cli import console

if TYPE_CHECKING:
    from synmt.evaluation.comparison import Plan, SystemResult
    from synmt.evaluation.systems import Contest

    Found: TypeAlias = Mapping[str, Sequence[SystemResult]]
    """For each metric how the systems stand, in their order."""

_P_VALUES = {"bootstrap": "boot. p", "randomization": "random. p", "t": "t-test p", "ks": "KS p", "seeds": "seeds p"}
_DRAWN_WITH_SEEDS = {
    "bootstrap": "draws sentences, and seeds of each system",
    "randomization": "swaps sentences only, all seeds of a sentence together",
}
"""What a test draws where a system has several seeds."""
_NAME_WIDTH = 20
"""A system's name is broken into lines only where it is longer than this, and the terminal too narrow."""


def print_tables(contest: Contest, found: Found, plan: Plan) -> None:
    """Print scores, what BLEU is made of, and how seeds differ; then how all of it was found."""
    _print_scores(contest, found)
    _print_parts(contest, found)
    _print_seeds(contest, found)
    print()
    for results in found.values():
        metric = results[0].metric
        print(f"{metric.title}|{metric.signature}")
    for line in _remarks(contest, found, plan):
        print(line)


def _print_scores(contest: Contest, found: Found) -> None:
    tests = _tests(found)
    columns = ["system", "metric", "score", "95 % interval"]
    if len(contest.systems) > 1:
        columns += ["difference", *["its interval"] * ("bootstrap" in tests), *(_P_VALUES[name] for name in tests)]
    rows = []
    for results in found.values():
        for system, one in zip(contest.systems, results, strict=True):
            row = [system.name, one.metric.title, f"{one.value:.2f}", f"{one.low:.2f} to {one.high:.2f}"]
            row += _against_first(one, tests)
            rows.append(row + [""] * (len(columns) - len(row)))
    _table(columns, rows)


def _against_first(one: SystemResult, tests: Sequence[str]) -> Iterator[str]:
    if one.difference is None:
        return
    yield f"{one.difference:+.2f}"
    if one.comparison:
        yield f"{one.comparison.low:+.2f} to {one.comparison.high:+.2f}"
    for name in tests:
        p = one.p_values.get(name)
        yield "-" if p is None else "<0.001" if p < 0.0005 else f"{p:.3f}"


def _tests(found: Found) -> list[str]:
    """Name the tests that were made of any system."""
    return list(dict.fromkeys(name for results in found.values() for one in results for name in one.p_values))


def _print_parts(contest: Contest, found: Found) -> None:
    """Print what a score is made of: of BLEU with most n-grams, as others are parts of it."""
    results = max(found.values(), key=lambda one: len(one[0].details))
    parts = list(results[0].details)
    if not parts:
        return
    rows = [
        [system.name, *(f"{value:.1f}" if name.startswith("precision") else f"{value:.3f}" for name, value in made_of)]
        for system, one in zip(contest.systems, results, strict=True)
        for made_of in [one.details.items()]
    ]
    print()
    _table([f"{results[0].metric.title} of", *(name.replace("_", " ") for name in parts)], rows)


def _print_seeds(contest: Contest, found: Found) -> None:
    rows = []
    for results in found.values():
        for system, one in zip(contest.systems, results, strict=True):
            if len(one.seeds) > 1:
                numbers = [f"{value:.2f}" for value in asdict(one.spread).values()]
                rows.append([system.name, one.metric.title, str(len(one.seeds)), *numbers])
    if rows:
        print()
        _table(["system", "metric", "seeds", "mean", "deviation", "lowest", "highest"], rows)


def _remarks(contest: Contest, found: Found, plan: Plan) -> Iterator[str]:
    """Say how the numbers were found."""
    from synmt.evaluation.comparison import TESTS

    lower = [one[0].metric.title for one in found.values() if not one[0].metric.higher_is_better]
    if lower:
        yield f"{', '.join(lower)}: lower is better"
    several = any(len(system.seeds) > 1 for system in contest.systems)
    drawn = {"bootstrap": f"{plan.resamples:,} resamples", "randomization": f"{plan.swaps:,} trials"}
    what = "sentences and of seeds" if several else "sentences"
    yield f"95 % interval: bootstrap of {what}, {drawn['bootstrap']}, seed {plan.seed}"
    if len(contest.systems) > 1:
        yield f"difference to {contest.systems[0].name}; p-values are two-sided"
    for name in _tests(found):
        what = f": {_DRAWN_WITH_SEEDS[name]}" if several and name in drawn else ""
        how = f", {drawn[name]}, seed {plan.seed}" if name in drawn else ""
        yield f"{_P_VALUES[name]}: {TESTS[name]}{what}{how}"
    if any(p is None for results in found.values() for one in results for p in one.p_values.values()):
        yield "seeds p needs two seeds or more of both systems"


def print_json(contest: Contest, found: Found, plan: Plan) -> None:
    """Print all of it as one JSON object."""
    systems = []
    for position, system in enumerate(contest.systems):
        entry: dict[str, Any] = {"system": system.name}
        if len(system.seeds) > 1:
            entry["seeds"] = [text.name for text in system.seeds]
        systems.append(entry | {"scores": {name: _values(one[position]) for name, one in found.items()}})
    base = {"base": contest.systems[0].name} if len(systems) > 1 else {}
    report: dict[str, Any] = {"segments": len(contest.reference.lines), "systems": systems}
    report["bootstrap"] = {"samples": plan.resamples, "seed": plan.seed, **base}
    if "randomization" in _tests(found):
        report["randomization"] = {"samples": plan.swaps, "seed": plan.seed, **base}
    print(json.dumps(report, ensure_ascii=False, indent=2))


def _values(one: SystemResult) -> dict[str, Any]:
    values: dict[str, Any] = {"name": one.metric.title, "score": one.value, "signature": one.metric.signature}
    values["interval"] = [one.low, one.high]
    if one.details:
        values["details"] = one.details
    if len(one.seeds) > 1:
        values["seeds"] = {"scores": [score.value for score in one.seeds], **asdict(one.spread)}
    if one.difference is not None:
        values["difference"] = one.difference
        values["p_values"] = one.p_values
    if one.comparison:
        values["comparison"] = asdict(one.comparison)
    return values


def _table(columns: list[str], rows: list[list[str]]) -> None:
    """Print a table that never cuts: what is too wide for the terminal goes on in the next line of its cell."""
    from rich.table import Table

    widths, gap = fit(columns, rows, shutil.get_terminal_size().columns if sys.stdout.isatty() else None)
    shown = Table(box=None, pad_edge=False, padding=(0, gap, 0, 0), header_style="bold")
    for index, (name, width) in enumerate(zip(columns, widths, strict=True)):
        shown.add_column(name, width=width, overflow="fold", justify="left" if index == 0 else "right")
    for row in rows:
        shown.add_row(*row)
    console.printer(sum(widths) + gap * len(widths), to_stdout=True).print(shown)


def fit(columns: Sequence[str], rows: Sequence[Sequence[str]], room: int | None) -> tuple[list[int], int]:
    """Find the width of each column, and the gap between them, so that a table fits into a terminal.

    Columns after the first are narrowed before the name of a system is broken, and never below their longest word: a
    table too wide all the same is left to the terminal. A Chinese character is as wide as two letters.
    """
    from rich.cells import cell_len

    cells = [[column, *(row[index] for row in rows)] for index, column in enumerate(columns)]
    whole = [max(map(cell_len, column)) for column in cells]
    if room is None or sum(whole) + 2 * (len(whole) - 1) <= room:
        return whole, 2
    words = [max((cell_len(word) for cell in column for word in cell.split()), default=1) for column in cells]
    widths = [whole[0], *words[1:]]
    for gap in (2, 1):
        left = room - sum(widths) - gap * (len(widths) - 1)
        if left >= 0:
            return widths, gap
    return [max(widths[0] + left, min(widths[0], _NAME_WIDTH)), *widths[1:]], 1
