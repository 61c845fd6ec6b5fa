"""How often does the training text have a word?"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from synmt.analysis.words.tokenizing import in_case, tokenize_text
from synmt.arrays import Side
from synmt.data.corpus import PreparedCorpus, is_complete
from synmt.data.vocabulary import UNK
from synmt.evaluation.metrics import MetricOptions
from synmt.files.reading import read_lines
from synmt.reporting.progress import progress
from synmt.run import Run
from synmt.words.word_tokenizer import RAW, load_tokenizers

_logger = logging.getLogger(__name__)

_LINES_AT_ONCE = 10_000


def count_file(path: Path, options: MetricOptions) -> Counter[str]:
    """Count the words of a text in a file."""
    return _count(read_lines(path), options, None)


def count_prepared(run: Run, folder: Path, side: Side, options: MetricOptions) -> Counter[str]:
    """Count the words of one side of the prepared training text of a run, without those that its vocabulary lacks.

    If the run tokenizes text and is scored on text, they are joined as in its translations.
    """
    tokenizer = (
        RAW if options.on_tokens else load_tokenizers(run.recipe(), run.folder, run.info().get("text", {}))[side]
    )
    corpus = PreparedCorpus.open(folder)
    vocabulary = corpus.vocabularies[0 if side == "source" else 1]
    split = corpus.split("train")

    def lines() -> Iterator[str]:
        for start in range(0, len(split), _LINES_AT_ONCE):
            for row in split.rows(range(start, min(start + _LINES_AT_ONCE, len(split)))):
                ids = row.source if side == "source" else row.target
                yield tokenizer.join(vocabulary.decode(ids[ids != UNK].tolist()))

    return _count(lines(), options, len(split))


def prepared_text(run: Run) -> Path | None:
    """Find the prepared training text of a run, in `data/` here or next to the folder of the run; None if it is gone.

    A run that trains on trees as text has no such text.
    """
    name = run.info().get("prepared")
    if not name or run.recipe().tasks.trees != "none":
        return None
    places = (Path("data"), run.folder.resolve().parent.parent / "data")
    return next((place / "prepared" / name for place in places if is_complete(place / "prepared" / name)), None)


def _count(lines: Iterator[str], options: MetricOptions, total: int | None) -> Counter[str]:
    counts: Counter[str] = Counter()
    with progress("counting words", total, "lines") as advance:
        while some := list(islice(lines, _LINES_AT_ONCE)):
            counts.update(in_case(tokenize_text(some, options), options))
            advance(len(some))
    return counts
