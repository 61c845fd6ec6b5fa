"""The statistics of the comparison of all systems, against slow computations and known laws."""

from __future__ import annotations

import math

import numpy as np
import pytest
from results_statistics import (
    Comparison,
    average_difference,
    bartlett,
    seed_variances,
    unstable_systems,
)
from scipy import stats

pytestmark = pytest.mark.journey


def mean(totals):
    return float(totals[0] / totals[1])


def alike(systems, **groups):
    """Name the group of each system; those not in `groups` vary alike."""
    return {name: groups.get(name, "x") for name in systems}


def steady(scores, **groups):
    """Compare systems by 20 sentences that all have the score of their seed, so that sentences make
    no difference."""
    counts = {
        system: [np.array([[one, 1.0]] * 20) for one in seeds] for system, seeds in scores.items()
    }
    return Comparison(counts, mean, alike(scores, **groups))


def variances(scores, **groups):
    return seed_variances(scores, dict.fromkeys(scores, 0.0), alike(scores, **groups))


def test_the_pooled_variance_is_that_of_all_deviations_from_the_means():
    scores = {"a": [1.0, 3.0, 5.0], "b": [10.0], "c": [2.0, 2.5]}
    deviations = [(1 - 3) ** 2, 0, (5 - 3) ** 2, 0.25**2, 0.25**2]
    [pooled] = set(variances(scores).values())
    assert pooled.freedom == 3
    assert pooled.value == pytest.approx(sum(deviations) / 3)
    apart = variances(scores, c="y")
    assert apart["a"] is apart["b"]
    assert (apart["a"].value, apart["c"].value) == pytest.approx((4.0, 0.125))
    [without] = set(variances({"a": [1.0], "b": [2.0]}).values())
    assert (without.value, without.freedom) == (0.0, 0)


def test_systems_that_fail_with_some_seeds_are_unstable():
    """Two at once, so that neither hides the other."""
    random = np.random.default_rng(4)
    others = {f"steady {n}": list(random.normal(90, 1, 3)) for n in range(6)}
    scores = {"first": [90.0, 30.0], **others, "second": [91.0, 90.0, 35.0], "single": [50.0]}
    assert unstable_systems(scores) == {"first", "second"}
    assert unstable_systems({"single": [50.0]}) == unstable_systems({}) == set()


@pytest.mark.parametrize("of_seeds", [0.0, 0.3, 2.0])
def test_intervals_contain_the_true_difference_as_often_as_they_say(of_seeds):
    """Each model has luck with other sentences, which is no reason to call its training lucky."""
    random, inside = np.random.default_rng(7), []
    for _ in range(60):
        text = random.normal(50, 20, 200)
        counts = {
            name: [
                np.stack(
                    [text + random.normal(random.normal(0, of_seeds), 10, 200), np.ones(200)], 1
                )
                for _ in range(3)
            ]
            for name in "abcdefg"
        }
        compared = Comparison(counts, mean, alike(counts))
        intervals = [compared.difference({other: 1, "a": -1}).interval for other in "bcdefg"]
        inside += [interval.low < 0 < interval.high for interval in intervals]
    assert 0.92 <= np.mean(inside) <= 0.98


AGAINST_PLAIN = {name: {name: 1.0, "plain": -1.0} for name in "abcde"}


def test_differences_from_the_same_baseline_are_tested_together_as_by_dunnett():
    random = np.random.default_rng(6)
    gains = {"plain": 0.0, "a": 0.0, "b": 1.0, "c": 2.0, "d": 3.0, "e": -2.5}
    scores = {name: list(50 + gain + random.normal(0, 1, 4)) for name, gain in gains.items()}
    found = steady(scores).differences(AGAINST_PLAIN)
    samples = [scores[name] for name in AGAINST_PLAIN]
    expected = stats.dunnett(*samples, control=scores["plain"], random_state=1).pvalue
    assert [found[name].p for name in AGAINST_PLAIN] == pytest.approx(expected, abs=0.01)
    for one in found.values():
        assert one.is_significant == (abs(one.value) > one.visible)


def test_what_has_no_result_yet_counts_as_a_test_and_what_has_no_seeds_does_not():
    scores = {"plain": [50.0, 51.0], "a": [52.0, 52.5], "b": [60.0]}
    compared = steady(scores, b="y")
    sums = {name: AGAINST_PLAIN[name] for name in "ab"}
    found = compared.differences(sums)
    assert found["b"].p is None
    alone = found["a"].unadjusted_p()
    assert found["a"].p == pytest.approx(alone, abs=0.01)
    of_four = compared.differences(sums, tests=4)["a"]
    assert of_four.p == pytest.approx(1 - (1 - alone) ** 4, abs=0.01)
    # it would have to be so large that the p of one of four independent tests is 0.05
    level = stats.t.isf((1 - 0.95**0.25) / 2, of_four.freedom)
    assert of_four.visible == pytest.approx(level * of_four.error, rel=0.05)


def test_seeds_that_vary_alike_have_a_large_p():
    random = np.random.default_rng(3)
    same, other = (
        [list(random.normal(50, scale, 8)) for scale in scales] for scales in ([1] * 4, [1, 1, 9])
    )
    assert bartlett(same) > 0.1
    assert bartlett(other) < 0.01
    assert bartlett([[1.0], [2.0, 3.0]]) is None


def test_an_average_over_the_same_baseline_counts_its_variance_once():
    """Sentences do not vary: the seeds of a and b have a part of a half each, those of plain count
    whole."""
    scores = {"plain": [50.0, 51.0], "a": [52.0, 54.0], "b": [51.0, 52.0]}
    found = steady(scores).difference(average_difference(["a", "b"], ["plain", "plain"]))
    pooled = np.mean([np.var(seeds, ddof=1) for seeds in scores.values()])
    assert found.value == pytest.approx((53.0 + 51.5) / 2 - 50.5)
    assert found.error == pytest.approx(math.sqrt(pooled / 2 * (1 / 4 + 1 / 4 + 1)))
