"""What is stored in results/: a small file of JSON for each run, and the labels of the test
sentences.

system, seed, fingerprint, synmt, parser    what was trained
device                                      what it was trained on: the models of GPUs, or cpu (also
                                            if
                                            this is missing)
weights, steps, validation                  parameters; [step, loss] of each validation, in nats per
                                            target piece
training, parsing, tests.NAME.cost          seconds, processor seconds, tokens, bytes, joules
tests.NAME.scores                           of each metric: score and signature
tests.NAME.statistics                       BLEU's counts of each sentence, as `packed` writes
                                            arrays
tests.NAME.exact                            which sentences equal the reference
contrast                                    of each group of contrasts: right ones and all
"""

from __future__ import annotations

import base64
import json
import sys
import zlib
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from synmt import __version__
from synmt.errors import SynmtError
from synmt.evaluation.cost import run_cost
from synmt.evaluation.metrics import make_metric, options_of
from synmt.files.reading import read_lines
from synmt.run_folder import Run

Labels = dict[str, dict[str, list[str]]]
"""Of each test set, the value of each label for its sentences."""


def measure(run: Run, contrast: str | None) -> dict[str, Any]:
    """Collect what is stored of a finished run, but for what the plan knows.

    contrast: the name of contrastive sets.
    """
    cost, info = run_cost(run), run.info()
    spent = ("seconds", "processor_seconds", "tokens", "joules", "memory")
    training = {key: cost.get(key) for key in spent}
    result = {
        "synmt": __version__,
        "device": ", ".join(info["devices"]),
        "parser": _parser(info.get("parser")),
        "weights": cost["weights"],
        "steps": cost["steps"],
        "validation": [[step, round(loss, 4)] for step, loss in cost["validation"]],
        "training": {key: _rounded(value, 3) for key, value in training.items()},
        "parsing": info.get("parsing", {}),
        "tests": {name: _test(run, name) for name in _tests(run)},
    }
    return {**result, "contrast": _contrast(contrast, run.folder)} if contrast else result


def labels(run: Run) -> Labels:
    """Read what the page groups sentences by: the labels of each test set, and the numbers of
    words."""
    found: Labels = {}
    for name in _tests(run):
        [source] = _texts(run, name, "source")
        found[name] = {"words": [str(len(line.split())) for line in source]}
        path = run.test_folder(name) / "labels.tsv"
        if path.exists():
            header, *rows = (line.split("\t") for line in read_lines(path))
            found[name] |= {
                label: [row[place] for row in rows] for place, label in enumerate(header)
            }
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


def read_stored(path: Path, *keys: str) -> dict[str, Any]:
    """Read a file of results/ that has some keys at least; raises SynmtError if it is damaged."""
    try:
        stored = json.loads(path.read_text(encoding="utf-8"))
        return {**stored, **{key: stored[key] for key in keys}}
    except (ValueError, TypeError, KeyError, OSError):
        what, do = "missing or damaged", "Remove it, and run the comparison again"
        raise SynmtError(what, where=str(path), do=do) from None


def read_result(path: Path) -> dict[str, Any]:
    """Read the file of a result; raises SynmtError if it is damaged."""
    return read_stored(path, "system", "seed", "fingerprint", "tests", "validation")


def read_times(path: Path) -> dict[str, Any]:
    """Read the times of steps, as `results_times.py` writes them; raises SynmtError if they are
    damaged."""
    return read_stored(path, "machine", "threads", "precision", "systems")


@contextmanager
def ending_errors() -> Iterator[None]:
    """End the program with the message of a user's error, or after Ctrl-C, without a traceback."""
    try:
        yield
    except SynmtError as error:
        sys.exit(f"error: {error}")
    except KeyboardInterrupt:
        sys.stderr.write("interrupted: the same command goes on\n")
        sys.exit(130)


def _tests(run: Run) -> list[str]:
    return sorted(path.parent.name for path in run.folder.glob("tests/*/hypothesis.txt"))


def _texts(run: Run, test: str, *names: str) -> list[list[str]]:
    """Read the texts of a test set as they are scored: as words, if the recipe scores tokens."""
    tokens = "tokens" if options_of(run.recipe().evaluation).on_tokens else ""
    return [list(read_lines(run.test_folder(test) / tokens / f"{name}.txt")) for name in names]


def _test(run: Run, name: str) -> dict[str, Any]:
    folder, bleu = run.test_folder(name), make_metric("bleu", options_of(run.recipe().evaluation))
    translated, reference = _texts(run, name, "hypothesis", "reference")
    exact = [one == other for one, other in zip(translated, reference, strict=True)]
    scores = json.loads((folder / "scores.json").read_text(encoding="utf-8"))
    return {
        "scores": {
            metric: {"score": round(values["score"], 4), "signature": values["signature"]}
            for metric, values in scores.items()
        },
        "cost": json.loads((folder / "cost.json").read_text(encoding="utf-8")),
        "statistics": packed(bleu.statistics(translated, reference)),
        "exact": packed(np.array(exact)[:, None]),
    }


def _contrast(name: str, folder: Path) -> dict[str, list[int]]:
    """Count the right decisions of each group."""
    from synmt.evaluation.contrast.report import ContrastOptions, judge_models

    report = judge_models(ContrastOptions(models=[folder], contrast=[name], samples=100)).to_json()
    counts, right = Counter[str](), Counter[str]()
    for pair in report["pairs"]:
        for group in ("all", *(f"{by}: {value}" for by, value in pair["groups"].items())):
            counts[group] += 1
            right[group] += pair["models"][0]["won"]
    return {group: [right[group], count] for group, count in sorted(counts.items())}


def _parser(identity: Any) -> str | None:
    return f"Stanza {identity['stanza']}, {identity['model']}" if identity else None


def _rounded(value: Any, digits: int) -> Any:
    return round(value, digits) if isinstance(value, float) else value
