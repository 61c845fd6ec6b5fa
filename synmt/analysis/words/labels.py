"""What kind of word is it? Its tag, its relation, its distance to the parent, its depth: labels
from trees.

    distance_i = | place(i) - place(parent(i)) |          depth_i = arcs from the root down to i

Places number the words without punctuation (see synmt.analysis.groups.trees). A word that the
parser does not have takes its label from the parser's word with its first character.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np

from synmt.analysis.groups.grouping import Edges, bucket_names, bucket_numbers
from synmt.analysis.groups.trees import find_side_parser, parse_side, word_depths, word_distances
from synmt.analysis.inputs import name_parser, parse_lines
from synmt.analysis.trees.attachment import not_punctuation
from synmt.analysis.words.accuracy import WordGroups
from synmt.analysis.words.texts import TokenizedText, WordTexts
from synmt.arrays import IntArray, Side
from synmt.data.vocabulary import word_of
from synmt.run_folder import Run
from synmt.syntax.align import locate_words
from synmt.syntax.conllu import read_parses
from synmt.syntax.parse import Parse
from synmt.syntax.relations import base_name

if TYPE_CHECKING:
    from synmt.analysis.options import WordOptions

ROOT, PUNCTUATION, UNKNOWN = "root", "punctuation", "_"

_DISTANCES: Edges = (1, 2, 4, 8)
_DISTANCE_NAMES = bucket_names(np.array([1]), _DISTANCES)

_DEPTHS: Edges = (0, 1, 2, 3, 4, 6)
_DEPTH_NAMES = bucket_names(np.array([0]), _DEPTHS)

Labels = Sequence[str]
"""The label of each word of a text: (M,)."""


@dataclass(frozen=True)
class TreeLabel:
    """A label that a tree gives to each of its words.

    name: of the groups.
    label: the labels of the words of a tree.
    about: for the legend.
    unit: of the values; empty for names.
    order: the groups in display order; empty for the most frequent first.
    """

    name: str
    label: Callable[[Parse], Labels]
    about: str
    unit: str = ""
    order: Sequence[str] = ()


def _tags(parse: Parse) -> Labels:
    return parse.tags or [UNKNOWN] * len(parse)


def _relations(parse: Parse) -> Labels:
    return [base_name(relation) for relation in parse.relations]


def _distances(parse: Parse) -> Labels:
    values = word_distances(parse)  # (W,)
    found = _bucketed(parse, values, _DISTANCES, _DISTANCE_NAMES)
    for word, parent in enumerate(parse.parents.tolist()):
        if not values[word] and found[word] != PUNCTUATION:
            # a word below a punctuation mark, which is a parser's error, has no distance
            found[word] = ROOT if word == parent else UNKNOWN
    return found


def _depths(parse: Parse) -> Labels:
    return _bucketed(parse, word_depths(parse), _DEPTHS, _DEPTH_NAMES)


def _bucketed(parse: Parse, values: IntArray, edges: Edges, names: Sequence[str]) -> list[str]:
    numbers: list[int] = bucket_numbers(values, edges).tolist()
    words = not_punctuation(parse)
    return [
        names[number] if word else PUNCTUATION for number, word in zip(numbers, words, strict=True)
    ]


TREE_LABELS = {
    "tag": TreeLabel("part of speech", _tags, "part of speech: universal tag"),
    "relation": TreeLabel("relation", _relations, "relation: to the parent, without its subtype"),
    "distance": TreeLabel(
        "distance to the parent",
        _distances,
        "distance: words from a word to its parent, without punctuation",
        unit="words",
        order=[ROOT, *_DISTANCE_NAMES, PUNCTUATION],
    ),
    "depth": TreeLabel(
        "depth in the tree",
        _depths,
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
    opened = [Run(folder) for folder in texts.run_folders]
    # the first run that has recorded its parser, else the first one
    run = next((run for run in opened if run.info().get("parser")), opened[0] if opened else None)
    read = texts.first.as_read()
    lines = read.source if side == "source" else read.reference
    given = list(read_parses(options.parses, lines)) if options.parses else None
    parses, translations, translated = given or [], [], []
    trees = options.parses.name if options.parses else ""
    if side == "target":
        parser = find_side_parser(
            options, run, side, "choose `--words frequency`, which needs no trees"
        )
        trees = f"{trees} for the references, " * bool(trees) + name_parser(parser)
        parses = parse_lines(parser, lines) if given is None else given
        translations = [(one.words, one.outputs.as_read().hypothesis) for one in texts.translations]
        translated = [parse_lines(parser, hypothesis) for _, hypothesis in translations]
    elif given is None:
        parses, trees = parse_side(options, run, lines, side=side)
    groups = []
    for kind in kinds:
        of_translations = [
            tree_labels(kind, words, hypothesis, own)
            for (words, hypothesis), own in zip(translations, translated, strict=True)
        ]
        groups.append(
            group_words(
                kind, tree_labels(kind, texts.text(side), lines, parses), of_translations, side
            )
        )
    return groups, f"trees: {trees}"


def tree_labels(
    kind: TreeLabel, text: TokenizedText, lines: Sequence[str], parses: Sequence[Parse]
) -> Labels:
    """Label the words of a text by the trees of its lines.

    lines: the lines that were parsed, whose spaces may differ from those of the text.
    """
    found = []
    for words, line, parse in zip(text.lines, lines, parses, strict=True):
        labels = kind.label(parse)
        owners = word_of(locate_words(words, line), parse.spans).tolist()
        found += [labels[owner] if owner >= 0 else UNKNOWN for owner in owners]
    return found


def group_words(
    kind: TreeLabel, words: Labels, translated: Sequence[Labels], side: Side
) -> WordGroups:
    """Group words by their labels; words without a label are in no group.

    words: labels of the words that can be found.
    translated: labels of the words of each translation; empty for groups of the source.
    side: of the words.
    """
    names = list(kind.order)
    if not names:
        counts = Counter(words)
        counts.update(dict.fromkeys(chain.from_iterable(translated), 0))
        del counts[UNKNOWN]
        names = sorted(counts, key=lambda name: (-counts[name], name))
    numbers = {name: number for number, name in enumerate(names)}

    def number_all(labels: Labels) -> IntArray:
        return np.array([numbers.get(label, -1) for label in labels], dtype=np.int64)

    own = list(map(number_all, translated))
    return WordGroups(
        f"{kind.name} of the {side} word",
        kind.unit,
        names,
        number_all(words),
        own,
        kind.about,
        side,
    )
