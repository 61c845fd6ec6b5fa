"""Factors: embeddings of what is known of the word of each piece, which join the embedding of the
piece."""

from __future__ import annotations

from collections.abc import Iterable

from torch import nn

from synmt.arrays import Strings
from synmt.model.variant import Place
from synmt.syntax.feature_signals import CASES, PLACES, UNIVERSAL_TAGS, FeatureName, feature_signal
from synmt.syntax.relations import KNOWN
from synmt.syntax.signals import Signals, relation_signal

_FIXED = {"relation": KNOWN, "tag": UNIVERSAL_TAGS, "subword": PLACES, "case": CASES}


def factor_signals(names: Iterable[FeatureName], *, most: int, relations: Strings = ()) -> Signals:
    """List the signals of features, in their order.

    most: how many values of a learned feature have numbers, the most frequent ones.
    relations: those that have numbers; an empty list means those of Universal Dependencies and of
        Stanford together.
    """
    numbered = {"relation": relation_signal(relations)} if relations else {}
    return tuple(numbered.get(name) or feature_signal(name, most=most) for name in names)


def factor_table(
    name: FeatureName,
    width: int,
    place: Place,
    *,
    most: int,
    relations: Strings = (),
    std: float | None = None,
) -> nn.Embedding:
    """Make the table of a feature: a row for specials, one for each value, one for all others.

    std: of the initial components; None for rows whose norm is about 1.
    """
    values = _FIXED[name] if name in _FIXED else place.features.get(name, ())[:most]
    if name == "relation" and relations:
        values = relations
    # no padding_idx, because row 0 is that of EOS, too, which is learned
    table = nn.Embedding(len(values) + 2, width)
    nn.init.normal_(table.weight, std=width**-0.5 if std is None else std)
    return table
