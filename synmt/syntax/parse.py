r"""The dependency tree of a line, the probabilities of its arcs, and the whitespace that no word
contains.

Whitespace is spaces, tabs, separators such as U+2028, and all control characters. Stanza treats
`\s` and \x80 to \x9f as spaces. The other control characters are added here: they are not part of a
word, and other tools cannot read a file with them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pkgutil import resolve_name

import numpy as np

from synmt.arrays import Array, BoolArray, FloatArray, IntArray, Strings, int_pairs

_CHARACTERS = r"\s\x00-\x1f\x7f-\x9f"
WHITESPACE = re.compile(f"[{_CHARACTERS}]")
CHARACTER = re.compile(f"[^{_CHARACTERS}]")
WORD = re.compile(f"[^{_CHARACTERS}]+")
# characters that end a line or a column in other tools; U+0020 and U+00A0 do not
_BREAKING = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")


FEATURES = ("lemma", "fine_tag", "morphology")
"""What a parser may say about a word besides its tag: columns 3, 5 and 6 of CoNLL-U."""

SCENES = "scenes"
"""The feature that names the scenes of a word, `1,2`; given trees have it in MISC, and no parser
makes it."""


@dataclass(frozen=True, eq=False)
class Arcs:
    """P(parent, relation | word), sparse: N entries, sorted by word.

    words: (N,) the word of each entry, ascending.
    parents: (N,) its parent; the root is its own parent.
    relations: (N,) indices of names.
    probabilities: (N,); those of a word sum to 0.999 at least and to 1 at most.
    names: the relations.
    """

    words: IntArray
    parents: IntArray
    relations: IntArray
    probabilities: FloatArray
    names: Strings

    @property
    def columns(self) -> tuple[Array, ...]:
        """Words, parents, relations and probabilities: (N,) each."""
        return self.words, self.parents, self.relations, self.probabilities

    def __getitem__(self, entries: IntArray | BoolArray) -> Arcs:
        """Select entries by indices or by a mask."""
        return Arcs(*(column[entries] for column in self.columns), names=self.names)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Arcs) and self._values() == other._values()

    def _values(self) -> tuple[object, ...]:
        relations = [self.names[number] for number in self.relations.tolist()]
        return relations, *map(np.ndarray.tolist, (self.words, self.parents, self.probabilities))


@dataclass(frozen=True, eq=False)
class Parse:
    """The dependency tree of one line.

    words: the surface tokens, as the line has them.
    spans: (W, 2) positions of each word in the line: [start, end), in characters.
    parents: (W,) index of each word's parent; the root is its own parent.
    relations: relation to the parent, a UD name with its subtype if the parser gives one; the root
        has `root`. None are there if the tree has constituents only, and then the parents mean
        nothing.
    tags: universal part of speech of each word, `_` if unknown.
    arcs: the probabilities of all arcs, if the parser gave them.
    constituents: (N, 2) spans of words (see `synmt/syntax/constituents.py`), if they were given.
    features: those of FEATURES and SCENES that are known, each with a value for every word, `_` if
        it has none.
    """

    words: list[str]
    spans: IntArray
    parents: IntArray
    relations: list[str]
    tags: list[str] = field(default_factory=list)
    arcs: Arcs | None = None
    constituents: IntArray | None = None
    features: Mapping[str, list[str]] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.words)

    def or_unknown(self, values: list[str] | None) -> list[str]:
        """Return values of the words; `_` for each if there are none, as in a line that could not
        be parsed."""
        return values or ["_"] * len(self)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Parse) and self._values() == other._values()

    def _repr_html_(self) -> str:
        """Draw the tree, for a notebook."""
        # by name: drawings need parses
        return resolve_name("synmt.syntax.drawing:draw_parse")(self)

    def _values(self) -> tuple[object, ...]:
        # arrays compared by == have no truth value
        arrays = (self.spans, self.parents, self.constituents)
        lists = [None if array is None else array.tolist() for array in arrays]
        return self.words, self.relations, self.tags, dict(self.features), self.arcs, lists


Trees = Sequence[Parse]
"""Trees in the order of their lines."""


def words_at(line: str, spans: IntArray) -> list[str]:
    """Cut the words at character spans (W, 2) out of a line."""
    return [line[start:end] for start, end in spans.tolist()]


def flat_parse(line: str) -> Parse:
    """Make a tree for a line that could not be parsed: words are split at whitespace, all are `dep`
    of the first."""
    spans = [match.span() for match in WORD.finditer(line)]
    return Parse(
        words=WORD.findall(line),
        spans=int_pairs(spans),
        parents=np.zeros(len(spans), dtype=np.int64),
        relations=["root", *["dep"] * len(spans)][: len(spans)],
        tags=["_"] * len(spans),
    )


def without_whitespace(text: str) -> str:
    """Remove all whitespace."""
    return "".join(WORD.findall(text))


def evenly_spaced(text: str) -> str:
    """Replace every whitespace character by a space; positions do not change."""
    return WHITESPACE.sub(" ", text)


def without_breaks(text: str) -> str:
    """Replace every character that could end a line or a column by a space; positions do not
    change."""
    return _BREAKING.sub(" ", text)
