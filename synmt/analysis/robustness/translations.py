"""Translations of one text by one model with its original trees and with other trees."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from synmt.analysis.robustness.conditions import Condition, ModelTrees, attachment_score
from synmt.decode.inputs import windows
from synmt.decode.translation import joined
from synmt.decode.translator import Translator
from synmt.evaluation.metrics import Metric, score
from synmt.evaluation.outputs import Outputs
from synmt.evaluation.significance import Comparison, paired_bootstrap
from synmt.syntax.controls import Control


@dataclass(frozen=True)
class Outcome:
    """The translations under one condition.

    uas: share of words with the same parent as in the original trees, 0 to 1.
    score: score of the test set.
    against_own: this score minus the score with the original trees; None for the original trees.
    changed: share of translations that differ from those with the original trees, 0 to 1.
    """

    condition: Condition
    uas: float
    score: float
    against_own: Comparison | None
    changed: float
    translations: list[str] = field(repr=False)


def measure(
    translator: Translator,
    own: ModelTrees,
    conditions: Iterable[Condition],
    metric: Metric,
    outputs: Outputs,
    advance: Callable[[float], None] = lambda lines: None,
) -> Iterator[Outcome]:
    """Translate with the original trees, then with each condition, and yield the outcomes.

    outputs: with the references, and the source that a metric may read.
    """
    # the control of the recipe has already been applied to the trees
    plain = translator.with_control(Control())
    name = "own" if own.control.idle else f"own ({own.control.name})"
    base = texts = None
    for one in [Condition(name, "own", own.trees), *conditions]:
        found = list[str]()
        for window in plain.translate_words(windows(own.lines, plain.window), one.trees):
            for words in window:
                translation = words if metric.on_tokens else joined(words, plain.tokenizers["target"])
                found.append(translation.text)
                advance(1)
        scored = score(metric, found, outputs.reference, outputs.source)
        if base is None or texts is None:
            base, texts = scored.statistics, found
            yield Outcome(one, 1.0, scored.value, None, 0.0, found)
            continue
        compared = paired_bootstrap(base, scored.statistics, metric.aggregate)
        changed = sum(other != text for other, text in zip(found, texts, strict=True)) / max(len(texts), 1)
        yield Outcome(one, attachment_score(own.trees, one.trees), scored.value, compared, changed, found)
