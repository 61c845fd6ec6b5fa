"""What runs cost: size, time and memory of training, of parsing and of translation.

Training and translation are read from the run folder. Where a run made before synmt kept them has
none, the cells of the table are empty.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from synmt.errors import RETRANSLATE, UsageError
from synmt.evaluation.systems import System, check_existence, matching
from synmt.files.json_files import read_json, read_json_lines
from synmt.files.schemas import CostOfTest, LogLine
from synmt.reporting.progress import duration
from synmt.reporting.values import Column, Table, Value, count_column, text_column
from synmt.run_folder import Run


@dataclass(frozen=True, kw_only=True)
class RunCost:
    """The cost of one run; None for what is not known.

    weights: number of parameters.
    steps: updates of the weights.
    validation: (step, loss in nats per target piece) of each validation.
    seconds, processor_seconds, tokens: of training without validation; `tokens` are target pieces.
    memory: peak in bytes, of the GPU if there is one.
    parsed_words, parse_processor_seconds: of the training text, if it was parsed for this run or an
        earlier one.
    sentences, translation_processor_seconds: of all test sets.
    """

    weights: int | None
    steps: int | None
    validation: Sequence[tuple[int, float]]
    seconds: float | None
    processor_seconds: float | None
    tokens: int | None
    memory: float | None
    parsed_words: int | None
    parse_processor_seconds: float | None
    sentences: int | None
    translation_processor_seconds: float | None

    @property
    def best_loss(self) -> float:
        """The lowest validation loss; infinite without a validation."""
        return min((loss for _, loss in self.validation), default=math.inf)


def first_step(validation: Sequence[tuple[int, float]], loss: float) -> int | None:
    """Return the step of the first validation, (step, loss), with this loss or a lower one."""
    return next((step for step, found in validation if found <= loss), None)


def run_cost(run: Run) -> RunCost:
    """Read what a run cost."""
    records, info = read_json_lines(run.log, LogLine), run.info()
    validations = [one for one in records if one["kind"] == "validation"]
    steps = [one for one in records if one["kind"] == "step"]
    # the steps after the last record of the log cost what the others do
    share = records[-1]["step"] / max(steps[-1]["step"], 1) if steps else 0
    tokens = _sum(steps, "tokens", share)
    parsing = list(info.get("parsing", {}).values())
    # old versions kept the wall clock only
    parse_seconds = _sum(parsing, "processor_seconds")
    tests = [
        read_json(path, CostOfTest, do=RETRANSLATE)
        for path in sorted(run.folder.glob("tests/*/cost.json"))
    ]
    return RunCost(
        weights=_weights(run.weights),
        steps=info.get("steps"),
        validation=[
            (one["step"], loss) for one in validations if (loss := one.get("loss")) is not None
        ],
        seconds=_sum(steps, "seconds", share),
        processor_seconds=_sum(steps, "processor_seconds", share),
        tokens=None if tokens is None else round(tokens),
        memory=max((one.get("memory") or 0 for one in steps), default=None),
        parsed_words=None if parse_seconds is None else _sum(parsing, "words"),
        parse_processor_seconds=parse_seconds,
        sentences=_sum(tests, "sentences"),
        translation_processor_seconds=_sum(tests, "processor_seconds"),
    )


def _sum(records: Sequence[Any], key: str, share: float = 1) -> Any:
    """Sum a value of all records, times `share`; None if there are none, or one does not have
    it."""
    values = [one.get(key) for one in records]
    return None if None in values or not values else share * sum(values)


def _weights(path: Path) -> int | None:
    if not path.exists():
        return None
    from safetensors import safe_open

    with safe_open(path, framework="numpy") as file:
        return sum(math.prod(file.get_slice(name).get_shape()) for name in file.keys())  # noqa: SIM118


def cost_line(run: Run) -> str:
    """Write in one line what a run cost, as far as it is known."""
    cost = run_cost(run)
    rate = _ratio(cost.sentences, cost.translation_processor_seconds)
    wall_clock, processor = [], []
    if cost.weights is not None:
        wall_clock.append(f"{cost.weights:,} weights")
    if cost.seconds is not None:
        wall_clock.append(f"training {duration(cost.seconds)}")
    if cost.parse_processor_seconds is not None:
        processor.append(f"parsing {duration(cost.parse_processor_seconds)}")
    if rate is not None:
        processor.append(f"translation {rate:,.1f} sentences/s")
    return "; in processor time: ".join(
        ", ".join(parts) for parts in (wall_clock, processor) if parts
    )


def costs_of(systems: Sequence[System]) -> list[tuple[str, list[RunCost]]]:
    """Read what the runs of systems cost; systems that are files are left out."""
    runs = {
        system.name: [run_cost(Run(seed.run)) for seed in system.seeds if seed.run]
        for system in systems
    }
    return [(name, costs) for name, costs in runs.items() if costs]


def check_runs(systems: Sequence[Path]) -> None:
    """Raise UsageError if no path or pattern is a run folder, SynmtError if a path does not
    exist."""
    check_existence(systems)
    if systems and not any(path.is_dir() for one in systems for path in matching(one)):
        raise UsageError("files have no record of cost", where="--cost", do="Give run folders")


_PER_SECOND = "for each second of processor time"
_COLUMNS = [
    count_column("weights"),
    count_column("steps"),
    Column(title="training", kind="seconds", about="wall clock, without validation"),
    Column(title="processor", kind="seconds", about="processor time of training"),
    count_column("tokens/s", about=f"target pieces {_PER_SECOND}"),
    Column(title="memory", kind="bytes"),
    Column(
        title="parsing",
        kind="seconds",
        about="processor time for the training text; runs share its trees",
    ),
    count_column("parsing, words/s", about=_PER_SECOND),
    Column(title="translation, sentences/s", digits=1, about=_PER_SECOND),
]


def _values(cost: RunCost) -> list[float | None]:
    """List the values of _COLUMNS."""
    train, parse = cost.processor_seconds, cost.parse_processor_seconds
    return [
        *(
            cost.weights,
            cost.steps,
            cost.seconds,
            train,
            _ratio(cost.tokens, train),
            cost.memory or None,
        ),
        *(
            parse,
            _ratio(cost.parsed_words, parse),
            _ratio(cost.sentences, cost.translation_processor_seconds),
        ),
    ]


def _ratio(over: float | None, under: float | None) -> float | None:
    return over / under if over and under else None


def cost_table(
    systems: Sequence[tuple[str, Sequence[RunCost]]],
    scores: Mapping[str, float] | None = None,
    metric: str = "",
) -> Table:
    """Make the table of systems with the costs of their seeds, which are averaged.

    scores: of the systems by a metric, to be shown beside.
    """
    baseline, first = systems[0]
    goal, about = _mean([cost.best_loss for cost in first]), ""
    if goal is not None:
        mean = " on average over its seeds" if len(first) > 1 else ""
        about = (
            f"first validation with a loss of {goal:.3f}, the best of {baseline}{mean}, or lower"
        )
    steps = count_column("steps to loss", about=about)
    rows = []
    for name, costs in systems:
        score = scores[name] if scores else None
        rows.append([name, score, *map(_mean, zip(*map(_values, costs), strict=True))])
        # a single system has no goal but its own, and its steps to that say nothing
        rows[-1].append(None if goal is None or len(systems) == 1 else _steps_to(goal, costs))
    columns = [text_column("system"), Column(title=metric), *_COLUMNS, steps]
    return Table(columns=columns, rows=rows).without_empty_columns()


def _steps_to(goal: float, costs: Sequence[RunCost]) -> Value:
    """Average the steps to a loss over the seeds that reach it."""
    known = [first_step(cost.validation, goal) for cost in costs if cost.validation]
    reached = [steps for steps in known if steps is not None]
    if not reached:
        return "not reached" if known else None
    mean = sum(reached) / len(reached)
    return (
        mean
        if len(reached) == len(known)
        else f"{mean:,.0f} ({len(reached)} of {len(known)} seeds)"
    )


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None and math.isfinite(value)]
    return sum(known) / len(known) if len(known) == len(values) and known else None
