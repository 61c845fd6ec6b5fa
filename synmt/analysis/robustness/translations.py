"""Translations of one text by one model with its original trees and with other trees."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from synmt.analysis.robustness.conditions import Condition, ConditionKind, ModelTrees, attachment_score
from synmt.decode.inputs import windows
from synmt.decode.translation import joined
from synmt.decode.translator import Translator
from synmt.evaluation.metrics import Metric, score
from synmt.evaluation.outputs import Outputs
from synmt.evaluation.significance import Comparison, holm, paired_bootstrap
from synmt.syntax.controls import Control
from synmt.syntax.parse import Parse


@dataclass(frozen=True)
class Outcome:
    """The translations under one condition.

    uas: share of words with the same parent as in the original trees, 0 to 1.
    score: score of the test set.
    against_own: this score minus the score with the original trees; None for the original trees.
    changed: share of translations that differ from those with the original trees, 0 to 1.
    holm_p: p-value of the comparison, corrected for the number of conditions; None for the original trees.
    """

    name: str
    kind: ConditionKind
    share: float | None
    uas: float
    score: float
    against_own: Comparison | None
    changed: float
    translations: list[str] = field(repr=False)
    holm_p: float | None = None


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

    def translate(trees: list[Parse]) -> Iterator[str]:
        for window in plain.translate_words(windows(own.lines, plain.window), trees):
            for words in window:
                translation = words if metric.on_tokens else joined(words, plain.tokenizers["target"])
                yield translation.text
                advance(1)

    texts = list(translate(own.trees))
    base = score(metric, texts, outputs.reference, outputs.source)
    name = "own" if own.control.idle else f"own ({own.control.name})"
    yield Outcome(name, "own", None, 1.0, base.value, None, 0.0, texts)
    for one in conditions:
        others = list(translate(one.trees))
        scored = score(metric, others, outputs.reference, outputs.source)
        compared = paired_bootstrap(base.statistics, scored.statistics, metric.aggregate)
        changed = sum(other != text for other, text in zip(others, texts, strict=True)) / max(len(texts), 1)
        uas = attachment_score(own.trees, one.trees)
        yield Outcome(one.name, one.kind, one.share, uas, scored.value, compared, changed, others)


def corrected(outcomes: Sequence[Outcome]) -> list[Outcome]:
    """Give each comparison with the original trees its p-value after Holm's correction (1979) over all of them."""
    adjusted = iter(holm([one.against_own.p_value for one in outcomes if one.against_own]))
    return [replace(one, holm_p=next(adjusted)) if one.against_own else one for one in outcomes]
