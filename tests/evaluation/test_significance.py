"""Tests of significance against enumeration, scipy and sacreBLEU. The paired bootstrap itself is in
test_metrics.py."""

from itertools import combinations, product

import numpy as np
import pytest
from each import of_seeds
from scipy import stats
from scored import FIRST, REFERENCES, SECOND

from synmt.evaluation.comparison import TESTS, SignificancePlan, compare_scores
from synmt.evaluation.metrics import make_metric, score
from synmt.evaluation.significance import (
    approximate_randomization,
    holm,
    kolmogorov_smirnov,
    paired_t_test,
    resample_seeds,
    spread,
    swapped_differences,
    welch_test,
)


def ratio(totals):
    """Score by a ratio of sums, which differs from the mean of the segments' scores."""
    return float(100 * totals[0] / totals[1])


def drawn(random, segments, shift=0.0):
    right = random.normal(2 + shift, 1, segments)
    return np.stack([right, random.integers(3, 9, segments)], axis=1)


def enumerated(base, system):
    """Score every exchange of segments, and every pair of seeds, one by one."""
    found = []
    for exchanged in product([False, True], repeat=len(base[0])):
        swap = np.array(exchanged)[:, None]
        pairs = [
            ratio(np.where(swap, one, other).sum(0)) - ratio(np.where(swap, other, one).sum(0))
            for one, other in product(base, system)
        ]
        found.append(np.mean(pairs))
    return found


@pytest.mark.journey
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("seeds", [(1, 1), (2, 1), (2, 3)])
def test_randomization_equals_the_enumeration_of_all_exchanges(seed, seeds):
    random = np.random.default_rng(seed)
    base, system = (
        [drawn(random, 5, shift) for _ in range(n)]
        for n, shift in zip(seeds, (0, 0.8), strict=True)
    )
    everything = np.array(enumerated(base, system))
    exact = (abs(everything) >= abs(everything[0]) - 1e-9).mean()  # first, nothing is exchanged
    found = swapped_differences(base, system, ratio, samples=4000, seed=seed)
    assert {*np.round(found, 6)} == {*np.round(everything, 6)}
    # three deviations of a share of 4,000
    p = approximate_randomization(base, system, ratio, samples=4000, seed=seed)
    assert p == pytest.approx(exact, abs=3 * 0.5 / 4000**0.5)


@of_seeds(4)
def test_the_t_test_and_the_test_of_distributions_are_scipys(random):
    one, other = random.normal(40, 20, 80), random.normal(43, 20, 80)
    assert paired_t_test(one, other) == pytest.approx(stats.ttest_rel(other, one).pvalue)
    assert kolmogorov_smirnov(one, other) == stats.ks_2samp(one, other).pvalue
    welch = stats.ttest_ind(other[:5], one[:3], equal_var=False).pvalue
    assert welch_test(one[:3].tolist(), other[:5].tolist()) == pytest.approx(welch)


def test_without_variance_p_is_0_for_a_difference_and_1_for_none():
    ones = np.ones(9)
    assert paired_t_test(ones, ones) == kolmogorov_smirnov(ones, ones) == 1
    assert paired_t_test(ones, ones + 0.1) == 0
    assert paired_t_test(np.array([30.0]), np.array([50.0])) == 1
    assert kolmogorov_smirnov(ones, ones + 1) < 0.001
    # a spread of one side is enough
    for other, low, high in (([25, 25, 25], 1, 1), ([26, 26], 0, 0), ([26, 27], 0.01, 0.99)):
        assert low <= welch_test([25.0, 25.0], other) <= high


def test_a_single_seed_has_no_deviation():
    assert spread([24.0]).deviation == 0


@pytest.mark.parametrize("seeds", [2, 3, 4])
def test_the_mean_of_resampled_seeds_varies_like_that_of_new_seeds(seeds):
    values = np.random.default_rng(seeds).normal(25, 1, seeds)
    found = resample_seeds(np.tile(values, (20_000, 1)), np.random.default_rng(1))
    assert found.var() == pytest.approx(values.var(ddof=1) / seeds, rel=0.05)
    assert found.mean() == pytest.approx(values.mean(), abs=0.05)


@pytest.mark.parametrize("name", ["bleu", "chrf", "ter", "ribes"])
def test_a_system_does_not_differ_from_itself_in_any_test(name):
    metric = make_metric(name)
    seeds = [score(metric, lines, REFERENCES) for lines in (FIRST, SECOND)]
    for scores, tests in ((seeds, {*TESTS}), (seeds[:1], {*TESTS} - {"seeds"})):
        _, found = compare_scores([scores, scores], SignificancePlan((*tests,), 200, 200))
        assert (found.difference, found.p_values) == (0, dict.fromkeys(tests, 1.0))
    assert (found.comparison.low, found.comparison.high) == (0, 0)


def test_the_test_of_seeds_has_no_result_if_one_system_has_one_seed():
    metric, plan = make_metric("chrf"), SignificancePlan(resamples=9, swaps=9)
    one, other = (score(metric, lines, REFERENCES) for lines in (FIRST, SECOND))
    first, second = compare_scores([[one], [one, other]], plan)
    assert first.p_values == {}
    assert second.p_values.keys() == {"bootstrap", "randomization"}
    assert second.value == (one.value + other.value) / 2
    _, alone = compare_scores([[one], [other]], plan)
    assert alone.p_values.keys() == {"bootstrap", "randomization"}


@of_seeds(5)
def test_holm_is_the_closed_test_of_bonferroni(random):
    p_values = random.beta(0.5, 3, size=6).round(2).tolist()
    subsets = [chosen for size in range(1, 7) for chosen in combinations(range(6), size)]
    for index, adjusted in enumerate(holm(p_values)):
        # a hypothesis falls only with every set of hypotheses that contains it
        having = [
            min(1.0, len(chosen) * min(p_values[one] for one in chosen))
            for chosen in subsets
            if index in chosen
        ]
        assert adjusted == pytest.approx(max(having))


def test_trials_tossed_in_parts_equal_those_tossed_at_once(monkeypatch):
    one, other = (drawn(np.random.default_rng(seed), 40) for seed in (3, 4))
    whole = swapped_differences([one], [other], ratio, samples=100, seed=5)
    # parts of 32 trials
    monkeypatch.setattr("synmt.evaluation.significance._AT_ONCE", 40 * 50)
    parts = swapped_differences([one], [other], ratio, samples=100, seed=5)
    np.testing.assert_allclose(parts, whole, atol=1e-9)
