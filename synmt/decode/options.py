"""What is wanted of translations, by the recipe and by the person who asks, and which wishes do not go together."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from synmt.errors import SynmtError, UsageError, all_in_one
from synmt.recipe.schema import DecodingRecipe

_SEEDS = 1 << 63
"""Seeds are smaller."""
_WIDEST = 10_000
"""A wider beam asks for more memory than there is, and helps nobody."""
_STRONGEST = 10
"""A larger alpha makes numbers of long translations that float32 does not have."""


@dataclass(frozen=True)
class Sampling:
    """Draw each piece at random instead of searching.

    top_k: only from so many of the most probable pieces (Fan et al., 2018); 0 for all.
    top_p: only from the fewest pieces that together have this share of what top_k leaves (Holtzman et al., 2020).
    temperature: log-probabilities are divided by it before anything is cut off; below 1 sharpens.
    seed: the same seed gives the same line the same translation, whatever stands beside it.
    """

    top_k: int = 0
    top_p: float = 1.0
    temperature: float = 1.0
    seed: int = 1


@dataclass(frozen=True)
class SearchOptions:
    """What the search for translations keeps, prefers and forbids.

    beam_size: hypotheses kept; 1 is greedy.
    alpha: of the length penalty.
    n_best: translations of each sentence.
    groups: parts of the beam that are kept apart (Vijayakumar et al., 2018); it divides beam_size.
    diversity: what a piece loses for each hypothesis of an earlier group that has just chosen it, in nats.
    no_repeat: no sequence of so many pieces comes twice in a translation; 0 allows all.
    sampling: how to draw n_best translations instead; None searches.
    """

    beam_size: int
    alpha: float
    n_best: int = 1
    groups: int = 1
    diversity: float = 0.5
    no_repeat: int = 0
    sampling: Sampling | None = None


@dataclass(frozen=True)
class Wanted:
    """What is wanted of translations, beyond what a recipe says.

    n_best, groups, diversity, no_repeat, sampling: those of `SearchOptions`.
    alignment: whether each translation comes with what its words come from.
    parse_cache: whether trees that are made here are kept for the next run.
    parser: where the parser of a run lies, if not where it lay in training: `compact`, `official` or a folder.
    """

    n_best: int = 1
    groups: int = 1
    diversity: float = 0.5
    no_repeat: int = 0
    sampling: Sampling | None = None
    alignment: bool = False
    parse_cache: bool = True
    parser: str | None = None


def search_options(decoding: DecodingRecipe, wanted: Wanted) -> SearchOptions:
    """Join what a recipe says and what is wanted; raises UsageError where that cannot be."""
    options = SearchOptions(
        decoding.beam_size,
        decoding.length_penalty,
        wanted.n_best,
        wanted.groups,
        wanted.diversity,
        wanted.no_repeat,
        wanted.sampling,
    )
    check_options(options)
    return options


def override(recipe: DecodingRecipe, values: dict[str, Any]) -> DecodingRecipe:
    """Put other values into a recipe's."""
    try:
        return DecodingRecipe.model_validate(recipe.model_dump() | values)
    except ValidationError as error:
        problems = "; ".join(f"{problem['loc'][0]}: {problem['msg']}" for problem in error.errors())
        raise UsageError(f"impossible values for the search: {problems}") from None


def check_options(options: SearchOptions) -> None:
    """Refuse values that cannot be, or cannot be together; all of them at once."""
    problems = [*_search_problems(options), *(_sampling_problems(options.sampling) if options.sampling else ())]
    if problems:
        raise all_in_one(problems)


def _search_problems(options: SearchOptions) -> Iterator[SynmtError]:
    beam_size, groups, n_best = options.beam_size, options.groups, options.n_best
    possible = 1 <= beam_size <= _WIDEST
    if not possible:
        yield _out_of_range("beam-size", beam_size, f"1 to {_WIDEST:,}")
    if not 0 <= options.alpha <= _STRONGEST:
        yield _out_of_range("length-penalty", options.alpha, f"0 to {_STRONGEST}")
    for name, value, least in (("n-best", n_best, 1), ("no-repeat", options.no_repeat, 0)):
        if value < least:
            yield _out_of_range(name, value, f"{least} and more")
    if not 0 <= options.diversity < math.inf:
        yield _out_of_range("diversity", options.diversity, "0 and more")
    if options.sampling is None and possible and n_best > beam_size:
        yield UsageError(
            f"a beam of {beam_size} has no {n_best} best translations",
            allowed=f"--n-best from 1 to {beam_size}",
            do="Take a wider beam (--beam-size)",
        )
    if options.sampling is not None and groups != 1:
        yield UsageError("sampling knows no groups of hypotheses", do="Leave out --groups or --sample")
    elif possible and (groups < 1 or beam_size % groups):
        divisors = ", ".join(str(number) for number in range(1, beam_size + 1) if beam_size % number == 0)
        yield UsageError(
            f"a beam of {beam_size} has no {groups} groups of one size",
            allowed=f"--groups for --beam-size {beam_size}: {divisors}",
        )


def _sampling_problems(sampling: Sampling) -> Iterator[SynmtError]:
    if sampling.top_k < 0:
        yield _out_of_range("top-k", sampling.top_k, "1 and more, and 0 for all pieces")
    if not 0 < sampling.top_p <= 1:
        yield _out_of_range("top-p", sampling.top_p, "above 0 and up to 1")
    if not 0 < sampling.temperature < math.inf:
        yield _out_of_range("temperature", sampling.temperature, "above 0")
    if not 0 <= sampling.seed < _SEEDS:
        yield _out_of_range("seed", sampling.seed, "0 to 2^63 - 1")


def _out_of_range(name: str, value: float, allowed: str) -> UsageError:
    return UsageError(f"--{name} cannot be {value}", allowed=f"Allowed: {allowed}")
