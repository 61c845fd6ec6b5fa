"""Groups of words by how often the training text has them."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from synmt.analysis.groups.grouping import Edges, bucket_names, bucket_numbers
from synmt.analysis.words.accuracy import WordGroups
from synmt.analysis.words.texts import WordTexts, tokenize
from synmt.arrays import IntArray, Side
from synmt.data.corpus import PreparedCorpus, is_complete
from synmt.data.vocabulary import UNK
from synmt.evaluation.metrics import MetricOptions
from synmt.files.reading import read_lines
from synmt.reporting.progress import progress
from synmt.run_folder import Run
from synmt.tokenization.word_tokenizer import RAW, load_tokenizers

if TYPE_CHECKING:
    from synmt.analysis.options import WordOptions

_logger = logging.getLogger(__name__)

FREQUENCIES: Edges = (0, 1, 2, 3, 4, 9, 99, 999)
"""The last frequency of each bucket: those of compare-mt."""

_LINES_AT_ONCE = 10_000


def by_frequency(options: WordOptions, texts: WordTexts, side: Side) -> WordGroups:
    """Group the words of one side by how often the training text has them.

    Without a training text, the words of the test set are counted: the references or the source.
    """
    counts, name = _count_training_text(options, texts, side)
    if counts is not None:
        return group_by_frequency(
            counts, texts, side, f"frequency: how often the training text has the word ({name})"
        )
    test_set = "the references have" if side == "target" else "the source of the test set has"
    if texts.run_folders:
        _logger.warning(
            "%s: the training text is not there, so words are grouped by how often %s them. Give "
            "the text with "
            "`--training-text FILE`",
            texts.run_folders[0],
            test_set,
        )
    about = (
        f"frequency: how often {test_set} the word; for that in the training text: "
        "--training-text FILE"
    )
    return group_by_frequency(
        Counter(texts.text(side)), texts, side, about, where=" in the test set"
    )


def group_by_frequency(
    counts: Counter[str], texts: WordTexts, side: Side, about: str, *, where: str = ""
) -> WordGroups:
    """Group words by how often a text has them.

    counts: of the words of that text.
    where: names the text, unless it is the training text.
    """

    def numbers(words: Iterable[str]) -> IntArray:
        return bucket_numbers(
            np.array([counts[word] for word in words], dtype=np.int64), FREQUENCIES
        )

    names, by = bucket_names(np.array([0]), FREQUENCIES), f"frequency of the {side} word{where}"
    translated = [numbers(one.words) for one in texts.translations] if side == "target" else []
    return WordGroups(by, "times", names, numbers(texts.text(side)), translated, about, side)


def _count_training_text(
    options: WordOptions, texts: WordTexts, side: Side
) -> tuple[Counter[str] | None, str]:
    if options.training_text is not None:
        return count_file(options.training_text, texts.scoring), options.training_text.name
    for run in map(Run, texts.run_folders):
        if prepared := prepared_text(run):
            return count_prepared(run, prepared, side, texts.scoring), prepared.name
    return None, ""


def count_file(path: Path, options: MetricOptions) -> Counter[str]:
    """Count the words of a text in a file."""
    return _count(read_lines(path), options, None)


def count_prepared(run: Run, folder: Path, side: Side, options: MetricOptions) -> Counter[str]:
    """Count the words of one side of the prepared training text of a run, without those that its
    vocabulary lacks.

    If the run tokenizes text and is scored on text, they are joined as in its translations.
    """
    tokenizer = (
        RAW
        if options.on_tokens
        else load_tokenizers(run.recipe(), run.folder, run.info().get("text", {}))[side]
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
    """Find the prepared training text of a run, in `data/` here or next to the folder of the run;
    None if it is gone.

    A run that trains on trees as text has no such text.
    """
    name = run.info().get("prepared")
    if not name or run.recipe().tasks.trees != "none":
        return None
    places = (Path("data"), run.folder.resolve().parent.parent / "data")
    return next(
        (place / "prepared" / name for place in places if is_complete(place / "prepared" / name)),
        None,
    )


def _count(lines: Iterator[str], options: MetricOptions, total: int | None) -> Counter[str]:
    counts = Counter()
    with progress("counting words", total, "lines") as advance:
        while some := list(islice(lines, _LINES_AT_ONCE)):
            counts.update(tokenize(some, options))
            advance(len(some))
    return counts
