"""What runs cost: size, time, energy and memory of training, of parsing and of translation.

Training and translation are read from the run folder. Where a run made before synmt kept them has none, the cells of
the table are empty.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from synmt.errors import RETRANSLATE, UsageError
from synmt.evaluation.comparison import SystemComparison
from synmt.evaluation.report import Rows, remarks, tables
from synmt.evaluation.system_paths import check_existence, matching
from synmt.evaluation.systems import System
from synmt.files.json_files import read_json, read_json_lines
from synmt.files.schemas import CostOfTest, LogLine
from synmt.run import Run


@dataclass(frozen=True)
class RunCost:
    """The cost of one run; None for what is not known.

    weights: number of parameters.
    steps: updates of the weights.
    validation: (step, loss in nats per target piece) of each validation.
    seconds, processor_seconds, tokens, joules: of training without validation; `tokens` are target pieces, and the
        energy is that of the whole machine.
    memory: peak in bytes, of the GPU if there is one.
    parsed_words, parse_processor_seconds: of the training text, if it was parsed for this run or an earlier one.
    sentences, translation_processor_seconds: of all test sets.
    """

    weights: int | None
    steps: int | None
    validation: Sequence[tuple[int, float]]
    seconds: float | None
    processor_seconds: float | None
    tokens: int | None
    joules: float | None
    memory: int | None
    parsed_words: int | None
    parse_processor_seconds: float | None
    sentences: int | None
    translation_processor_seconds: float | None

    def steps_to(self, loss: float) -> int | None:
        """Return the step of the first validation with this loss or a lower one."""
        return first_step(self.validation, loss)

    @property
    def best_loss(self) -> float:
        """The lowest validation loss; infinite without a validation."""
        return min((loss for _, loss in self.validation), default=math.inf)


def first_step(validation: Sequence[tuple[int, float]], loss: float) -> int | None:
    """Return the step of the first validation, (step, loss), with this loss or a lower one."""
    return next((step for step, found in validation if found <= loss), None)


def run_cost(run: Run) -> RunCost:
    """Read what a run cost."""
    records = read_json_lines(run.log, LogLine)
    validations = [one for one in records if one["kind"] == "validation"]
    parsing = list(run.info().get("parsing", {}).values())
    timed = [(one["words"], one["processor_seconds"]) for one in parsing if "processor_seconds" in one]
    # old versions kept the wall clock only
    known = parsing and len(timed) == len(parsing)
    costs = [read_json(path, CostOfTest, do=RETRANSLATE) for path in sorted(run.folder.glob("tests/*/cost.json"))]
    return RunCost(
        weights=_weights(run.weights),
        steps=run.info().get("steps"),
        validation=[(one["step"], loss) for one in validations if (loss := one.get("loss")) is not None],
        **_training(records),
        parsed_words=sum(words for words, _ in timed) if known else None,
        parse_processor_seconds=sum(seconds for _, seconds in timed) if known else None,
        sentences=sum(one["sentences"] for one in costs) if costs else None,
        translation_processor_seconds=sum(one["processor_seconds"] for one in costs) if costs else None,
    )


def _training(records: Sequence[LogLine]) -> dict[str, Any]:
    """Sum the log; the steps after its last record cost what the others do."""
    steps = [one for one in records if one["kind"] == "step"]
    sums: dict[str, Any] = dict.fromkeys(("seconds", "processor_seconds", "tokens", "joules"))
    if not steps:
        return {**sums, "memory": None}
    share = records[-1]["step"] / max(steps[-1]["step"], 1)
    for key in sums:
        values = [one[key] for one in steps if one.get(key) is not None]
        sums[key] = share * sum(values) if len(values) == len(steps) else None
    sums["tokens"] = None if sums["tokens"] is None else round(sums["tokens"])
    return {**sums, "memory": max(one.get("memory") or 0 for one in steps)}


def _weights(path: Path) -> int | None:
    if not path.exists():
        return None
    from safetensors import safe_open

    with safe_open(path, framework="numpy") as file:
        return sum(math.prod(file.get_slice(name).get_shape()) for name in file.keys())  # noqa: SIM118


def cost_line(run: Run) -> str:
    """Say in one line what a run cost, as far as it is known."""
    columns, cells = cost_rows([("", [run_cost(run)])])
    known = dict(zip(columns, cells, strict=True))
    wall_clock = {"weights": "{} weights", "training": "training {}"}
    processor = {"parsing": "parsing {}", "translation, sentences/s": "translation {} sentences/s"}
    parts = [
        ", ".join(form.format(known[column]) for column, form in forms.items() if column in known)
        for forms in (wall_clock, processor)
    ]
    return "; in processor time: ".join(filter(None, parts))


def costs_of(systems: Sequence[System]) -> list[tuple[str, list[RunCost]]]:
    """Read what the runs of systems cost; systems that are files are left out, and all files are an error."""
    runs = {system.name: [Run(text.run) for text in system.seeds if text.run] for system in systems}
    if not any(runs.values()):
        raise _without_runs()
    return [(name, [run_cost(run) for run in members]) for name, members in runs.items() if members]


def check_runs(systems: Sequence[Path]) -> None:
    """Raise UsageError if no path or pattern is a run folder, SynmtError if a path does not exist."""
    check_existence(systems)
    if systems and not any(path.is_dir() for one in systems for path in matching(one)):
        raise _without_runs()


def _without_runs() -> UsageError:
    return UsageError("files have no record of cost", where="--cost", do="Give run folders")


_COLUMNS = (
    *("system", "weights", "steps", "training", "processor", "tokens/s", "memory", "energy"),
    *("parsing", "parsing, words/s", "translation, sentences/s", "steps to loss"),
)


def tables_with_cost(comparison: SystemComparison) -> tuple[list[Rows], list[str]]:
    """Make the tables of a comparison, one of the first score and what the runs cost, and the remarks."""
    results = next(iter(comparison.results.values()))
    scores = {system.name: result.value for system, result in zip(comparison.inputs.systems, results, strict=True)}
    costs = costs_of(comparison.inputs.systems)
    columns, *rows = cost_rows(costs)
    title = results[0].metric.title
    beside = [[name, f"{scores[name]:.2f}", *cells] for name, *cells in rows]
    table = [[columns[0], title, *columns[1:]], *beside]
    return [*tables(comparison), table], [*remarks(comparison), *cost_remarks(costs)]


def cost_rows(systems: Sequence[tuple[str, Sequence[RunCost]]]) -> Rows:
    """Make the table of systems with the costs of their seeds, which are averaged."""
    goal = _mean([cost.best_loss for cost in systems[0][1]])
    # a single system has no goal but its own, and its steps to that say nothing
    rows = [[name, *_cells(costs, goal if len(systems) > 1 else None)] for name, costs in systems]
    shown = [place for place, _ in enumerate(_COLUMNS) if any(row[place] for row in rows)]
    return [[row[place] for place in shown] for row in ([*_COLUMNS], *rows)]


def _cells(costs: Sequence[RunCost], goal: float | None) -> Iterator[str]:
    def mean(*names: str) -> float | None:
        """Average a value over the seeds, or the ratio of two."""
        values = [[getattr(cost, name) for name in names] for cost in costs]
        return _mean([one[0] / (one[1] if len(one) > 1 else 1) if all(one) else None for one in values])

    yield _written(mean("weights"), "{:,.0f}")
    yield _written(mean("steps"), "{:,.0f}")
    yield _duration(mean("seconds"))
    yield _duration(mean("processor_seconds"))
    yield _written(mean("tokens", "processor_seconds"), "{:,.0f}")
    yield _written(mean("memory"), "{:,.0f} MB", 1e6)
    yield _written(mean("joules"), "{:,.1f} Wh", 3600)
    yield _duration(mean("parse_processor_seconds"))
    yield _written(mean("parsed_words", "parse_processor_seconds"), "{:,.0f}")
    yield _written(mean("sentences", "translation_processor_seconds"), "{:,.1f}")
    yield "" if goal is None else _steps_to(goal, costs)


def _steps_to(goal: float, costs: Sequence[RunCost]) -> str:
    """Write the steps to a loss, on average over the seeds that reach it."""
    known = [cost.steps_to(goal) for cost in costs if cost.validation]
    if not known:
        return ""
    reached = [steps for steps in known if steps is not None]
    if not reached:
        return "not reached"
    some = f" ({len(reached)} of {len(known)} seeds)" if len(reached) < len(known) else ""
    return f"{sum(reached) / len(reached):,.0f}{some}"


def cost_remarks(systems: Sequence[tuple[str, Sequence[RunCost]]]) -> Iterator[str]:
    """Explain the columns that the table has."""
    shown = cost_rows(systems)[0]
    if "training" in shown:
        yield "training, processor: wall clock and processor time of training without validation; tokens: target pieces"
    if "parsing" in shown:
        yield "parsing: processor time for the training text; runs share its trees"
    if any(name.endswith("/s") for name in shown):
        yield "tokens, words and sentences per second: for each second of processor time"
    goal = _mean([cost.best_loss for cost in systems[0][1]])
    if goal is not None and "steps to loss" in shown:
        name, seeds = systems[0]
        mean = " on average over its seeds" if len(seeds) > 1 else ""
        yield f"steps to loss: first validation with a loss of {goal:.3f}, the best of {name}{mean}, or lower"


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None and math.isfinite(value)]
    return sum(known) / len(known) if len(known) == len(values) and known else None


def _written(value: float | None, form: str, unit: float = 1) -> str:
    return "" if value is None else form.format(value / unit)


def _duration(seconds: float | None) -> str:
    if seconds is None:
        return ""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02} min" if hours else f"{minutes} min {rest:02} s" if minutes else f"{rest} s"
