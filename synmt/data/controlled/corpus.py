"""The controlled corpus: English-German sentences that need syntax, with gold trees and a labelled test set.

It is an instrument. A grammar with a lexicon of about 100 words draws what a sentence means; the meaning is
said in English, with its tree, and in German, whose verb forms and cases depend on the tree. A small model learns
its words from a few thousand pairs, so what remains in its errors is structure, and the test set says which:

- phenomenon: agreement, subject_relative, object_relative, subordinate, separable, case, coordination.
- attractors: nouns between a subject's head and its verb that differ from it in number (see `measure`).
- split: what about the sentence is new.

    seen         nothing but the sentence
    combination  one verb in eight is never trained with a given subject noun; here it is
    attractors   2 to 4 of them, where training has 0 and 1, in sentences no longer than trained ones
    length       23 to 30 words, where training has at most 22

Longer sentences have 0 or 1 attractors: to see what attractors alone do, leave them out, by
`synmt analyze --by-label --label attractors --where split!=length`.

A sentence is new in one respect only. Every sentence comes once, in one split. The test set does not change with
the size of the training set.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

from synmt.data.controlled import english, german
from synmt.data.controlled.grammar import PHENOMENA, SentencePlan, draw
from synmt.data.controlled.meaning import Sentence
from synmt.data.controlled.measure import attractors, combinations
from synmt.files import reporting_os_errors, write_atomically
from synmt.syntax.conllu import format_conllu
from synmt.syntax.parse import Parse

SPLITS = ("seen", "combination", "attractors", "length")
TRAINED_WORDS = 22
LONGEST = 30
LABELS = ("phenomenon", "attractors", "split")

_HELD_OUT = 8
# how many nouns stand between subject and verb in sentences with at most one attractor
_BETWEEN = (0, 1, 1, 1, 2, 2, 3, 4)


@dataclass(frozen=True, eq=False)
class ControlledExample:
    """A sentence pair with its gold tree.

    meaning: what both sides say. parse: the English side, its spans point into `source`.
    split: one of SPLITS; training data are `seen`.
    combinations: the (subject noun, verb) pairs of its clauses, by their English names.
    """

    meaning: Sentence
    source: str
    target: str
    parse: Parse
    phenomenon: str
    attractors: int
    split: str
    combinations: frozenset[tuple[str, str]]


Parts = dict[str, list[ControlledExample]]
"""The examples of train, valid and test."""


def generate(seed: int = 1, train: int = 6000, valid: int = 300, test: int = 1200) -> Parts:
    """Generate the three parts of the corpus; the same seed gives the same sentences everywhere."""
    sizes = {"test": test, "valid": valid, "train": train}
    assert min(sizes.values()) >= 0, sizes
    taken: set[str] = set()
    parts = {}
    for part, size in sizes.items():
        random = Random(int.from_bytes(hashlib.sha256(f"{seed} {part}".encode()).digest()[:8], "big"))
        splits = SPLITS if part == "test" else SPLITS[:1]
        parts[part] = [_new_example(random, cell, taken) for cell in _cells(splits, size)]
    return {part: parts[part] for part in ("train", "valid", "test")}


def write_corpus(folder: Path, examples: Parts) -> None:
    """Write each part as `.en` and `.de`, a sentence a line, and `.en.conllu`, and the labels of the test set."""
    with reporting_os_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
    for part, members in examples.items():
        _write(folder / f"{part}.en", (f"{each.source}\n" for each in members))
        _write(folder / f"{part}.de", (f"{each.target}\n" for each in members))
        trees = (format_conllu(each.parse, each.source, line) for line, each in enumerate(members, start=1))
        _write(folder / f"{part}.en.conllu", trees)
    if "test" not in examples:
        return
    rows = [LABELS, *((each.phenomenon, str(each.attractors), each.split) for each in examples["test"])]
    _write(folder / "test.labels.tsv", ("\t".join(row) + "\n" for row in rows))


def is_held_out(combination: tuple[str, str]) -> bool:
    """Tell whether a subject noun and a verb are kept out of training together."""
    return hashlib.sha256(" ".join(combination).encode()).digest()[0] % _HELD_OUT == 0


@dataclass(frozen=True)
class _Cell:
    """One sentence to be drawn: the labels that it must earn."""

    split: str
    phenomenon: str
    attractors: int


def _cells(splits: Sequence[str], size: int) -> Iterator[_Cell]:
    """Deal the labels in turn, so that each gets its share whatever the size."""
    for index in range(size):
        turn, split = divmod(index, len(splits))
        turn, phenomenon = divmod(turn, len(PHENOMENA))
        counts = (2, 3, 4) if splits[split] == "attractors" else (0, 1)
        yield _Cell(splits[split], PHENOMENA[phenomenon], counts[turn % len(counts)])


def _new_example(random: Random, cell: _Cell, taken: set[str]) -> ControlledExample:
    """Draw until a sentence is new and earns its labels."""
    while True:
        example = _example(random, cell)
        if example and example.source not in taken:
            taken.add(example.source)
            return example


def _example(random: Random, cell: _Cell) -> ControlledExample | None:
    meaning = draw(random, _plan(random, cell))
    if meaning is None:
        return None
    root = english.tree(meaning)
    pairs = combinations(root)
    words = len(root.in_order())
    is_long = words > TRAINED_WORDS
    fits = attractors(root) == cell.attractors and words <= LONGEST
    fits &= is_long == (cell.split == "length")
    fits &= any(map(is_held_out, pairs)) == (cell.split == "combination")
    if not fits:
        return None
    source, parse = english.text_and_parse(root)
    target = german.say(meaning)
    return ControlledExample(meaning, source, target, parse, cell.phenomenon, cell.attractors, cell.split, pairs)


def _plan(random: Random, cell: _Cell) -> SentencePlan:
    if cell.split == "attractors":
        between = cell.attractors
    else:
        between = max(cell.attractors, _BETWEEN[int(random.random() * len(_BETWEEN))])
    rich = 0.6 if cell.split == "length" else 0.2
    return SentencePlan(cell.phenomenon, between, cell.attractors, rich)


def _write(path: Path, pieces: Iterator[str]) -> None:
    with write_atomically(path) as stream:
        stream.writelines(pieces)
