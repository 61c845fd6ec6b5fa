"""Several seeds of one system: which runs they are, how far their scores vary, and what the seeds
do to a difference.

The score of such a system is the mean over its seeds, each scored separately. A difference between
two systems may come from the tested sentences, or from the luck of the training runs (Clark et al.,
2011, "Better hypothesis testing for statistical machine translation"): `seeded_bootstrap` resamples
both together, and `significance.welch_test` looks at the training runs alone.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from synmt.arrays import DoubleArray
from synmt.data.inputs import describe_input, differences, recorded_inputs
from synmt.errors import UsageError, listed
from synmt.evaluation.bootstrap import SAMPLES, SEED
from synmt.evaluation.metrics import Aggregate
from synmt.evaluation.significance import Comparison, bootstrap_scores, compare
from synmt.recipe.load import recipe_differences

if TYPE_CHECKING:
    from synmt.run_folder import Run

_SEED_IN_NAME = re.compile(r"[-._]seed[-_]?\d+", re.IGNORECASE)

FEW_SEEDS = "with two or three seeds, intervals and p-values are rough"
"""What resampled seeds cannot show."""

_MAY_DIFFER = {
    "name",
    "evaluation",
    "decoding.batch_size",
    *(f"training.{key}" for key in ("seed", "device", "compile", "log_every", "keep")),
    *(
        f"{parser}.{key}"
        for parser in ("parser", "target_parser")
        for key in ("seed", "workers", "device")
    ),
}
"""Recipe keys in which seeds of one system may differ."""


@dataclass(frozen=True)
class Spread:
    """Mean and variation of the scores of a system's seeds.

    deviation: standard deviation, with n - 1 in the denominator; 0 for a single seed.
    """

    mean: float
    deviation: float
    lowest: float
    highest: float


def spread(scores: Sequence[float]) -> Spread:
    """Describe the scores of a system's seeds."""
    deviation = float(np.std(scores, ddof=1)) if len(scores) > 1 else 0.0
    return Spread(float(np.mean(scores)), deviation, min(scores), max(scores))


def seeded_bootstrap(
    base: DoubleArray, system: DoubleArray, observed: float, *, seed: int = SEED
) -> Comparison:
    """Compare two systems by the scores of their seeds on the same resamples of sentences: (R, n_a)
    and (R, n_b).

    Each resample has the same sentences for all systems, and resampled seeds of each system. With
    one seed each it is the paired bootstrap (Koehn, 2004). With two or three seeds its p-value is
    rough: read Welch's test too, which takes the number of seeds into account.

    observed: the difference of the means over the seeds, on all sentences.
    """
    random = np.random.default_rng(seed)
    before, after = resample_seeds(base, random), resample_seeds(system, random)  # (R,) both
    return compare(observed, after - before)


def compare_on_resamples(
    systems: Sequence[Sequence[DoubleArray]], aggregate: Aggregate, *, samples: int = SAMPLES
) -> list[Comparison]:
    """Compare each system with the first one, all on the same resamples of segments: a list of one
    entry less.

    systems: for each seed of a system the statistics of the same segments, (N, S).
    """
    scores = bootstrap_scores(
        [seed for seeds in systems for seed in seeds], aggregate, samples=samples
    )  # (R, M)
    base, *others = np.split(
        scores, np.cumsum([len(seeds) for seeds in systems])[:-1], axis=1
    )  # (R, n) each
    means = [np.mean([aggregate(seed.sum(0)) for seed in seeds]) for seeds in systems]
    return [
        seeded_bootstrap(base, other, float(mean - means[0]))
        for other, mean in zip(others, means[1:], strict=True)
    ]


