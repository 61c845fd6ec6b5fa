"""Systems that were trained several times, from several seeds.

The score of such a system is the mean over its seeds, each scored by itself. A difference between two systems may come
from the sentences that were tested, or from the luck of a training (Clark et al., 2011, "Better hypothesis testing for
statistical machine translation"): here both are drawn anew together, or the training alone is judged.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from synmt.arrays import DoubleArray
from synmt.evaluation.bootstrap import SEED
from synmt.evaluation.significance import Comparison, compare, t_p_value


@dataclass(frozen=True)
class Spread:
    """How the scores of a system's seeds lie.

    deviation: standard deviation, with n - 1 below the line; 0 for a single seed.
    """

    mean: float
    deviation: float
    lowest: float
    highest: float


def spread(scores: Sequence[float]) -> Spread:
    """Describe the scores of a system's seeds."""
    values = np.array(scores)
    deviation = float(values.std(ddof=1)) if len(values) > 1 else 0.0
    return Spread(float(values.mean()), deviation, float(values.min()), float(values.max()))


def welch_test(base: Sequence[float], system: Sequence[float]) -> float:
    """Find the two-sided p-value of the difference of two systems' mean scores over their seeds (Welch, 1947).

        t = (mean(b) - mean(a)) / √(v_a + v_b),  v = deviation² / n
        degrees of freedom = (v_a + v_b)² / (v_a² / (n_a - 1) + v_b² / (n_b - 1))

    The sentences are taken as they are: it tells what training again would change, not what another test set would.
    """
    assert min(len(base), len(system)) > 1, (len(base), len(system))
    one, other = spread(base), spread(system)
    v_a, v_b = one.deviation**2 / len(base), other.deviation**2 / len(system)
    below = v_a**2 / (len(base) - 1) + v_b**2 / (len(system) - 1)
    freedom = (v_a + v_b) ** 2 / below if below > 0 else 1.0
    return t_p_value(other.mean - one.mean, (v_a + v_b) ** 0.5, freedom)


def seeded_bootstrap(base: DoubleArray, system: DoubleArray, observed: float, *, seed: int = SEED) -> Comparison:
    """Compare two systems by the scores of their seeds on the same resamples of sentences: (R, n_a) and (R, n_b).

    Each resample draws sentences, the same ones for all, and then seeds for each system. With one seed each it is
    the paired bootstrap (Koehn, 2004). Two or three seeds are few to draw from: its p-value is then too small, and
    Welch's test, which knows how few there are, is to be read beside it.

    observed: the difference of the means over the seeds, on all sentences.
    """
    random = np.random.default_rng(seed)
    before, after = draw_seeds(base, random), draw_seeds(system, random)  # (R,) both
    return compare(observed, after - before)


def draw_seeds(scores: DoubleArray, random: np.random.Generator) -> DoubleArray:
    """Draw seeds for each resample, with replacement, and average their scores: (R, n) -> (R,).

    One seed fewer is drawn than there are (McCarthy & Snowden, 1985): the mean then varies by deviation² / n, as
    the mean of n new seeds would. Drawing n gives (n - 1) / n of that, half of it for two seeds.
    """
    resamples, seeds = scores.shape
    if seeds == 1:
        return scores[:, 0]
    drawn = random.integers(seeds, size=(resamples, seeds - 1))  # (R, n-1)
    return np.take_along_axis(scores, drawn, axis=1).mean(1)  # (R,)
