"""What kind of word is it? Its tag, its relation, its distance to the parent, its depth, or its frequency.

    distance_i = | place(i) - place(parent(i)) |          depth_i = arcs from the root down to i

Places number the words without punctuation (see synmt.analysis.groups.trees). A word that the
parser does not have takes its label from the parser's word with its first character.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from synmt.analysis.groups.buckets import Edges, bucket_names, bucket_numbers
from synmt.analysis.groups.trees import word_distances
from synmt.analysis.trees.attachment import not_punctuation
from synmt.analysis.words.counts import WordGroups
from synmt.analysis.words.matching import TokenizedText
from synmt.arrays import IntArray, Side
from synmt.data.vocabulary import word_of
from synmt.syntax.align import locate_words
from synmt.syntax.parse import Parse
from synmt.syntax.relations import base_name
from synmt.syntax.trees import ancestors

FREQUENCIES: Edges = (0, 1, 2, 3, 4, 9, 99, 999)
"""The last frequency of each bucket: those of compare-mt."""

ROOT, PUNCTUATION, UNKNOWN = "root", "punctuation", "_"

_ZERO, _ONE = (np.array([lowest], dtype=np.int64) for lowest in (0, 1))

_DISTANCES: Edges = (1, 2, 4, 8)
_DISTANCE_NAMES = bucket_names(_ONE, _DISTANCES)

_DEPTHS: Edges = (0, 1, 2, 3, 4, 6)
_DEPTH_NAMES = bucket_names(_ZERO, _DEPTHS)

_FREQUENCY_NAMES = bucket_names(_ZERO, FREQUENCIES)

Labels = list[str]
"""The label of each word of a text: (M,)."""


@dataclass(frozen=True)
class TreeLabel:
    """A label that a tree gives to each of its words.

    name: of the groups.
    unit: of the values; empty for names.
    order: the groups in display order; None for the most frequent first.
    label: the labels of the words of a tree.
    """

    name: str
    unit: str
    order: Sequence[str] | None
    about: str
    label: Callable[[Parse], Sequence[str]]


def _tags(parse: Parse) -> Sequence[str]:
    return parse.tags or [UNKNOWN] * len(parse)


def _relations(parse: Parse) -> Sequence[str]:
    return [base_name(relation) for relation in parse.relations]


def _distances(parse: Parse) -> Sequence[str]:
    values = word_distances(parse)  # (W,)
    found = [_DISTANCE_NAMES[number] for number in bucket_numbers(values, _DISTANCES).tolist()]
    for word, parent in enumerate(parse.parents.tolist()):
        if not values[word]:
            # a word below a punctuation mark, which is a parser's error, has no distance
            found[word] = ROOT if word == parent else UNKNOWN
    return _with_punctuation(parse, found)


def _depths(parse: Parse) -> Sequence[str]:
    values = ancestors(parse.parents).sum(1) - 1  # (W,)
    return _with_punctuation(parse, [_DEPTH_NAMES[number] for number in bucket_numbers(values, _DEPTHS).tolist()])


def _with_punctuation(parse: Parse, names: Sequence[str]) -> list[str]:
    return [name if word else PUNCTUATION for name, word in zip(names, not_punctuation(parse), strict=True)]


TREE_LABELS = {
    "tag": TreeLabel("part of speech", "", None, "part of speech: universal tag", _tags),
    "relation": TreeLabel("relation", "", None, "relation: to the parent, without its subtype", _relations),
    "distance": TreeLabel(
        "distance to the parent",
        "words",
        [ROOT, *_DISTANCE_NAMES, PUNCTUATION],
        "distance: words from a word to its parent, without punctuation",
        _distances,
    ),
    "depth": TreeLabel(
        "depth in the tree",
        "arcs",
        [*_DEPTH_NAMES, PUNCTUATION],
        "depth: number of arcs from the root to the word",
        _depths,
    ),
}
"""The labels that trees give, by the names that users write."""


def tree_labels(kind: TreeLabel, text: TokenizedText, lines: Sequence[str], parses: Sequence[Parse]) -> Labels:
    """Label the words of a text by the trees of its lines.

    lines: the lines that were parsed, whose spaces may differ from those of the text.
    """
    found: Labels = []
    for words, line, parse in zip(text.lines, lines, parses, strict=True):
        labels = kind.label(parse)
        owners: list[int] = word_of(locate_words(words, line), parse.spans).tolist()
        found += [labels[owner] if owner >= 0 else UNKNOWN for owner in owners]
    return found


def group_words(kind: TreeLabel, words: Labels, translated: list[list[Labels]], *, whose: Side) -> WordGroups:
    """Group words by their labels; words without a label are in no group.

    words: labels of the words that can be found.
    translated: labels of the words of each translation, by system and seed; empty for groups of the source.
    whose: the side of the words.
    """
    names = _ordered(kind, words, translated)
    numbers = {name: number for number, name in enumerate(names)}

    def number_all(labels: Labels) -> IntArray:
        return np.array([numbers.get(label, -1) for label in labels], dtype=np.int64)

    return WordGroups(
        f"{kind.name} of the {whose} word",
        kind.unit,
        names,
        number_all(words),
        [[number_all(one) for one in seeds] for seeds in translated],
        kind.about,
        whose,
    )


def _ordered(kind: TreeLabel, words: Labels, translated: list[list[Labels]]) -> list[str]:
    if kind.order is not None:
        return list(kind.order)
    counts = Counter(words)
    others = {label for seeds in translated for labels in seeds for label in labels}
    counts.update(dict.fromkeys(others, 0))
    names = sorted(counts, key=lambda name: (-counts[name], name))
    return [name for name in names if name != UNKNOWN]


def group_by_frequency(
    counts: Counter[str],
    words: TokenizedText,
    translated: list[list[TokenizedText]],
    *,
    whose: Side,
    where: str = "",
    about: str,
) -> WordGroups:
    """Group words by how often a text has them.

    counts: of the words of that text.
    where: names the text, unless it is the training text.
    """

    def numbers(text: Iterable[str]) -> IntArray:
        values = np.array([counts[word] for word in text], dtype=np.int64)
        return bucket_numbers(values, FREQUENCIES)

    of_translations = [[numbers(one) for one in seeds] for seeds in translated]
    by = f"frequency of the {whose} word{where and f' in {where}'}"
    return WordGroups(by, "times", _FREQUENCY_NAMES, numbers(words), of_translations, about, whose)
