"""Checks of a file of trees that comes with a text: does it have what the model reads?"""

from __future__ import annotations

from collections.abc import Collection
from itertools import islice
from pathlib import Path

from synmt.errors import UsageError
from synmt.parsing.models import check_features
from synmt.syntax.conllu import is_brackets, read_conllu
from synmt.syntax.feature_signals import without_scenes
from synmt.syntax.parse import FEATURES, SCENES

_FIRST = 1000
"""Sentences of a file in which every feature must occur."""


def check_given(path: Path, *, arcs: Collection[str], features: Collection[str]) -> None:
    """Refuse a file that lacks probabilities of arcs or features of words.

    arcs: the variants that read probabilities.
    features: what is read of words, some of feature_signals.STORED.
    """
    if arcs:
        _check_arcs(path, arcs)
    columns = [name for name in FEATURES if name in features]
    if not columns and SCENES not in features:
        return
    if is_brackets(path):
        raise without_scenes(str(path))
    found = {name for _, parse in islice(read_conllu(path), _FIRST) for name in parse.features}
    if columns:
        check_features(columns, [name for name in FEATURES if name in found], str(path))
    if SCENES in features and SCENES not in found:
        raise without_scenes(str(path))


def _check_arcs(path: Path, variants: Collection[str]) -> None:
    first = next((parse for _, parse in read_conllu(path) if len(parse)), None)
    if first is not None and first.arcs is None:
        raise UsageError(
            f"{', '.join(variants)} reads probabilities of arcs, and these trees have none",
            where=str(path),
            do="Parse the text again with `synmt parse --arcs`, or give every arc probability 1 by "
            "parser.control=gold",
        )
