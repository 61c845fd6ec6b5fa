"""The controlled corpus: English-German sentences that need syntax, with gold trees and a labelled
test set.

It measures what a model learns of syntax. A grammar with a lexicon of about 100 words draws the
meaning of a sentence, which is expressed in English, with its tree, and in German, whose verb forms
and cases depend on the tree. A small model learns the words from a few thousand pairs, so its
remaining errors are those of structure. The test set has labels:

- phenomenon: agreement, subject_relative, object_relative, subordinate, separable, case,
  coordination.
- attractors: number of nouns between a subject's head and its verb that differ from it in number
  (see `english`).
- split: what is new in the sentence.

    seen         only the sentence itself
    combination  a subject noun and a verb that never occur together in training (one in eight
        combinations)
    attractors   2 to 4 attractors (training has 0 and 1), in sentences that are not longer than
                 those of training
    length       23 to 30 words (training has at most 22)

A second test set, `hard`, has sentences that are longer than all of the first one, and deeper:

    longer       31 to 45 words, at most 8 deep, as 99.8 % of the training sentences
    deeper       31 to 45 words, and some word is 9 to 12 arcs below the root

Sentences of the splits `length`, `longer` and `deeper` have 0 or 1 attractors. To see the effect of
attractors alone, leave the split `length` out:
`synmt analyze --by-label --label attractors --where split!=length`.

A recipe can change the corpus (`ControlledRecipe`): fewer pairs, which leave room for differences
between systems, another order of words with endings of cases, which only gold trees describe, less
deep trees, more nouns.

A sentence is new in one respect only. No sentence occurs twice in the corpus. The test set does not
depend on the size of the training set.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from random import Random

from synmt.arrays import Pair, Texts
from synmt.controlled import english, german
from synmt.controlled.english import attractors, combinations
from synmt.controlled.grammar import PHENOMENA, SentencePlan, draw
from synmt.controlled.lexicon import nouns
from synmt.controlled.meaning import Sentence
from synmt.controlled.word_order import restyle
from synmt.files.writing import reporting_os_errors
from synmt.recipe.corpus import ControlledRecipe
from synmt.syntax.conllu import format_conllu
from synmt.syntax.parse import Parse
from synmt.syntax.trees import depths

SPLITS = ("seen", "combination", "attractors", "length")
HARD_SPLITS = ("longer", "deeper")
TRAINED_WORDS = 22
TRAINED_DEPTH = 8
LABELS = ("phenomenon", "attractors", "split")
USUAL = ControlledRecipe()

_HELD_OUT = 8
_LENGTHS = {"length": range(23, 31), "longer": range(31, 46), "deeper": range(31, 46)}
"""Numbers of words in the splits that have other ones than training."""
# the numbers of nouns between subject and verb in sentences with at most one attractor, to choose
# from
_BETWEEN = (0, 1, 1, 1, 2, 2, 3, 4)
_BETWEEN_HARD = (2, 3, 4, 4, 5)


@dataclass(frozen=True, eq=False)
class ControlledExample:
    """A sentence pair with its gold tree.

    meaning: of both sides.
    parse: the tree of the source.
    split: one of SPLITS or HARD_SPLITS; training data are `seen`.
    """

    meaning: Sentence
    source: str
    target: str
    parse: Parse
    phenomenon: str
    attractors: int
    split: str


Parts = dict[str, list[ControlledExample]]
"""The examples of train, valid and test, or of the hard test set."""


def generate(
    seed: int = 1,
    train: int | None = None,
    valid: int = 300,
    test: int = 1200,
    settings: ControlledRecipe = USUAL,
) -> Parts:
    """Generate the three parts of the corpus; a seed gives the same sentences on every machine.

    train: by default that of the settings.
    """
    sizes = {"test": test, "valid": valid, "train": settings.pairs if train is None else train}
    assert min(sizes.values()) >= 0, sizes
    used_sources: set[str] = set()
    parts = {
        part: list(_new_examples(seed, part, size, settings, used_sources))
        for part, size in sizes.items()
    }
    return dict(reversed(parts.items()))


def generate_hard(seed: int = 1, size: int = 600, settings: ControlledRecipe = USUAL) -> Parts:
    """Generate the hard test set; all of its sentences are longer than those of `generate`."""
    return {"hard": list(_new_examples(seed, "hard", size, settings, set()))}


def write_corpus(folder: Path, examples: Parts) -> None:
    """Write each part as `.en` and `.de` (one sentence per line) and `.en.conllu`, and the labels
    of test sets."""
    with reporting_os_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
        for part, members in examples.items():
            trees = [
                format_conllu(example.parse, example.source, line)
                for line, example in enumerate(members, start=1)
            ]
            texts = {
                "en": [f"{example.source}\n" for example in members],
                "de": [f"{example.target}\n" for example in members],
                "en.conllu": trees,
            }
            if part in ("test", "hard"):
                rows = [
                    f"{member.phenomenon}\t{member.attractors}\t{member.split}\n"
                    for member in members
                ]
                texts["labels.tsv"] = ["\t".join(LABELS) + "\n", *rows]
            for name, lines in texts.items():
                text = "".join(lines)
                (folder / f"{part}.{name}").write_text(text, encoding="utf-8", newline="\n")


def is_held_out(combination: Pair) -> bool:
    """Check whether a subject noun and a verb never occur together in training."""
    return hashlib.sha256(" ".join(combination).encode()).digest()[0] % _HELD_OUT == 0


@dataclass(frozen=True)
class _Labels:
    """The labels that a sentence must have."""

    split: str
    phenomenon: str
    attractors: int


def _label_cycle(splits: Texts, size: int) -> Iterator[_Labels]:
    """Yield all labels in turn, so that they are equally frequent in every size."""
    for index in range(size):
        turn, split = divmod(index, len(splits))
        turn, phenomenon = divmod(turn, len(PHENOMENA))
        counts = (2, 3, 4) if splits[split] == "attractors" else (0, 1)
        yield _Labels(splits[split], PHENOMENA[phenomenon], counts[turn % len(counts)])


def _new_examples(
    seed: int, part: str, size: int, settings: ControlledRecipe, used_sources: set[str]
) -> Iterator[ControlledExample]:
    """Draw sentences of a part until there is a new one for all labels."""
    splits, depth = {"test": (SPLITS, 0), "hard": (HARD_SPLITS, TRAINED_DEPTH)}.get(
        part, (SPLITS[:1], settings.depth)
    )
    digest = hashlib.sha256(f"{seed} {part}".encode()).digest()
    random = Random(int.from_bytes(digest[:8], "big"))
    for labels in _label_cycle(splits, size):
        while (
            not (example := _example(random, settings, labels, depth))
            or example.source in used_sources
        ):
            pass
        used_sources.add(example.source)
        yield example


def _example(
    random: Random, settings: ControlledRecipe, labels: _Labels, depth: int
) -> ControlledExample | None:
    """Draw a sentence; None if it is not as its labels promise."""
    meaning = draw(random, _plan(random, labels), nouns(settings.lexicon))
    if meaning is None:
        return None
    root = english.tree(meaning, partial(restyle, settings=settings, random=random))
    if attractors(root) != labels.attractors or not _fits(root, labels.split, depth):
        return None
    source, parse = english.text_and_parse(root)
    return ControlledExample(
        meaning,
        source,
        german.say(meaning),
        parse,
        labels.phenomenon,
        labels.attractors,
        labels.split,
    )


def _fits(root: english.Node, split: str, depth: int) -> bool:
    """Check whether a sentence has the length, the words and the depth of a split.

    depth: arcs below the root, which only a `deeper` sentence has more of; 0 sets no limit.
    """
    return (
        len(root.in_order()) in _LENGTHS.get(split, range(TRAINED_WORDS + 1))
        and any(map(is_held_out, combinations(root))) == (split == "combination")
        and (
            depth == 0
            or any(depths(english.text_and_parse(root)[1].parents) > depth) == (split == "deeper")
        )
    )


def _plan(random: Random, labels: _Labels) -> SentencePlan:
    hard = labels.split in HARD_SPLITS
    between, choices = labels.attractors, _BETWEEN_HARD if hard else _BETWEEN
    if labels.split != "attractors":
        between = max(between, choices[int(random.random() * len(choices))])
    rich = 0.9 if hard else 0.6 if labels.split == "length" else 0.2
    return SentencePlan(labels.phenomenon, between, labels.attractors, rich)
