"""Scenes: groups of words that tell one event together, such as those of UCCA; a word may be in
several, or in none.

CoNLL-U has them in MISC: `Scenes=1,2` for a word in two scenes. Their names mean nothing beyond the
sentence.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import chain

import numpy as np

from synmt.arrays import IntArray
from synmt.errors import SynmtError, UsageError
from synmt.syntax.parse import SCENES, Parse
from synmt.syntax.signals import Signal

_DO = "Give CoNLL-U for every text, with `Scenes=1,2` in MISC for a word in two scenes"


def without_scenes(where: str) -> SynmtError:
    """Make the error for given trees without scenes."""
    return UsageError("a variant reads scenes, and these trees have none", where=where, do=_DO)


def no_parser_makes_scenes(where: str = "", do: str = _DO) -> SynmtError:
    """Make the error for trees that a parser would have to make."""
    return UsageError("a variant reads scenes, and no parser makes them", where=where, do=do)


def scenes_in(misc: str) -> str:
    """Find the scenes of a word in its MISC; `_` without any."""
    found = re.search(r"(?:^|\|)Scenes=([^|]+)", misc)
    return found[1] if found else "_"


def join_scenes(values: Iterable[str]) -> str:
    """Name all scenes that some words are in, each once; `_` without any."""
    names = dict.fromkeys(name for value in values if value != "_" for name in value.split(","))
    return ",".join(names) or "_"


def same_scene(parse: Parse, word_of: IntArray) -> IntArray:
    """Mark by 1 which pieces share a scene with each piece: (T, T), queries first.

    A special shares one with itself only. The row of a piece whose word is in no scene is 1
    everywhere.
    """
    of_words = [
        value.split(",") if value != "_" else [] for value in parse.features.get(SCENES, ())
    ]
    numbers = {
        name: number for number, name in enumerate(dict.fromkeys(chain.from_iterable(of_words)))
    }
    # the last row is for specials, whose index is -1
    member = np.zeros((len(parse) + 1, len(numbers)), dtype=np.int64)  # (W + 1, scenes)
    for word, names in enumerate(of_words):
        member[word, [numbers[name] for name in names]] = 1
    shared = (member @ member.T > 0) | ~member.any(1, keepdims=True)  # (W + 1, W + 1)
    shared[-1] = False
    result = shared.take(word_of, axis=0).take(word_of, axis=1).astype(np.int64)  # (T, T)
    np.fill_diagonal(result, 1)
    return result


SAME_SCENE = Signal("same_scene", needs="scenes", compute=same_scene, pad=1)
