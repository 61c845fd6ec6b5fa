"""What runs cost: size, time and memory of training, of parsing and of translation.

Training and translation are read from the run folder. Where a run made before synmt kept them has
none, the cells of the table are empty.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from synmt.errors import RETRANSLATE
from synmt.files.json_files import read_json, read_json_lines
from synmt.files.schemas import CostOfTest, LogLine
from synmt.reporting.progress import duration
from synmt.reporting.values import Column, Table, Value, count_column, text_column
from synmt.run_folder import Run

RunCost = Mapping[str, Any]
"""What one run cost; None for what is not known.

weights: number of parameters.
steps: updates of the weights.
validation: (step, loss in nats per target piece) of each validation.
seconds, processor_seconds, tokens: of training without validation; `tokens` are target pieces.
memory: peak in bytes, of the GPU if there is one.
parsed_words, parse_processor_seconds: of the training text, if it was parsed for this run or an
    earlier one.
sentences, translation_processor_seconds: of all test sets.
"""


def run_cost(run: Run) -> RunCost:
    """Read what a run cost."""
    records, info = read_json_lines(run.log, LogLine), run.info()
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
    losses = [(one["step"], one.get("loss")) for one in records if one["kind"] == "validation"]
    return {
        "weights": _weights(run.weights),
        "steps": info.get("steps"),
        "validation": [(step, loss) for step, loss in losses if loss is not None],
        "seconds": _sum(steps, "seconds", share),
        "processor_seconds": _sum(steps, "processor_seconds", share),
        "tokens": None if tokens is None else round(tokens),
        "memory": max((one.get("memory") or 0 for one in steps), default=None) or None,
        "parsed_words": None if parse_seconds is None else _sum(parsing, "words"),
        "parse_processor_seconds": parse_seconds,
        "sentences": _sum(tests, "sentences"),
        "translation_processor_seconds": _sum(tests, "processor_seconds"),
    }


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
    parts = [f"{cost['weights']:,} weights"] if cost["weights"] else []
    parts += [f"training {duration(cost['seconds'])}"] if cost["seconds"] else []
    return ", ".join(parts)


_PER_SECOND = "for each second of processor time"
_PROCESSOR, _PARSING = "processor_seconds", "parse_processor_seconds"
_COLUMNS = (
    (count_column("weights"), "weights", ""),
    (count_column("steps"), "steps", ""),
    (Column("training", kind="seconds", about="wall clock, without validation"), "seconds", ""),
    (Column("processor", kind="seconds", about="processor time of training"), _PROCESSOR, ""),
    (count_column("tokens/s", about=f"target pieces {_PER_SECOND}"), "tokens", _PROCESSOR),
    (Column("memory", kind="bytes"), "memory", ""),
    (
        Column("parsing", kind="seconds", about="processor time; runs share trees"),
        _PARSING,
        "",
    ),
    (count_column("parsing, words/s", about=_PER_SECOND), "parsed_words", _PARSING),
    (
        Column("translation, sentences/s", digits=1, about=_PER_SECOND),
        "sentences",
        "translation_processor_seconds",
    ),
)
"""Columns of the table, the costs in them, and what these are divided by."""


def _value(cost: RunCost, over: str, under: str) -> float | None:
    if not under:
        return cost[over]
    return cost[over] / cost[under] if cost[over] and cost[under] else None


def cost_table(systems: Sequence[tuple[str, Sequence[RunCost]]]) -> Table:
    """Make the table of systems with the costs of their seeds, which are averaged."""
    baseline, first = systems[0]
    goal = _mean([_best_loss(cost) for cost in first])
    rows = list[list[Value]]()
    for name, costs in systems:
        row: list[Value] = [name]
        for _, over, under in _COLUMNS:
            row.append(_mean([_value(cost, over, under) for cost in costs]))
        rows.append([*row, _mean([_steps_to(goal, cost) for cost in costs])])
    about = f"first validation with the lowest loss of {baseline} or a lower one"
    columns = [text_column("system"), *(column for column, *_ in _COLUMNS)]
    columns.append(count_column("steps to loss", about=about))
    return Table(columns=columns, rows=rows).without_empty_columns()


def _best_loss(cost: RunCost) -> float | None:
    return min((loss for _, loss in cost["validation"]), default=None)


def _steps_to(goal: float | None, cost: RunCost) -> int | None:
    """Return the step of the first validation with the loss of the goal or a lower one."""
    reached = (step for step, loss in cost["validation"] if goal is not None and loss <= goal)
    return next(reached, None)


def _mean(values: Sequence[float | None]) -> float | None:
    """Average values; None if one is not known."""
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if len(known) == len(values) else None
