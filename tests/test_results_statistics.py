"""The statistics of the comparison of all systems, against slow computations and known laws."""

from __future__ import annotations

import math
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

sys.path.insert(0, str(Path(__file__).parent.parent / "benchmarks"))

from results_statistics import (
    REAL,
    Compared,
    Design,
    Difference,
    adjusted,
    average,
    seed_variances,
    unstable_systems,
)

pytestmark = pytest.mark.journey


def mean(totals):
    return float(totals[0] / totals[1])


def alike(systems, **groups):
    """Compare all systems with the first one; those not in `groups` vary alike."""
    first, *_ = systems
    return Design(dict.fromkeys(systems, first), list(systems), {name: groups.get(name, "x") for name in systems})


def normal(centres, random):
    """Draw scores of 400 sentences for each seed, so that their mean is near its centre."""
    return [np.stack([random.normal(centre, 9, 400), np.ones(400)], 1) for centre in centres]


def test_the_pooled_variance_is_that_of_all_deviations_from_the_means():
    scores = {"a": [1.0, 3.0, 5.0], "b": [10.0], "c": [2.0, 2.5]}
    deviations = [(1 - 3) ** 2, 0, (5 - 3) ** 2, 0.25**2, 0.25**2]
    [pooled] = set(seed_variances(scores, alike(scores)).values())
    assert pooled.freedom == 3
    assert pooled.value == pytest.approx(sum(deviations) / 3)
    apart = seed_variances(scores, alike(scores, c="y"))
    assert apart["a"] is apart["b"]
    assert (apart["a"].value, apart["c"].value) == pytest.approx((4.0, 0.125))
    [without] = set(seed_variances({"a": [1.0], "b": [2.0]}, alike("ab")).values())
    assert (without.value, without.freedom) == (0.0, 0)


def test_systems_that_fail_with_some_seeds_have_their_own_variance():
    """Two at once, so that neither hides the other; the rest is pooled without them."""
    random = np.random.default_rng(4)
    steady = {f"steady {n}": list(random.normal(90, 1, 3)) for n in range(6)}
    scores = {"first": [90.0, 30.0], **steady, "second": [91.0, 90.0, 35.0], "single": [50.0]}
    unstable = unstable_systems(scores)
    assert unstable == {"first", "second"}
    found = seed_variances(scores, replace(alike(scores), unstable=unstable))
    assert found["first"].value == pytest.approx(2 * 30**2)
    assert (found["first"].freedom, found["second"].freedom) == (1, 2)
    pooled = np.mean([np.var(seeds, ddof=1) for seeds in steady.values()])
    assert {found[name] for name in steady} == {found["single"]}
    assert found["single"].value == pytest.approx(pooled)
    assert found["single"].freedom == 12


def test_no_system_is_unstable_where_none_has_two_seeds_or_none_varies():
    assert unstable_systems({}) == unstable_systems({"a": [1.0], "b": [9.0]}) == set()
    assert unstable_systems({"a": [1.0, 1.0], "b": [2.0, 2.0], "c": [2.0, 3.0]}) == set()


@pytest.mark.parametrize(("systems", "seeds"), [(5, 2), (11, 3), (40, 3)])
def test_systems_that_vary_alike_are_seldom_called_unstable(systems, seeds):
    drawn = np.random.default_rng(5).normal(90, 1, (200, systems, seeds))
    assert sum(bool(unstable_systems({str(n): list(own) for n, own in enumerate(one)})) for one in drawn) <= 10


def test_a_difference_from_an_unstable_system_has_both_variances_and_no_p():
    """Sentences do not vary, so that only the seeds do."""
    scores = {"plain": [50.0, 51.0], "a": [52.0, 52.5], "b": [51.0, 52.0], "c": [49.0, 50.5], "fails": [50.0, 10.0]}
    counts = {system: [np.array([[one, 1.0]] * 20) for one in seeds] for system, seeds in scores.items()}
    design = replace(alike(scores), tested=["a", "b", "c"], unstable=unstable_systems(scores))
    lines = Compared(counts, mean, design).lines()
    assert [line.system for line in lines if line.unstable] == ["fails"]
    found = {line.system: line.difference for line in lines}
    pooled = np.mean([np.var(seeds, ddof=1) for system, seeds in scores.items() if system != "fails"])
    own = np.var(scores["fails"], ddof=1)
    freedom = (own / 2 + pooled / 2) ** 2 / ((own / 2) ** 2 / 1 + (pooled / 2) ** 2 / 4)
    width = stats.t(freedom).ppf(0.975) * math.sqrt(own / 2 + pooled / 2)
    assert found["fails"].high - found["fails"].value == pytest.approx(width)
    assert found["fails"].p is None
    assert not found["fails"].is_real
    assert found["a"].high - found["a"].value == pytest.approx(stats.t(4).ppf(0.975) * math.sqrt(pooled))
    # only those that are tested count for Holm's correction, here three
    smallest = max(found[name].value for name in "abc")
    p = 2 * stats.t(4).sf(smallest / math.sqrt(pooled))
    assert min(found[name].p for name in "abc") == pytest.approx(3 * p)


