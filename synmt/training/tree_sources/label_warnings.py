"""What is unexpected in the relations and tags of the training text."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from synmt.arrays import Side
from synmt.data.corpus import PreparedCorpus
from synmt.syntax.feature_signals import UNIVERSAL_TAGS
from synmt.training.tree_sources.requirements import TreeRequirements


def relation_warnings(
    requirements: Mapping[Side, TreeRequirements],
    prepared: PreparedCorpus,
    trees: Mapping[Side, str],
) -> list[str]:
    """List what is unexpected in the relations and tags of the training text, according to the
    variants.

    trees: by side, the name of the annotation.
    """
    warnings = []
    for side, name in trees.items():
        facts = prepared.annotations()[name]
        for variant in requirements[side].variants:
            needs = {signal.needs for signal in variant.signals}
            counts = facts["arc_relations" if facts["arcs"] and "arcs" in needs else "relations"][
                "train"
            ]
            warnings += variant.kind.relation_warnings(counts, **variant.options)
            if "tags" in needs:
                warnings += _tag_warnings(variant.kind.recipe_name(), facts["tags"])
    return list(dict.fromkeys(warnings))


def _tag_warnings(variant: str, tags: Iterable[str]) -> list[str]:
    unknown = [tag for tag in tags if tag not in (*UNIVERSAL_TAGS, "_")]
    listed = ", ".join(unknown[:5]) + ", …" * (len(unknown) > 5)
    about = f"{variant} knows the tags of Universal Dependencies; other tags share one embedding"
    return [f"{about}: {listed}"] if unknown else []
