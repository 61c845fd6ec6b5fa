"""How often a model finds the right translation likelier than wrong ones (Sennrich, 2017).

    a contrast is won if log P(correct | source) > log P(incorrect | source) for every incorrect one

The log-probability is the sum over all pieces and EOS. A tie is lost, and counted. The interval of an accuracy is
Wilson's (1927). Models are compared by the contrasts that only one of them has won: p is that of McNemar's exact test,
and the interval comes from resamples of the sources, each with all its contrasts.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.stats import binomtest

from synmt.arrays import BoolArray
from synmt.decode.pairs import PairScore, score_alternatives
from synmt.decode.translator import Translator
from synmt.errors import SynmtError
from synmt.evaluation.bootstrap import SAMPLES, SEED, ratio_intervals
from synmt.evaluation.contrast.sets import Contrast, ContrastSet
from synmt.evaluation.significance import Comparison
from synmt.syntax.parse import Parse

MOST_GROUPS = 40
"""A grouping with more groups has no table: it tells every contrast from the others."""


@dataclass(frozen=True)
class Decision:
    """What a model says about one contrast.

    log_probability, pieces: of the right translation.
    incorrect: the same of each wrong one.
    cut: whether one of them, or the source, was too long for the model and scored in part.
    unknown: whether one of them has pieces that the vocabulary has no name for.
    """

    log_probability: float
    pieces: int
    incorrect: tuple[tuple[float, int], ...]
    cut: bool = False
    unknown: bool = False

    @property
    def won(self) -> bool:
        """Tell whether the right one is likelier than all others."""
        return all(self.log_probability > other for other, _ in self.incorrect)

    @property
    def tied(self) -> bool:
        """Tell whether only ties keep it from being won."""
        return not self.won and all(self.log_probability >= other for other, _ in self.incorrect)

    @property
    def won_by_piece(self) -> bool:
        """Tell whether the right one is likelier on the average of its pieces."""
        return all(self.log_probability / self.pieces > other / pieces for other, pieces in self.incorrect)


@dataclass(frozen=True)
class Accuracy:
    """How many contrasts a model has won, with the 95 % interval of the share."""

    won: int
    ties: int
    accuracy: float
    low: float
    high: float
    accuracy_by_piece: float


@dataclass(frozen=True)
class Row:
    """One group of contrasts: a result for each model, and how each further model differs from the first."""

    group: str
    pairs: int
    results: list[Accuracy]
    comparisons: list[Comparison]


@dataclass(frozen=True)
class Table:
    """The rows of one grouping."""

    by: str
    rows: list[Row]


def decide(
    translator: Translator,
    given: ContrastSet,
    trees: Sequence[Parse] | None = None,
    advance: Callable[[float], None] = lambda amount: None,
) -> list[Decision]:
    """Let a model judge all contrasts of a set; each different source is read once, unless trees are given."""
    keys = [given.sources[one.source] if trees is None else one.source for one in given.contrasts]
    # all sources where trees stand beside them, so that they stay side by side
    wanted: dict[Any, dict[str, None]] = {} if trees is None else {index: {} for index in range(len(given.sources))}
    for key, one in zip(keys, given.contrasts, strict=True):
        wanted.setdefault(key, {}).update(dict.fromkeys((one.correct, *one.incorrect)))
    pairs = ((given.sources[key] if isinstance(key, int) else key, tuple(texts)) for key, texts in wanted.items())
    found = {}
    for key, scores in zip(wanted, score_alternatives(translator, pairs, trees), strict=True):
        found[key] = {score.target: score for score in scores}
        # a window comes out at once
        if len(found) % translator.window == 0:
            advance(translator.window)
    advance(len(found) % translator.window)
    return [_decision(found[key], one) for key, one in zip(keys, given.contrasts, strict=True)]


def _decision(scores: dict[str, PairScore], contrast: Contrast) -> Decision:
    chosen = [scores[text] for text in (contrast.correct, *contrast.incorrect)]
    if not all(one.pieces for one in chosen):
        raise SynmtError("the source has no piece that the model could read", where=contrast.where)
    (right, pieces), *wrong = [(float(one.log_probabilities.sum()), one.pieces) for one in chosen]
    cut = any(one.source_dropped or one.target_dropped for one in chosen)
    return Decision(right, pieces, tuple(wrong), cut, any(one.unknown for one in chosen))


def groupings(contrasts: Sequence[Contrast]) -> dict[str, list[str]]:
    """List the groups of each grouping, numbers in their order."""
    found: dict[str, dict[str, None]] = {}
    for contrast in contrasts:
        for name, group in contrast.groups.items():
            found.setdefault(name, {})[group] = None
    return {name: sorted(groups, key=_order) for name, groups in found.items()}


def total(contrasts: Sequence[Contrast], models: Sequence[Sequence[Decision]], **bootstrap: int) -> Row:
    """Judge all contrasts together."""
    return _rows(contrasts, models, ["all"], np.ones((len(contrasts), 1), np.bool_), **bootstrap)[0]


def tabulate(contrasts: Sequence[Contrast], models: Sequence[Sequence[Decision]], **bootstrap: int) -> Iterator[Table]:
    """Judge the contrasts of each group; `samples` and `seed` are those of the resamples."""
    for name, groups in groupings(contrasts).items():
        if len(groups) <= MOST_GROUPS:
            members = np.array([[one.groups.get(name) == group for group in groups] for one in contrasts])  # (N, G)
            yield Table(name, _rows(contrasts, models, groups, members, **bootstrap))


def _rows(
    contrasts: Sequence[Contrast],
    models: Sequence[Sequence[Decision]],
    groups: Sequence[str],
    members: BoolArray,
    *,
    samples: int = SAMPLES,
    seed: int = SEED,
) -> list[Row]:
    """Judge G groups, whose members are (N, G)."""
    flags = [np.array([(one.won, one.tied, one.won_by_piece) for one in decisions]) for decisions in models]  # (N, 3)
    sources = np.array([one.source for one in contrasts])  # (N,)
    intervals = [
        _intervals(one[:, 0].astype(float) - flags[0][:, 0], sources, members, samples=samples, seed=seed)
        for one in flags[1:]
    ]
    return [
        Row(
            group,
            int(members[:, column].sum()),
            [_accuracy(one[members[:, column]]) for one in flags],
            [
                _compare(flags[0][members[:, column], 0], one[members[:, column], 0], ends[column])
                for one, ends in zip(flags[1:], intervals, strict=True)
            ],
        )
        for column, group in enumerate(groups)
    ]


def _accuracy(flags: BoolArray) -> Accuracy:
    """Count what is won, tied and won by piece: (M, 3)."""
    won, ties, by_piece = flags.sum(0).tolist()
    ends = binomtest(won, len(flags)).proportion_ci(method="wilson")
    return Accuracy(won, ties, won / len(flags), float(ends.low), float(ends.high), by_piece / len(flags))


def _compare(first: BoolArray, other: BoolArray, ends: tuple[float, float]) -> Comparison:
    """Compare what two models have won, (M,) both."""
    gained, lost = int((other & ~first).sum()), int((first & ~other).sum())
    p_value = float(binomtest(gained, gained + lost).pvalue) if gained + lost else 1.0
    return Comparison((gained - lost) / len(first), *ends, p_value)


def _intervals(
    differences: npt.NDArray[np.float64],
    sources: npt.NDArray[np.int64],
    members: BoolArray,
    *,
    samples: int,
    seed: int,
) -> list[tuple[float, float]]:
    """Resample the sources: differences (N,), sources (N,) and members (N, G) -> G intervals.

    A group that no resample has may differ by anything: its interval is [-1, 1].
    """
    places, rows = np.unique(sources, return_inverse=True)
    above, below = (np.zeros((len(places), members.shape[1])) for _ in range(2))  # (S, G) both
    np.add.at(above, rows, differences[:, None] * members)
    np.add.at(below, rows, members.astype(np.float64))
    with warnings.catch_warnings():
        # numpy says so where a group is in no resample
        warnings.simplefilter("ignore", RuntimeWarning)
        found = ratio_intervals(above, below, samples=samples, seed=seed)
    return [(-1.0, 1.0) if np.isnan(low) else (low, high) for low, high in found]


def _order(group: str) -> tuple[bool, float, bool, str]:
    """Put numbers first, by size, and what is above a number behind it."""
    number = group.lstrip(">").split(" ")[0].replace(",", "")
    known = number.isdecimal()
    return not known, float(number) if known else 0.0, group.startswith(">"), group


def as_json(row: Row, names: Sequence[str]) -> dict[str, Any]:
    """Write a row as plain values."""
    models = [{"model": name, **asdict(result)} for name, result in zip(names, row.results, strict=True)]
    for values, comparison in zip(models[1:], row.comparisons, strict=True):
        values["comparison"] = asdict(comparison)
    return {"group": row.group, "pairs": row.pairs, "models": models}
