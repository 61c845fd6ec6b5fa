"""How often a model prefers a right translation to wrong ones (Sennrich, 2017).

    a contrast is won if log P(correct | source) > log P(incorrect | source) for every incorrect
        translation

The log-probability is the sum over all pieces and EOS. Ties count as lost. Accuracies have Wilson's
interval (1927). Two models are compared by the contrasts that only one of them wins, with McNemar's
exact test; the interval of the difference comes from resamples of the sources, each with all its
contrasts.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from synmt.arrays import BoolArray, DoubleArray, IntArray
from synmt.decode.pairs import PairScore, score_alternatives
from synmt.decode.translator import Translator
from synmt.errors import SynmtError
from synmt.evaluation.bootstrap import (
    SAMPLES,
    SEED,
    WithInterval,
    ratio_intervals,
    sum_by_sentence,
    wilson,
)
from synmt.evaluation.contrast.sets import Contrast, ContrastSet
from synmt.evaluation.significance import Comparison
from synmt.reporting.progress import progress
from synmt.syntax.parse import Parse

MOST_GROUPS = 40
"""A grouping with more groups than this has no table: it probably numbers the contrasts."""


@dataclass(frozen=True)
class Decision:
    """The probabilities that a model gives to the translations of one contrast.

    log_probability, pieces: of the right translation.
    incorrect: the same of each wrong one.
    truncated: whether the source or a translation was too long for the model and scored in part.
    unknown: whether a translation has pieces that are not in the vocabulary.
    """

    log_probability: float
    pieces: int
    incorrect: tuple[tuple[float, int], ...]
    truncated: bool = False
    unknown: bool = False

    @property
    def won(self) -> bool:
        """Tell whether the right translation has a higher probability than all others."""
        return all(self.log_probability > other for other, _ in self.incorrect)

    @property
    def tied(self) -> bool:
        """Tell whether the contrast is lost only because of equal probabilities."""
        return not self.won and all(self.log_probability >= other for other, _ in self.incorrect)

    @property
    def won_by_piece(self) -> bool:
        """Tell whether the right translation has the highest mean log-probability per piece."""
        return all(
            self.log_probability / self.pieces > other / pieces for other, pieces in self.incorrect
        )

    def as_json(self, model: str) -> dict[str, Any]:
        """Return plain values, with the name of the model."""
        wrong = [{"log_probability": value, "pieces": pieces} for value, pieces in self.incorrect]
        return {
            "model": model,
            "won": self.won,
            "tied": self.tied,
            **asdict(self),
            "incorrect": wrong,
        }


@dataclass(frozen=True)
class Accuracy(WithInterval):
    """The number of contrasts that a model wins, and their proportion with its 95 % interval."""

    won: int
    ties: int
    accuracy: float
    low: float
    high: float
    accuracy_by_piece: float


@dataclass(frozen=True)
class ContrastRow:
    """One group of contrasts: the accuracy of each model, and the difference of each further model
    from the first."""

    group: str
    pairs: int
    results: list[Accuracy]
    comparisons: list[Comparison]


def decide(
    translator: Translator,
    contrast_set: ContrastSet,
    trees: Sequence[Parse] | None = None,
    *,
    name: str = "the model",
) -> list[Decision]:
    """Score the translations of every contrast by a model.

    Sources that occur several times are read once, unless each has its own tree.

    trees: of the sources; by default the model's parser makes them.
    name: of the model, for the progress.
    """
    sources, contrasts, first = contrast_set.sources, contrast_set.contrasts, {}
    rows = [
        one.source if trees else first.setdefault(sources[one.source], one.source)
        for one in contrasts
    ]
    # with trees: all sources, also those without contrasts, so that they stay aligned with the
    # trees
    targets: dict[int, dict[str, None]] = {row: {} for row in range(len(sources))} if trees else {}
    for row, one in zip(rows, contrasts, strict=True):
        targets.setdefault(row, {}).update(dict.fromkeys((one.correct, *one.incorrect)))
    found = score_alternatives(
        translator, ((sources[row], tuple(texts)) for row, texts in targets.items()), trees
    )
    scores = {}
    with progress(f"scoring by {name}", len(targets), "sources") as advance:
        for (row, texts), of_source in zip(targets.items(), found, strict=True):
            # the targets of the scores are words, if the run tokenizes text
            scores[row] = dict(zip(texts, of_source, strict=True))
            advance(1)
    return [_decide(scores[row], one) for row, one in zip(rows, contrasts, strict=True)]


def _decide(scores: dict[str, PairScore], contrast: Contrast) -> Decision:
    chosen = [scores[text] for text in (contrast.correct, *contrast.incorrect)]
    if not all(one.pieces for one in chosen):
        raise SynmtError("the source has no piece that the model could read", where=contrast.where)
    (right, pieces), *wrong = [(float(one.log_probabilities.sum()), one.pieces) for one in chosen]
    truncated = any(one.source_dropped or one.target_dropped for one in chosen)
    return Decision(right, pieces, tuple(wrong), truncated, any(one.unknown for one in chosen))


def groupings(contrasts: Sequence[Contrast]) -> dict[str, list[str]]:
    """List the groups of each grouping, numbers in their order."""
    groups = {}
    for contrast in contrasts:
        for name, group in contrast.groups.items():
            groups.setdefault(name, {})[group] = None
    return {name: sorted(members, key=_order) for name, members in groups.items()}


def _order(group: str) -> tuple[bool, float, bool, str]:
    """Sort numbers first, by size; `>15` follows 15."""
    number = group.lstrip(">").split(" ")[0].replace(",", "")
    is_number = number.isdecimal()
    return not is_number, float(number) if is_number else 0.0, group.startswith(">"), group


def tabulate(
    contrasts: Sequence[Contrast],
    models: Sequence[Sequence[Decision]],
    *,
    samples: int = SAMPLES,
    seed: int = SEED,
) -> dict[str | None, list[ContrastRow]]:
    """Count the contrasts of each group, for each grouping; that of all contrasts together is None.

    models: for each model its decisions.
    """
    # won, tied, won by piece
    flags = [
        np.array([(one.won, one.tied, one.won_by_piece) for one in decisions])
        for decisions in models
    ]  # (N, 3)
    sources = np.array([one.source for one in contrasts])  # (N,)
    tables = {}
    for by, groups in [(None, ["all"]), *groupings(contrasts).items()]:
        if len(groups) > MOST_GROUPS:
            continue
        # (N, G)
        members = np.array(
            [[by is None or one.groups.get(by) == group for group in groups] for one in contrasts]
        )
        tables[by] = [
            ContrastRow(group, int(members[:, g].sum()), [], []) for g, group in enumerate(groups)
        ]
        for model in flags:
            gains = model[:, 0].astype(float) - flags[0][:, 0]  # (N,)
            ends = (
                _intervals(gains, sources, members, samples=samples, seed=seed)
                if model is not flags[0]
                else []
            )
            for g, row in enumerate(tables[by]):
                inside = members[:, g]
                won, ties, by_piece = model[inside].sum(0).tolist()
                share = wilson(won, row.pairs)
                row.results.append(
                    Accuracy(won, ties, share.value, share.low, share.high, by_piece / row.pairs)
                )
                if ends:
                    row.comparisons.append(_compare(flags[0][inside, 0], model[inside, 0], ends[g]))
    return tables


def _compare(first: BoolArray, other: BoolArray, ends: tuple[float, float]) -> Comparison:
    """Compare the contrasts that two models win, (M,) both."""
    from scipy.stats import binomtest

    gained, lost = int((other & ~first).sum()), int((first & ~other).sum())
    p_value = float(binomtest(gained, gained + lost).pvalue) if gained + lost else 1.0
    return Comparison((gained - lost) / len(first), *ends, p_value)


def _intervals(
    differences: DoubleArray, sources: IntArray, members: BoolArray, *, samples: int, seed: int
) -> list[tuple[float, float]]:
    """Resample the sources: differences (N,), sources (N,) and members (N, G) -> G intervals.

    A group that is in no resample has the widest interval, [-1, 1].
    """
    places, rows = np.unique(sources, return_inverse=True)
    above = sum_by_sentence(differences[:, None] * members, rows, len(places))  # (S, G)
    below = sum_by_sentence(members, rows, len(places))  # (S, G)
    with warnings.catch_warnings():
        # numpy warns of groups that are in no resample
        warnings.simplefilter("ignore", RuntimeWarning)
        intervals = ratio_intervals(above, below, samples=samples, seed=seed)
    return [(-1.0, 1.0) if np.isnan(low) else (low, high) for low, high in intervals]
