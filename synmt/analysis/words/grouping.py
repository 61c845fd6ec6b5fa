"""Groups of words: by how often the training text has them, and by labels from trees.

What kind of word is it? Its tag, its relation, its distance to the parent, its depth:

    distance_i = | place(i) - place(parent(i)) |          depth_i = arcs from the root down to i

Places number the words without punctuation (see synmt.analysis.groups.trees). A word that the
parser does not have takes its label from the parser's word with its first character.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path

import numpy as np

from synmt.analysis.groups.grouping import Edges, bucket_names, bucket_numbers
from synmt.analysis.groups.trees import parse_side, word_distances
from synmt.analysis.options import WordOptions
from synmt.analysis.words.accuracy import WordGroups
from synmt.analysis.words.texts import TokenizedText, WordTexts, tokenize
from synmt.arrays import IntArray, Side, Texts, int_array
from synmt.data.corpus import PreparedCorpus, is_complete
from synmt.data.vocabulary import UNK, word_of
from synmt.evaluation.metrics import MetricOptions
from synmt.files.reading import read_lines
from synmt.reporting.progress import progress
from synmt.run_folder import Run
from synmt.syntax.align import locate_words
from synmt.syntax.parse import Parse, Trees
from synmt.syntax.relations import base_name
from synmt.syntax.trees import depths, not_punctuation
from synmt.tokenization.word_tokenizer import RAW, load_tokenizers

FREQUENCIES: Edges = (0, 1, 2, 3, 4, 9, 99, 999)
"""The last frequency of each bucket: those of compare-mt."""

_LINES_AT_ONCE = 10_000


def by_frequency(options: WordOptions, texts: WordTexts, side: Side) -> WordGroups:
    """Group the words of one side by how often the training text has them, or the test set if
    there is no training text."""
    if path := options.training_text:
        return group_by_frequency(count_file(path, texts.scoring), texts, side, path.name)
    for run in map(Run, texts.run_folders):
        if prepared := prepared_text(run):
            counts = count_prepared(run, prepared, side, texts.scoring)
            return group_by_frequency(counts, texts, side, prepared.name)
    return group_by_frequency(Counter(texts.text(side)), texts, side, "the test set")


def group_by_frequency(
    counts: Counter[str], texts: WordTexts, side: Side, where: str
) -> WordGroups:
    """Group words by how often they are in a text: their counts, and its name."""

    def numbers(words: Iterable[str]) -> IntArray:
        return bucket_numbers(int_array(counts[word] for word in words), FREQUENCIES)

    names, by = bucket_names(np.array([0]), FREQUENCIES), f"frequency of the {side} word in {where}"
    translated = (
        [numbers(translation.words) for translation in texts.translations]
        if side == "target"
        else []
    )
    return WordGroups(by, "times", names, numbers(texts.text(side)), translated, side=side)


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
            for row in split.rows(range(len(split))[start : start + _LINES_AT_ONCE]):
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
    return next(filter(is_complete, [place / "prepared" / name for place in places]), None)


def _count(lines: Iterator[str], options: MetricOptions, total: int | None) -> Counter[str]:
    counts = Counter()
    with progress("counting words", total, "lines") as advance:
        while chunk := list(islice(lines, _LINES_AT_ONCE)):
            counts.update(tokenize(chunk, options))
            advance(len(chunk))
    return counts


ROOT, PUNCTUATION, UNKNOWN = "root", "punctuation", "_"

_DISTANCES: Edges = (1, 2, 4, 8)
_DISTANCE_NAMES = bucket_names(np.array([1]), _DISTANCES)

_DEPTHS: Edges = (0, 1, 2, 3, 4, 6)
_DEPTH_NAMES = bucket_names(np.array([0]), _DEPTHS)

Labels = Texts
"""The label of each word of a text: (M,)."""


@dataclass(frozen=True)
class TreeLabel:
    """A label that a tree gives to each of its words.

    name: of the groups.
    label: the labels of the words of a tree.
    about: for the legend.
    unit: of the values; empty for names.
    order: the groups in display order; empty for those without an order.
    """

    name: str
    label: Callable[[Parse], Labels]
    about: str
    unit: str = ""
    order: Texts = ()


def _distances(parse: Parse) -> Labels:
    values = word_distances(parse)  # (W,)
    buckets = _bucketed(parse, values, _DISTANCES, _DISTANCE_NAMES)
    for word, parent in enumerate(parse.parents.tolist()):
        if not values[word] and buckets[word] != PUNCTUATION:
            # a word below a punctuation mark, which is a parser's error, has no distance
            buckets[word] = ROOT if word == parent else UNKNOWN
    return buckets


def _bucketed(parse: Parse, values: IntArray, edges: Edges, names: Texts) -> list[str]:
    numbers: list[int] = bucket_numbers(values, edges).tolist()
    words = not_punctuation(parse)
    return [
        names[number] if word else PUNCTUATION for number, word in zip(numbers, words, strict=True)
    ]


TREE_LABELS = {
    "tag": TreeLabel(
        "part of speech",
        lambda parse: parse.or_unknown(parse.tags),
        "part of speech: universal tag",
    ),
    "relation": TreeLabel(
        "relation",
        lambda parse: list(map(base_name, parse.relations)),
        "relation: to the parent, without its subtype",
    ),
    "distance": TreeLabel(
        "distance to the parent",
        _distances,
        "distance: words from a word to its parent, without punctuation",
        unit="words",
        order=[ROOT, *_DISTANCE_NAMES, PUNCTUATION],
    ),
    "depth": TreeLabel(
        "depth in the tree",
        lambda parse: _bucketed(parse, depths(parse.parents), _DEPTHS, _DEPTH_NAMES),
        "depth: number of arcs from the root to the word",
        unit="arcs",
        order=[*_DEPTH_NAMES, PUNCTUATION],
    ),
}
"""The labels that trees give, by the names that users write."""


def by_trees(
    options: WordOptions, texts: WordTexts, kinds: Sequence[TreeLabel], side: Side
) -> tuple[list[WordGroups], str]:
    """Group the words of one side by labels that trees give them; returns the groups, and a line
    about the trees."""
    runs = list(map(Run, texts.run_folders))
    # the first run that has recorded its parser, else the first one
    run = next((run for run in runs if run.info().get("parser")), next(iter(runs), None))
    read = texts.first.as_read()
    to_label = [(texts.text(side), read.source if side == "source" else read.reference)]
    if side == "target":
        to_label += [
            (translation.words, translation.outputs.as_read().hypothesis)
            for translation in texts.translations
        ]
    parses, trees = parse_side(options, run, [lines for _, lines in to_label], side=side)
    groups = []
    for kind in kinds:
        words, *translated = (
            tree_labels(kind, text, lines, of_lines)
            for (text, lines), of_lines in zip(to_label, parses, strict=True)
        )
        groups.append(group_words(kind, words, translated, side))
    return groups, f"trees: {trees}"


def tree_labels(kind: TreeLabel, text: TokenizedText, lines: Texts, parses: Trees) -> Labels:
    """Label the words of a text by the trees of its lines.

    lines: the lines that were parsed, whose spaces may differ from those of the text.
    """
    word_labels = []
    for words, line, parse in zip(text.lines, lines, parses, strict=True):
        labels = kind.label(parse)
        owners = word_of(locate_words(words, line), parse.spans).tolist()
        word_labels += [labels[owner] if owner >= 0 else UNKNOWN for owner in owners]
    return word_labels


def group_words(
    kind: TreeLabel, words: Labels, translated: Sequence[Labels], side: Side
) -> WordGroups:
    """Group words by their labels; words without a label are in no group.

    words: labels of the words that can be found.
    translated: labels of the words of each translation; empty for groups of the source.
    side: of the words.
    """
    names = list(kind.order) or sorted({*words, *chain.from_iterable(translated)} - {UNKNOWN})
    numbers = {name: number for number, name in enumerate(names)}

    def number_all(labels: Labels) -> IntArray:
        return int_array(numbers.get(label, -1) for label in labels)

    by, of_translations = f"{kind.name} of the {side} word", list(map(number_all, translated))
    return WordGroups(by, kind.unit, names, number_all(words), of_translations, kind.about, side)