def resample_seeds(scores: DoubleArray, random: np.random.Generator) -> DoubleArray:
    """Choose seeds for each resample, with replacement, and average their scores: (R, n) -> (R,).

    Only n - 1 seeds are chosen (McCarthy & Snowden, 1985): the mean then varies by deviation² / n,
    like the mean of n new seeds. Choosing n seeds gives (n - 1) / n of that, which is half of it
    for two seeds.
    """
    samples, seeds = scores.shape
    if seeds == 1:
        return scores[:, 0]
    chosen = random.integers(seeds, size=(samples, seeds - 1))  # (R, n-1)
    return np.take_along_axis(scores, chosen, axis=1).mean(1)  # (R,)


def group_by_seed(paths: Sequence[Path]) -> list[tuple[str, list[Path]]]:
    """Group paths that differ only in their seeds, in the order of each group's first path: (name,
    paths) of each.

    One path of a group may have no seed in its name, such as `pascal` next to `pascal-seed2`.
    """
    groups = {}
    systems = {
        _SEED_IN_NAME.sub("", str(path)) for path in paths if _SEED_IN_NAME.search(str(path))
    }
    for path in paths:
        # what follows the dot of `ignore0.3` is not a seed if `ignore0.3-seed2` exists
        members = groups.setdefault(str(path) if str(path) in systems else _without_seed(path), [])
        if path in members:
            raise UsageError(
                "the same seed of a system is given twice", where=str(path), do="Leave one out"
            )
        members.append(path)
    return [
        (name if len(members) > 1 else str(members[0]), members) for name, members in groups.items()
    ]


def _without_seed(path: Path) -> str:
    """Remove the part of a path that names the seed; without such a part, remove the suffix, apart
    from `.gz`."""
    name, count = _SEED_IN_NAME.subn("", str(path))
    return name if count else os.path.splitext(str(path).removesuffix(".gz"))[0]


def name_with_seed(name: str, seed: int) -> str:
    """Name the run with another seed of the same system, so that `group_by_seed` finds both."""
    return f"{_SEED_IN_NAME.sub('', name)}-seed{seed}"


def check_one_system(runs: Sequence[Path]) -> None:
    """Raise UsageError if run folders differ in more than the seed: in recipes, what they learned
    from, or tests."""
    from synmt.run_folder import find_run

    if len(runs) < 2:
        return
    first, *others = map(find_run, runs)
    for other in others:
        if difference := next(_differences(first, other), None):
            raise UsageError(
                f"not a seed of the same system as {first.folder}: {difference}",
                where=str(other.folder),
                do="Name runs whose recipes differ in `name` and `training.seed` only, and which "
                "were trained and "
                "tested on the same data. To score other translations as seeds, give them as "
                "files, such as "
                "'runs/*/tests/test/hypothesis.txt'",
            )


def _differences(first: Run, other: Run) -> Iterator[str]:
    """Describe the differences of two runs that seeds of one system do not have."""
    from synmt.recipe.load import recipe_values

    values, others = (recipe_values(run.recipe()) for run in (first, other))
    for key, before, after in recipe_differences(values, others, _MAY_DIFFER):
        yield f"{key} is {after} here, {before} there"
    if learned := _other_inputs(first.info(), other.info()):
        yield f"the two were not trained with the same {listed(learned)}"
    for text in [
        *first.folder.glob("tests/*/source.txt"),
        *first.folder.glob("tests/*/reference.txt"),
    ]:
        name = text.relative_to(first.folder)
        if (other.folder / name).is_file() and text.read_bytes() != (
            other.folder / name
        ).read_bytes():
            yield f"the two were not tested on the same sentences ({name})"


def _other_inputs(first: Mapping[str, Any], other: Mapping[str, Any]) -> list[str]:
    """Name what two runs were not both trained on."""
    one, another = recorded_inputs(first), recorded_inputs(other)
    found = [describe_input(key, file) for key, file in differences(one, another)]
    # where no texts are recorded, as in earlier versions, the names of the data that were made from
    # them are
    if not all(
        {"train", "valid"} <= {key.partition(".")[0] for key in inputs} for inputs in (one, another)
    ):
        for key, name in (("prepared", "prepared text"), ("trees", "trees")):
            if key in first and key in other and first[key] != other[key]:
                found.append(name)
    return list(dict.fromkeys(found))
