"""What runs cost: size, time and memory of training, of parsing and of translation.

Training and translation are read from the run folder. Where a run made before synmt kept them has
none, the cells of the table are empty.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from synmt.arrays import Values
from synmt.errors import RETRANSLATE
from synmt.evaluation.systems import short_names
from synmt.files.json_files import read_json, read_json_lines
from synmt.files.schemas import CostOfTest, LogLine
from synmt.recipe.catalogue import shipped_recipes
from synmt.recipe.load import load_recipe
from synmt.recipe.schema import Recipe
from synmt.reporting.values import Column, Report, Table, count_column, text_column
from synmt.run_folder import Run

RunCost = Mapping[str, Any]
"""What one run cost; None for what is not known.

weights: number of parameters.
steps: updates of the weights.
validation: (step, loss in nats per target piece) of each validation.
seconds, processor_seconds, tokens: of training without validation; `tokens` are target pieces.
seconds_per_100: of as many steps.
memory: peak in bytes, of the GPU if there is one.
parsed_words, parse_processor_seconds: of the training text, if it was parsed for this run or an
    earlier one.
sentences, translation_processor_seconds: of all test sets.
tokens_per_second, parsed_words_per_second, sentences_per_second: of processor time.
"""


def run_cost(run: Run) -> RunCost:
    """Read what a run cost."""
    records, info = read_json_lines(run.log, LogLine), run.info()
    steps = [record for record in records if record["kind"] == "step"]
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
    losses = [
        (record["step"], loss)
        for record in records
        if record["kind"] == "validation" and (loss := record.get("loss")) is not None
    ]
    seconds = _sum(steps, "seconds", share)
    spent, sentences = _sum(steps, "processor_seconds", share), _sum(tests, "sentences")
    words = None if parse_seconds is None else _sum(parsing, "words")
    translation_seconds = _sum(tests, "processor_seconds")
    return {
        "weights": _count_parameters(run.weights),
        "steps": info.get("steps"),
        "validation": losses,
        "seconds": seconds,
        "seconds_per_100": _ratio(seconds, records[-1]["step"] / 100 if records else None),
        "processor_seconds": spent,
        "tokens": None if tokens is None else round(tokens),
        "tokens_per_second": _ratio(tokens, spent),
        "memory": max((record.get("memory") or 0 for record in steps), default=None) or None,
        "parsed_words": words,
        "parse_processor_seconds": parse_seconds,
        "parsed_words_per_second": _ratio(words, parse_seconds),
        "sentences": sentences,
        "translation_processor_seconds": translation_seconds,
        "sentences_per_second": _ratio(sentences, translation_seconds),
    }


def _sum(records: Sequence[Any], key: str, share: float = 1) -> Any:
    """Sum a value of all records, times `share`; None if there are none, or one does not have
    it."""
    values = [record.get(key) for record in records]
    return None if None in values or not values else share * sum(values)


def _count_parameters(path: Path) -> int | None:
    if not path.exists():
        return None
    from safetensors import safe_open

    with safe_open(path, framework="numpy") as file:
        return sum(math.prod(file.get_slice(name).get_shape()) for name in file.keys())  # noqa: SIM118


def is_untested(path: Path) -> bool:
    """Whether a path names a recipe, or a run that has translated no test set yet."""
    if Run(path).exists():
        return not any(path.glob("tests/*/hypothesis.txt"))
    return path.suffix in (".yaml", ".yml") or path.as_posix() in shipped_recipes()


def cost_report(paths: Sequence[Path]) -> Report:
    """Report what runs have cost so far, and how many parameters they, or the models of recipes,
    have."""
    costs = {}
    for name, path in zip(short_names([str(path) for path in paths]), paths, strict=True):
        run = Run(path)
        cost: Values = defaultdict(lambda: None, validation=())
        cost |= run_cost(run) if run.exists() else {}
        if cost["weights"] is None:
            cost["weights"] = _count_planned(run.recipe() if run.exists() else load_recipe(path))
        costs[name] = cost
    return Report(
        title="What training costs",
        parts=[cost_table([(name, [cost]) for name, cost in costs.items()])],
        notes=["parameters: before training, with the largest vocabulary that the recipe allows"],
        facts={"cost": costs},
    )


def _count_planned(recipe: Recipe) -> int:
    """Count the parameters of a model with the largest vocabulary that the recipe allows."""
    import torch

    from synmt.model.build import build

    size = recipe.vocabulary.size
    with torch.device("meta"):
        model = build(recipe.model, recipe.syntax, source_pieces=size, target_pieces=size)
    return sum(weight.numel() for weight in model.parameters())


_PER_SECOND = "for each second of processor time"
_PARSING = "processor time for the training text; runs share its trees"
_COLUMNS = [
    count_column("parameters", name="weights"),
    count_column("steps", name="steps"),
    Column("training", kind="seconds", about="without validation", name="seconds"),
    Column("100 steps", kind="seconds", about="of training", name="seconds_per_100"),
    Column("processor", kind="seconds", about="time of training", name="processor_seconds"),
    count_column("tokens/s", about=f"target pieces {_PER_SECOND}", name="tokens_per_second"),
    Column("memory", kind="bytes", name="memory"),
    Column("parsing", kind="seconds", about=_PARSING, name="parse_processor_seconds"),
    count_column("parsing, words/s", about=_PER_SECOND, name="parsed_words_per_second"),
    Column("translation, sentences/s", digits=1, about=_PER_SECOND, name="sentences_per_second"),
]


def _ratio(over: float | None, under: float | None) -> float | None:
    return over / under if over and under else None


def cost_table(systems: Sequence[tuple[str, Sequence[RunCost]]]) -> Table:
    """Make the table of systems with the costs of their seeds, which are averaged."""
    baseline, first = systems[0]
    best = [min((loss for _, loss in cost["validation"]), default=None) for cost in first]
    goal = _mean(best)
    rows = [
        [
            name,
            *(_mean([cost[column.name] for cost in costs]) for column in _COLUMNS),
            _mean([_steps_to(goal, cost) for cost in costs]),
        ]
        for name, costs in systems
    ]
    about = f"first validation with the lowest loss of {baseline} or a lower one"
    columns = [text_column("system"), *_COLUMNS, count_column("steps to loss", about=about)]
    return Table(columns=columns, rows=rows).without_empty_columns()


def _steps_to(goal: float | None, cost: RunCost) -> int | None:
    """Return the step of the first validation with the loss of the goal or a lower one."""
    reached = (step for step, loss in cost["validation"] if goal is not None and loss <= goal)
    return next(reached, None)


def _mean(values: Sequence[Any]) -> float | None:
    """Average values; None if one is not known."""
    return None if None in values else sum(values) / len(values)
