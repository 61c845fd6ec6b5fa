"""Translations of a text by a model with rewired trees, controls, flat trees, and trees of other
parsers.

    UAS(trees) = words of the original trees that have the same parent in `trees` / words of the
        original trees

The original trees are those that the model reads when it translates: from the parser of its
training or from a file, with the control of its recipe. The other trees are made from them by
`synmt.syntax.controls`, as `parser.control` and `parser.rewire` do for training, or come from
another parser. Words are matched by their position in the line; punctuation counts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import ne
from pathlib import Path
from typing import get_args

import numpy as np

from synmt.analysis.inputs import check_recorded
from synmt.arrays import Texts
from synmt.decode.inputs import windows
from synmt.decode.translation import joined
from synmt.decode.translator import Translator
from synmt.errors import UsageError
from synmt.evaluation.metrics import Metric, Score, score
from synmt.evaluation.outputs import Outputs
from synmt.evaluation.significance import Comparison, compare_on_resamples
from synmt.reporting.progress import progress
from synmt.syntax.controls import UNCHANGED, Control, ControlKind, certain_arcs
from synmt.syntax.parse import Parse, Trees, flat_parse


@dataclass(frozen=True, eq=False)
class ModelTrees:
    """The trees that a model reads for the lines of a text.

    trees: without words that have no pieces, and under the control of the recipe.
    keys: the piece ids of each line as bytes; together with the seed they determine random trees.
    before_control: the same trees without the control.
    control: the control of the recipe.
    reads_arcs: whether the model reads their arc probabilities.
    """

    lines: Texts
    trees: list[Parse]
    keys: list[bytes]
    before_control: list[Parse]
    control: Control = UNCHANGED
    reads_arcs: bool = True

    @property
    def with_arcs(self) -> bool:
        """Whether the trees have arc probabilities that the model reads."""
        return self.reads_arcs and any(tree.arcs is not None for tree in self.trees)


def check_translator(translator: Translator, run: Path, *, has_trees: bool = False) -> None:
    """Refuse a model that reads no dependency trees, or whose parser is unknown unless there is a
    file of trees."""
    translator.refuse_linearised("--robustness")
    if not translator.reads_trees or translator.reading.constituents:
        raise UsageError(
            "the model reads no dependency trees, so other trees change nothing",
            where=run,
            allowed="--robustness needs a run with a variant that reads trees, such as pascal",
        )
    if not has_trees:
        check_recorded(translator, run, "--parses")


def parse_shares(text: str) -> list[float]:
    """Parse shares such as `0,0.1,0.5`; returns them sorted, without duplicates."""
    try:
        shares = sorted({float(part) for part in text.split(",")})
    except ValueError:
        shares = [-1.0]
    if not all(0 <= share <= 1 for share in shares):
        raise UsageError(
            f"'{text}' is not a list of shares",
            where="--shares",
            allowed="Numbers from 0 to 1, separated by commas",
            do="Write for example `--shares 0,0.25,0.5,1`",
        )
    return shares


def find_model_trees(translator: Translator, lines: Texts, parses: Trees) -> ModelTrees:
    """Convert parses of lines to the trees that the model reads."""
    control, keys = translator.reading.control, [b""] * len(lines)
    trees, before_control = list(parses), list(parses)
    for sources in translator.source_batches(lines, parses):
        for source in sources:
            # the same key as in `collate`
            keys[source.index] = source.example.source.tobytes()
            before_control[source.index] = tree = source.example.trees["source"].parse
            trees[source.index] = control.apply(tree, keys[source.index])
    return ModelTrees(lines, trees, keys, before_control, control, translator.reading.arcs)


def make_conditions(
    model_trees: ModelTrees, shares: Sequence[float], *, seed: int
) -> dict[str, list[Parse]]:
    """Make the trees of each condition, by its name: the original trees, rewired trees for each
    share, controls and flat trees.

    If the original trees have arc probabilities, all arcs of the other trees are certain, so that
    shares differ only in parents; the share 0 then measures the effect of certainty alone.
    Otherwise the share 0 is left out, since its trees are the original trees, and so is the control
    of the recipe.
    """
    original, flat = model_trees.trees, list(map(flat_parse, model_trees.lines))
    if model_trees.with_arcs:
        original, flat = _certain(original), _certain(flat)
    controls = dict[str, Control]()
    for share in shares:
        if share or model_trees.with_arcs:
            name = f"{100 * share:g} % rewired" if share else "own, but certain"
            controls[name] = Control(rewire=share, seed=seed)
    for kind in get_args(ControlKind):
        # left and right chains do not depend on the seed
        same_chains = kind in ("left", "right") and model_trees.control.name == kind
        if kind != "none" and not same_chains and Control(kind, seed=seed) != model_trees.control:
            controls[kind] = Control(kind, seed=seed)
    others = {
        name: list(map(control.apply, original, model_trees.keys))
        for name, control in controls.items()
    }
    own = "own" if model_trees.control.idle else f"own ({model_trees.control.name})"
    return {own: model_trees.trees, **others, "flat": flat}


def attachment_score(originals: Trees, others: Trees) -> float:
    """Compute the UAS of other trees of the same lines against the original trees, 0 to 1; 1 for no
    words."""
    same = sum(
        len(_arcs(tree) & _arcs(other)) for tree, other in zip(originals, others, strict=True)
    )
    words = sum(map(len, originals))
    return same / words if words else 1.0


def _arcs(parse: Parse) -> set[tuple[int, ...]]:
    """Collect the span of each word with the span of its parent."""
    return set(map(tuple, np.hstack([parse.spans, parse.spans[parse.parents]]).tolist()))


def _certain(trees: Trees) -> list[Parse]:
    return [replace(tree, arcs=certain_arcs(tree)) for tree in trees]


@dataclass(frozen=True)
class Outcome:
    """The translations with the trees of one condition.

    uas: share of words with the same parent as in the original trees, 0 to 1.
    score: score of the test set.
    against_own: this score minus the score with the original trees; None for the original trees.
    changed: share of translations that differ from those with the original trees, 0 to 1.
    """

    name: str
    uas: float
    score: float
    against_own: Comparison | None
    changed: float
    translations: list[str] = field(repr=False)


def measure(
    translator: Translator,
    model_trees: ModelTrees,
    conditions: Mapping[str, list[Parse]],
    metric: Metric,
    outputs: Outputs,
) -> list[Outcome]:
    """Translate with each of the conditions, of which the first has the original trees.

    outputs: with the references, and the source that a metric may read.
    """
    # the control of the recipe has already been applied to the trees
    plain = translator.with_control(UNCHANGED)
    target = plain.tokenizers["target"]
    scores, texts = list[Score](), list[list[str]]()
    source = outputs.raw_source or outputs.source
    with progress("translating", len(model_trees.lines) * len(conditions), "lines") as advance:
        for trees in conditions.values():
            translated = []
            for window in plain.translate_words(windows(model_trees.lines, plain.window), trees):
                for words in window:
                    translation = words if metric.on_tokens else joined(words, target)
                    translated.append(translation.text)
                    advance(1)
            scores.append(score(metric, translated, outputs.reference, source))
            texts.append(translated)
    compared = compare_on_resamples(
        [[test_score.statistics] for test_score in scores], metric.aggregate
    )
    return [
        Outcome(
            name,
            attachment_score(model_trees.trees, trees),
            test_score.value,
            comparison,
            sum(map(ne, translated, texts[0])) / max(len(translated), 1),
            translated,
        )
        for (name, trees), test_score, translated, comparison in zip(
            conditions.items(), scores, texts, [None, *compared], strict=True
        )
    ]
