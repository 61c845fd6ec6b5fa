"""What is stored of a run in results/: a dictionary that JSON can hold, a few kilobytes.

system, seed, fingerprint, synmt, parser    what was trained
device                                      what it was trained on: the models of GPUs, or cpu (also if this is missing)
weights, steps, validation                  parameters; [step, loss] of each validation, in nats per target piece
training, parsing, tests.NAME.cost          seconds, processor seconds, tokens, bytes, joules
tests.NAME.scores                           of each metric: score and signature
tests.NAME.statistics                       BLEU's counts of each sentence, as `packed` writes arrays
tests.NAME.exact                            which sentences equal the reference
contrast                                    of each group of contrasts: right ones and all
"""

from __future__ import annotations

import base64
import json
import zlib
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from results_plan import Plan, Planned

from synmt import __version__
from synmt.analysis.groups.labels import read_labels
from synmt.evaluation.cache import cached_score
from synmt.evaluation.cost import RunCost, run_cost
from synmt.evaluation.metrics import make_metric, options_of
from synmt.evaluation.outputs import from_run, tests_of
from synmt.run import Run


def measure(plan: Plan, planned: Planned, folder: Path) -> dict[str, Any]:
    """Collect the results of a finished run."""
    run = Run(folder)
    cost = run_cost(run)
    result = {
        "system": planned.system,
        "seed": planned.seed,
        "fingerprint": planned.fingerprint,
        "synmt": __version__,
        "device": ", ".join(run.info()["devices"]),
        "parser": _parser(run),
        "architecture": planned.recipe.model.architecture,
        "weights": cost.weights,
        "steps": cost.steps,
        "validation": [[step, round(loss, 4)] for step, loss in cost.validation],
        "training": _training(cost),
        "parsing": run.info().get("parsing", {}),
        "tests": {name: _test(run, name) for name in tests_of(folder)},
    }
    if plan.contrast:
        result["contrast"] = _contrast(plan.contrast, folder)
    return result


def labels(run: Run) -> dict[str, dict[str, list[str]]]:
    """Read what the page groups sentences by: for each test set, the labels of its sentences by their names."""
    found: dict[str, dict[str, list[str]]] = {}
    for name in tests_of(run.folder):
        outputs = from_run(run.folder, name)
        words = [str(len(line.split())) for line in outputs.source]
        columns = read_labels(outputs.labels, len(words)) if outputs.labels else {}
        found[name] = {"words": words, **columns}
    return found


def packed(values: npt.NDArray[Any]) -> dict[str, Any]:
    """Write an array of small whole numbers as text."""
    whole = values.astype("<u2")
    assert (whole == values).all()
    data = base64.b85encode(zlib.compress(whole.T.tobytes(), 9)).decode()
    return {"shape": list(values.shape), "data": data}


def unpacked(stored: dict[str, Any]) -> npt.NDArray[np.float64]:
    """Read an array that `packed` wrote."""
    whole = np.frombuffer(zlib.decompress(base64.b85decode(stored["data"])), "<u2")
    return whole.reshape(stored["shape"][::-1]).T.astype(np.float64)


def _training(cost: RunCost) -> dict[str, Any]:
    values = {key: getattr(cost, key) for key in ("seconds", "processor_seconds", "tokens", "joules", "memory")}
    return {key: round(value, 3) if isinstance(value, float) else value for key, value in values.items()}


def _parser(run: Run) -> str | None:
    identity = run.info().get("parser")
    return f"Stanza {identity['stanza']}, {identity['model']}" if identity else None


def _test(run: Run, name: str) -> dict[str, Any]:
    outputs, folder = from_run(run.folder, name), run.test_folder(name)
    bleu = make_metric("bleu", options_of(run.evaluation()))
    statistics = cached_score(bleu, outputs.hypothesis, outputs.reference, folder=folder / "segments").statistics
    exact = np.array([one == other for one, other in zip(outputs.hypothesis, outputs.reference, strict=True)])
    scores = json.loads((folder / "scores.json").read_text(encoding="utf-8"))
    return {
        "scores": {
            metric: {"score": round(values["score"], 4), "signature": values["signature"]}
            for metric, values in scores.items()
        },
        "cost": json.loads((folder / "cost.json").read_text(encoding="utf-8")),
        "statistics": packed(statistics),
        "exact": packed(exact[:, None]),
    }


def _contrast(name: str, folder: Path) -> dict[str, list[int]]:
    """Count the right decisions of each group."""
    from synmt.evaluation.contrast.report import ContrastOptions, judge_models

    report = judge_models(ContrastOptions(models=[folder], contrast=[name], samples=100)).to_json()
    counts: Counter[str] = Counter()
    right: Counter[str] = Counter()
    for pair in report["pairs"]:
        for group in ("all", *(f"{by}: {value}" for by, value in pair["groups"].items())):
            counts[group] += 1
            right[group] += pair["models"][0]["won"]
    return {group: [right[group], count] for group, count in sorted(counts.items())}
