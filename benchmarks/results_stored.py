"""What is stored in results/: a file of JSON for each run, and the labels of the test sentences.

system, seed, architecture, fingerprint     what was trained
synmt, parser, device                       by what, and on what: the models of GPUs, or cpu
commit, torch, processor, threads, precision    more of that, in results since November 28, 2026
text                                        a hash of the texts that it was trained and validated on
weights, steps, validation                  parameters; [step, nats per target piece] of validations
training, parsing, tests.NAME.cost          seconds, processor seconds, tokens, bytes
tests.NAME.scores                           of each metric: score and signature
tests.NAME.statistics, exact                BLEU's counts of sentences; which equal the reference
"""

from __future__ import annotations

import base64
import sys
import zlib
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
from synmt.files.json_files import read_json
from synmt.files.reading import fingerprint as text_fingerprint
from synmt.files.reading import read_lines
from synmt.machine import machine
from synmt.run_folder import Run

_SPENT = ("seconds", "processor_seconds", "tokens", "memory")
AGAIN = "Remove it, and its run, to measure again"


def measure(run: Run) -> dict[str, Any]:
    """Collect what is stored of a finished run."""
    cost, recipe, info = run_cost(run), run.recipe(), dict[str, Any](run.info())
    parser, here = info.get("parser"), machine()
    return {
        "seed": recipe.training.seed,
        "architecture": recipe.model.architecture,
        "synmt": __version__,
        **{key: here[key] for key in ("commit", "processor", "threads")},
        "torch": info["torch"],
        "device": ", ".join(info["devices"]),
        "precision": recipe.training.precision,
        "text": text_fingerprint(info["inputs"]),
        "parser": f"Stanza {parser['stanza']}, {parser['model']}" if parser else None,
        "weights": cost["weights"],
        "steps": cost["steps"],
        "validation": [[step, round(loss, 4)] for step, loss in cost["validation"]],
        "training": {key: cost[key] for key in _SPENT},
        "parsing": info.get("parsing", {}),
        "tests": {name: _test(run, name) for name in _tests(run)},
    }


def labels(run: Run) -> dict[str, dict[str, list[str]]]:
    """Read the labels of the sentences of each test set that has some."""
    found: dict[str, dict[str, list[str]]] = {}
    for name in _tests(run):
        path = run.test_folder(name) / "labels.tsv"
        if path.exists():
            titles, *rows = (line.split("\t") for line in read_lines(path))
            columns = map(list, zip(*rows, strict=True))
            found[name] = dict(zip(titles, columns, strict=True))
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


def read_result(path: Path, fingerprint: str) -> dict[str, Any]:
    """Read a result; raises SynmtError if it is damaged, or that of another recipe."""
    result = read_json(path, dict[str, Any], do=AGAIN)
    if result.get("fingerprint") != fingerprint:
        raise SynmtError("the result of another recipe", where=str(path), do=AGAIN)
    return result


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


def _test(run: Run, name: str) -> dict[str, Any]:
    """Collect what is stored of a test set; texts are words if the recipe scores tokens."""
    folder, options = run.test_folder(name), options_of(run.recipe().evaluation)
    texts = folder / "tokens" if options.on_tokens else folder
    translated = list(read_lines(texts / "hypothesis.txt"))
    reference = list(read_lines(texts / "reference.txt"))
    exact = [hypothesis == other for hypothesis, other in zip(translated, reference, strict=True)]
    scores = read_json(folder / "scores.json", dict[str, dict[str, Any]])
    return {
        "scores": {
            metric: {"score": round(found["score"], 4), "signature": found["signature"]}
            for metric, found in scores.items()
        },
        "cost": read_json(folder / "cost.json", dict[str, Any]),
        "statistics": packed(make_metric("bleu", options).statistics(translated, reference)),
        "exact": packed(np.array(exact)[:, None]),
    }
