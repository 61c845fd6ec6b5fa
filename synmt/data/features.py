"""Vocabularies of features: what lemmas, fine tags and morphologies of words the training text has.

Most frequent values come first: their order gives the rows of embeddings. A run stores them
(`Run.features`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from synmt.data.arrow import ArrowTable
from synmt.data.corpus import PreparedCorpus, shard_name
from synmt.files.schemas import TreeFacts
from synmt.syntax.feature_signals import FeatureValues
from synmt.syntax.parse import FEATURES

LEAST = 2
"""Rarer values share a row with those that the training text does not have; so this row is trained,
too."""


def learn_features(prepared: PreparedCorpus, annotation: str) -> FeatureValues:
    """Collect the values of features in the trees of the training text, as far as the annotation
    stores them."""
    counts: dict[str, Counter[str]] = {}
    for shard in range(prepared.facts["splits"]["train"]["shards"]):
        table = ArrowTable(prepared.folder / annotation / shard_name("train", shard), TreeFacts)
        facts = table.facts.get("features", {})
        for name in facts.keys() & set(FEATURES):
            own = dict(zip(facts[name]["values"], facts[name]["counts"], strict=True))
            counts.setdefault(name, Counter()).update(own)
    return {name: _frequent(counts[name]) for name in FEATURES if name in counts}


def _frequent(counts: Mapping[str, int]) -> tuple[str, ...]:
    return tuple(
        sorted(
            (value for value, count in counts.items() if count >= LEAST),
            key=lambda v: (-counts[v], v),
        )
    )