def test_the_smallest_real_difference_has_the_p_at_which_differences_become_real():
    least = Difference(0.0, 0.8, 5.0).smallest_real(7)
    assert 7 * Difference(least, 0.8, 5.0).unadjusted_p() == pytest.approx(REAL)


def test_a_difference_has_the_variance_of_sentences_and_of_seeds():
    """The metric is a mean, for which the variance over resamples of sentences is known."""
    random = np.random.default_rng(2)
    plain = normal((50, 50, 50), random)
    noise = [np.stack([random.normal(2, 5, 400), np.zeros(400)], 1) for _ in range(2)]
    better = [one + more for one, more in zip(plain, noise, strict=False)]

    # another architecture, whose seeds vary far more, and have no say
    counts = {"plain": plain, "better": better, "other": normal((20, 80), random)}
    first, second, _ = Compared(counts, mean, alike(counts, other="y")).lines()
    assert first.difference is None
    found = second.difference
    assert found is not None
    scores = [[one[:, 0].mean() for one in seeds] for seeds in (plain, better)]
    assert found.value == pytest.approx(np.mean(scores[1]) - np.mean(scores[0]))
    by_sentence = np.mean([one[:, 0] for one in better], 0) - np.mean([one[:, 0] for one in plain], 0)
    of_seeds = sum(sum((x - np.mean(group)) ** 2 for x in group) for group in scores) / 3
    error = math.sqrt(by_sentence.var() / 400 + of_seeds * (1 / 3 + 1 / 2))
    # 3.182: the 97.5 % quantile of Student's t with 3 degrees of freedom
    assert (found.high - found.low) / 2 == pytest.approx(3.182 * error, rel=0.07)


def test_an_average_difference_has_the_variance_of_two_architectures():
    """The metric is a mean, for which the variance over resamples of sentences is known."""
    random = np.random.default_rng(3)
    at = {"a": (50, 52), "a*": (49, 48, 50.5), "b": (30, 38), "b*": (29,)}
    counts = {name: normal(centres, random) for name, centres in at.items()}
    compared = Compared(counts, mean, alike(counts, **{"b": "y", "b*": "y"}))
    found = compared.contrast(average({"a": "a*", "b": "b*"}))
    means = {name: [one[:, 0].mean() for one in seeds] for name, seeds in counts.items()}
    by_sentence = {name: np.mean([one[:, 0] for one in seeds], 0) for name, seeds in counts.items()}
    by_hand = (by_sentence["a"] - by_sentence["a*"] + by_sentence["b"] - by_sentence["b*"]) / 2
    x = sum(np.var(means[name]) * len(means[name]) for name in ("a", "a*")) / 3 * (1 / 2 + 1 / 3) / 4
    y = np.var(means["b"]) * 2 / 1 * (1 / 2 + 1 / 1) / 4
    error = math.sqrt(by_hand.var() / 400 + x + y)
    freedom = (x + y) ** 2 / (x**2 / 3 + y**2 / 1)
    assert found.value == pytest.approx(by_hand.mean())
    assert found.high - found.low == pytest.approx(2 * stats.t(freedom).ppf(0.975) * error, rel=0.05)
    tested = adjusted({"both": found, "first": compared.contrast(average({"a": "a*"}))})
    # Holm's correction doubles the smaller of two p
    assert tested["first"].p == pytest.approx(2 * compared.contrast({"a": 1, "a*": -1}).unadjusted_p())
    assert tested["both"].p == pytest.approx(2 * stats.t(freedom).sf(abs(by_hand.mean()) / error), rel=0.1)


def test_a_contrast_with_a_group_without_known_variance_is_not_seeded():
    scores = {"a": [50.0, 51.0], "b": [52.0]}
    counts = {system: [np.array([[one, 1.0]] * 20) for one in seeds] for system, seeds in scores.items()}
    assert Compared(counts, mean, alike(scores)).contrast({"a": 1, "b": -1}).seeded
    assert not Compared(counts, mean, alike(scores, b="y")).contrast({"a": 1, "b": -1}).seeded


def test_an_average_over_the_same_baseline_counts_its_variance_once():
    """Sentences do not vary: the seeds of a and b have a part of a half each, those of plain count whole."""
    scores = {"plain": [50.0, 51.0], "a": [52.0, 54.0], "b": [51.0, 52.0]}
    counts = {system: [np.array([[one, 1.0]] * 20) for one in seeds] for system, seeds in scores.items()}
    found = Compared(counts, mean, alike(scores)).contrast(average({"a": "plain", "b": "plain"}))
    pooled = np.mean([np.var(seeds, ddof=1) for seeds in scores.values()])
    assert found.value == pytest.approx((53.0 + 51.5) / 2 - 50.5)
    assert found.error == pytest.approx(math.sqrt(pooled / 2 * (1 / 4 + 1 / 4 + 1)))
