"""The statistics of the comparison of all systems, against slow computations and known laws."""

from __future__ import annotations

import math
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

sys.path.insert(0, str(Path(__file__).parent.parent / "benchmarks"))

from results_statistics import average_differences, compare, seed_variances

pytestmark = pytest.mark.journey


def test_the_pooled_variance_is_that_of_all_deviations_from_the_means():
    found = seed_variances({"a": [1.0, 3.0, 5.0], "b": [10.0], "c": [2.0, 2.5]})
    deviations = [(1 - 3) ** 2, 0, (5 - 3) ** 2, 0.25**2, 0.25**2]
    [pooled] = set(found.values())
    assert pooled.freedom == 3
    assert pooled.value == pytest.approx(sum(deviations) / 3)
    [without] = set(seed_variances({"a": [1.0], "b": [2.0]}).values())
    assert (without.value, without.freedom, without.unstable) == (0.0, 0, False)


def test_systems_that_fail_with_some_seeds_have_their_own_variance():
    """Two at once, so that neither hides the other; the rest is pooled without them."""
    random = np.random.default_rng(4)
    steady = {f"steady {n}": list(random.normal(90, 1, 3)) for n in range(6)}
    found = seed_variances({"first": [90.0, 30.0], **steady, "second": [91.0, 90.0, 35.0], "single": [50.0]})
    assert {system for system, one in found.items() if one.unstable} == {"first", "second"}
    assert found["first"].value == pytest.approx(2 * 30**2)
    assert (found["first"].freedom, found["second"].freedom) == (1, 2)
    pooled = np.mean([np.var(seeds, ddof=1) for seeds in steady.values()])
    assert {found[name] for name in steady} == {found["single"]}
    assert found["single"].value == pytest.approx(pooled)
    assert found["single"].freedom == 12


@pytest.mark.parametrize(("systems", "seeds"), [(5, 2), (11, 3), (40, 3)])
def test_systems_that_vary_alike_seldom_have_their_own_variance(systems, seeds):
    random = np.random.default_rng(5)
    drawn = random.normal(90, 1, (200, systems, seeds))
    found = [seed_variances({str(n): list(own) for n, own in enumerate(one)}) for one in drawn]
    assert sum(any(one.unstable for one in each.values()) for each in found) <= 10


def test_a_difference_from_a_system_that_fails_with_some_seeds_has_both_variances():
    """Sentences do not vary, so that only the seeds do."""
    scores = {"plain": [50.0, 51.0], "a": [52.0, 52.5], "b": [51.0, 52.0], "c": [49.0, 50.5], "fails": [50.0, 10.0]}
    counts = {system: [np.array([[one, 1.0]] * 20) for one in seeds] for system, seeds in scores.items()}
    lines = compare(counts, mean, dict.fromkeys(scores, "plain"), dict.fromkeys(scores, "x"))
    assert [line.system for line in lines if line.unstable] == ["fails"]
    found = {line.system: line.difference for line in lines}
    pooled = np.mean([np.var(seeds, ddof=1) for system, seeds in scores.items() if system != "fails"])
    own = np.var(scores["fails"], ddof=1)
    freedom = (own / 2 + pooled / 2) ** 2 / ((own / 2) ** 2 / 1 + (pooled / 2) ** 2 / 4)
    width = stats.t(freedom).ppf(0.975) * math.sqrt(own / 2 + pooled / 2)
    assert found["fails"].high - found["fails"].value == pytest.approx(width)
    assert found["a"].high - found["a"].value == pytest.approx(stats.t(4).ppf(0.975) * math.sqrt(pooled))


def mean(totals):
    return float(totals[0] / totals[1])


def test_a_difference_has_the_variance_of_sentences_and_of_seeds():
    """The metric is a mean, for which the variance over resamples of sentences is known."""
    random = np.random.default_rng(2)
    plain = [np.stack([random.normal(50, 9, 400), np.ones(400)], 1) for _ in range(3)]
    noise = [np.stack([random.normal(2, 5, 400), np.zeros(400)], 1) for _ in range(2)]
    better = [one + more for one, more in zip(plain, noise, strict=False)]

    # another architecture, whose seeds vary far more, and have no say
    other = [np.stack([random.normal(at, 9, 400), np.ones(400)], 1) for at in (20, 80)]
    counts = {"plain": plain, "better": better, "other": other}
    baselines = {"plain": "plain", "better": "plain", "other": "other"}
    first, second, _ = compare(counts, mean, baselines, {"plain": "a", "better": "a", "other": "b"})
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
    counts = {
        name: [np.stack([random.normal(centre, 9, 400), np.ones(400)], 1) for centre in centres]
        for name, centres in at.items()
    }
    architectures = {"a": "x", "a*": "x", "b": "y", "b*": "y"}
    pairs = {"both": {"a": "a*", "b": "b*"}, "first": {"a": "a*"}}
    found = average_differences(counts, mean, pairs, architectures)
    means = {name: [one[:, 0].mean() for one in seeds] for name, seeds in counts.items()}
    by_sentence = {name: np.mean([one[:, 0] for one in seeds], 0) for name, seeds in counts.items()}
    average = (by_sentence["a"] - by_sentence["a*"] + by_sentence["b"] - by_sentence["b*"]) / 2
    x = sum(np.var(means[name]) * len(means[name]) for name in ("a", "a*")) / 3 * (1 / 2 + 1 / 3) / 4
    y = np.var(means["b"]) * 2 / 1 * (1 / 2 + 1 / 1) / 4
    error = math.sqrt(average.var() / 400 + x + y)
    freedom = (x + y) ** 2 / (x**2 / 3 + y**2 / 1)
    assert found["both"].value == pytest.approx(average.mean())
    assert found["both"].high - found["both"].low == pytest.approx(2 * stats.t(freedom).ppf(0.975) * error, rel=0.05)
    alone = compare(counts, mean, {**dict.fromkeys(at, ""), "a": "a*"}, architectures)[0].difference
    assert found["first"].low == pytest.approx(alone.low)
    # Holm's correction doubles the smaller of two p
    assert found["first"].p == pytest.approx(2 * alone.p)
    assert found["both"].p == pytest.approx(2 * stats.t(freedom).sf(abs(average.mean()) / error), rel=0.1)
