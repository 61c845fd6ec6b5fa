"""How long a translation may become, and how its length counts in its score."""

from __future__ import annotations

from torch import Tensor

SHORTEST = 2
"""The smallest limit: one piece and EOS."""


def length_penalty(length: Tensor | float, alpha: float) -> Tensor | float:
    """Compute what a log-probability is divided by (Wu et al., 2016, section 7; their coverage is left out).

        score = log P(y | x) / lp(y)        lp(y) = ((5 + |y|) / 6) ** alpha

    |y| counts the pieces with EOS. An alpha of 0 ranks by log-probability alone; larger ones favour longer
    translations.
    """
    return ((5 + length) / 6) ** alpha


def best_possible(log_probabilities: Tensor, limits: Tensor, alpha: float) -> Tensor:
    """Bound the scores that unfinished hypotheses can still reach: (B,) and the limits (B,) -> (B,).

    A log-probability only falls from here, and no normaliser is larger than that of the longest translation.
    """
    return log_probabilities / length_penalty(limits, alpha)


def length_limits(sources: Tensor, *, ratio: float, extra: int) -> Tensor:
    """Bound the pieces of translations, EOS included, by the pieces of the sources without theirs: (B,) -> (B,)."""
    return (sources * ratio).long().add(extra).clamp(min=SHORTEST)
