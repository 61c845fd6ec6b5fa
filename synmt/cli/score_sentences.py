"""`synmt score --sentences`: every segment's scores in a file, for further work."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from synmt.cli import console
from synmt.errors import UsageError
from synmt.files import write_atomically

if TYPE_CHECKING:
    from synmt.evaluation.metrics import Score
    from synmt.evaluation.systems import Contest

_KINDS = (".tsv", ".jsonl")


def check_name(path: Path) -> None:
    """Refuse a name that does not say what the file will hold."""
    if not path.name.removesuffix(".gz").endswith(_KINDS):
        raise UsageError(
            "the name does not say what to write", where=str(path), allowed="Ends: .tsv, .jsonl, with .gz or not"
        )


def write_sentences(path: Path, contest: Contest, scores: Mapping[str, Sequence[Sequence[Score]]]) -> None:
    """Write a row for each segment, with the scores of every text by every metric; JSON lines have the texts too.

    scores: for each metric a list for each system, in it a score for each seed.
    """
    by_segment = {
        name: [[score.metric.segment_scores(score.statistics).tolist() for score in seeds] for seeds in systems]
        for name, systems in scores.items()
    }
    as_table = path.name.removesuffix(".gz").endswith(".tsv")
    rows = _table(contest, by_segment) if as_table else _objects(contest, by_segment)
    with console.written("scores of sentences", path), write_atomically(path) as out:
        out.writelines(f"{row}\n" for row in rows)


_BySegment = Mapping[str, Sequence[Sequence[Sequence[float]]]]


def _table(contest: Contest, scores: _BySegment) -> Iterator[str]:
    texts = [
        (place, seed, text.name if len(system.seeds) > 1 else system.name)
        for place, system in enumerate(contest.systems)
        for seed, text in enumerate(system.seeds)
    ]
    yield "\t".join(["line", *(f"{name}:{metric}" for _, _, name in texts for metric in scores)])
    for line in range(len(contest.reference.lines)):
        values = (scores[metric][place][seed][line] for place, seed, _ in texts for metric in scores)
        yield "\t".join([str(line + 1), *(f"{value:.6f}" for value in values)])


def _objects(contest: Contest, scores: _BySegment) -> Iterator[str]:
    for line, reference in enumerate(contest.reference.lines):
        source = {"source": contest.source[line]} if contest.source else {}
        systems = [
            {
                "system": system.name,
                "translation": text.lines[line],
                "scores": {metric: found[place][seed][line] for metric, found in scores.items()},
            }
            | ({"seed": text.name} if len(system.seeds) > 1 else {})
            for place, system in enumerate(contest.systems)
            for seed, text in enumerate(system.seeds)
        ]
        row = {"line": line + 1, **source, "reference": reference, "systems": systems}
        yield json.dumps(row, ensure_ascii=False)
