"""Signals for what is known of words besides the tree: tags, lemmas, morphology, case, places of
pieces in words, and scenes.

Every signal but the last one numbers the value of each piece: 0 for specials, 1 + its index in a
list of values, and 1 + the length of the list for every other value. The lists of relations, tags,
cases and places are fixed. Those of fine tags, lemmas and morphology are learned from the training
text (`learn_features`) and stored in the run (`Run.features`); `with_values` adds them to a signal.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import Literal

import numpy as np

from synmt.arrays import IntArray, Strings
from synmt.errors import SynmtError, UsageError
from synmt.syntax.parse import FEATURES, SCENES, Parse
from synmt.syntax.signals import (
    Signal,
    numbered,
    numbers_of_values,
    over_pieces,
    relation_signal,
    word_firsts,
)

FeatureName = Literal["relation", "tag", "fine_tag", "lemma", "morphology", "subword", "case"]

FeatureValues = Mapping[str, Strings]
"""The values of each learned feature in the training text, most frequent first."""

STORED = ("case", *FEATURES, SCENES)
"""Values that an annotation stores only for systems that read them."""

UNIVERSAL_TAGS = (
    *("ADJ", "ADP", "ADV", "AUX", "CCONJ", "DET", "INTJ", "NOUN", "NUM"),
    *("PART", "PRON", "PROPN", "PUNCT", "SCONJ", "SYM", "VERB", "X"),
)
"""The tags of Universal Dependencies."""

CASES = ("none", "lower", "capital", "upper", "mixed")
"""How a word is written: without letters, `monkey`, `Monkey` or `I`, `UN`, `iPhone`."""

PLACES = ("O", "B", "I", "E")
"""The place of a piece: the whole word; at its beginning, inside, at its end (Sennrich & Haddow,
2016)."""


def case_of(word: str) -> str:
    """Name the case of a word, one of CASES."""
    letters = [letter for letter in word if letter.lower() != letter.upper()]
    if not letters:
        return "none"
    first, *others = (letter.isupper() or letter.istitle() for letter in letters)
    if not any(others):
        return "capital" if first else "lower"
    return "upper" if first and all(others) else "mixed"


def cases_of(parse: Parse) -> list[str]:
    """Name the case of every word, from the annotation or from the words themselves."""
    stored = parse.features.get("case")
    # the words of an annotation are empty strings
    assert stored is not None or all(parse.words), "an annotation without cases"
    return list(map(case_of, parse.words)) if stored is None else stored


def places_of_pieces(parse: Parse, word_of: IntArray) -> IntArray:
    """Number the place of every piece in its word, one of PLACES: (T,) -> (T,)."""
    first = word_firsts(word_of, len(parse))  # (W,)
    last = len(word_of) - 1 - word_firsts(word_of[::-1], len(parse))  # (W,)
    positions = np.flatnonzero(word_of >= 0)
    first, last = first[word_of[positions]], last[word_of[positions]]
    places = np.select([first == last, positions == first, positions < last], [1, 2, 3], default=4)
    result = np.zeros(len(word_of), dtype=np.int64)  # (T,)
    result[positions] = places
    return result


def _tags(parse: Parse, word_of: IntArray) -> IntArray:
    return numbers_of_values(parse.or_unknown(parse.tags), word_of, numbered(UNIVERSAL_TAGS))


def _cases(parse: Parse, word_of: IntArray) -> IntArray:
    return numbers_of_values(cases_of(parse), word_of, numbered(CASES))


def _learned(
    parse: Parse, word_of: IntArray, *, name: str, most: int, numbers: Mapping[str, int]
) -> IntArray:
    return numbers_of_values(parse.or_unknown(parse.features.get(name)), word_of, numbers)


TAG = Signal("tag", "tags", _tags, pad=0)
CASE = Signal("case", "case", _cases, pad=0)
SUBWORD = Signal("subword", "words", places_of_pieces, pad=0)


def feature_signal(name: FeatureName, *, most: int) -> Signal:
    """Make the signal of a feature; a learned one numbers its `most` most frequent values."""
    fixed = {"relation": relation_signal(), "tag": TAG, "case": CASE, "subword": SUBWORD}
    if name in fixed:
        return fixed[name]
    return Signal(
        f"{name}.{most}",
        needs=name,  # type: ignore[arg-type]
        compute=partial(_learned, name=name, most=most, numbers={}),
        pad=0,
    )


def with_values(signal: Signal, values: FeatureValues) -> Signal:
    """Add to a signal of a learned feature the values of the training text, most frequent first;
    others stay the same."""
    if signal.needs not in values or not isinstance(signal.compute, partial):
        return signal
    options = signal.compute.keywords
    known = numbered(values[signal.needs][: options["most"]])
    return replace(signal, compute=partial(_learned, **{**options, "numbers": known}))


# scenes: groups of words that tell one event together, such as those of UCCA; a word may be in
# several, or in none
#
# CoNLL-U has them in MISC: `Scenes=1,2` for a word in two scenes. Their names mean nothing beyond
# the sentence.


def without_scenes(where: str) -> SynmtError:
    """Make the error for trees without scenes; no parser makes them."""
    return UsageError(
        "a variant reads scenes, which these trees do not have, and no parser makes them",
        where=where,
        do="Give CoNLL-U for every text, with `Scenes=1,2` in MISC for a word in two scenes",
    )


def scenes_in(misc: str) -> str:
    """Find the scenes of a word in its MISC; `_` without any."""
    match = re.search(r"(?:^|\|)Scenes=([^|]+)", misc)
    return match[1] if match else "_"


def join_scenes(values: Iterable[str]) -> str:
    """Name all scenes that some words are in, each once; `_` without any."""
    names = dict.fromkeys(name for value in values if value != "_" for name in value.split(","))
    return ",".join(names) or "_"


def same_scene(parse: Parse, word_of: IntArray) -> IntArray:
    """Mark by 1 which pieces share a scene with each piece: (T, T), queries first.

    A special shares one with itself only. The row of a piece whose word is in no scene is 1
    everywhere.
    """
    values = parse.or_unknown(parse.features.get(SCENES))
    scenes = [set(value.split(",")) - {"_"} for value in values]
    shared = [[1 if scenes_of_word & other else 0 for other in scenes] for scenes_of_word in scenes]
    table = np.array(shared, dtype=np.int64).reshape(len(parse), len(parse))  # (W, W)
    result = over_pieces(table, word_of, 0)  # (T, T)
    alone = np.array([not of_word for of_word in scenes] + [False])  # (W + 1,) the last: specials
    result[alone[word_of]] = 1
    np.fill_diagonal(result, 1)
    return result


SAME_SCENE = Signal("same_scene", "scenes", same_scene, pad=1)
