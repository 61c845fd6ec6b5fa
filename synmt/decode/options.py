"""How to search for translations: one record, checked when it is made."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Any

from synmt.errors import SynmtError, UsageError, all_in_one, unknown_name
from synmt.recipe.schema import MAX_BEAM, MAX_PENALTY, DecodingRecipe

_DEFAULTS = DecodingRecipe()
_MAX_SEED = 1 << 63


@dataclass(frozen=True, kw_only=True)
class Sampling:
    """Draw each piece at random instead of searching for the best translation.

    top_k: draw from the k most probable pieces only (Fan et al., 2018); 0 means all.
    top_p: draw from the smallest set of pieces with this share of the probability that top_k leaves (Holtzman et al.,
        2020).
    temperature: divides the log-probabilities before top_k and top_p; below 1 sharpens, above 1 flattens.
    seed: a line's sample depends only on the seed, the line and its number, not on the other lines.
    """

    top_k: int = 0
    top_p: float = 1.0
    temperature: float = 1.0
    seed: int = 1


@dataclass(frozen=True, kw_only=True)
class SearchOptions:
    """How to search for translations; raises UsageError, which lists every problem, if the values do not fit.

    beam_size: hypotheses per sentence; 1 is greedy search.
    length_penalty: alpha of Wu et al. (2016).
    max_length_ratio, max_length_extra: the maximum length of a translation is the source length in pieces times the
        ratio, plus the extra pieces.
    batch_size: sentences translated in parallel.
    n_best: translations per sentence.
    groups: number of groups in diverse beam search (Vijayakumar et al., 2018); must divide beam_size.
    diversity: penalty of a piece for each hypothesis of an earlier group that has just chosen it, in nats.
    no_repeat: no n-gram of this many pieces occurs twice in a translation; 0 allows all.
    sampling: draw n_best translations at random; None searches with a beam.
    """

    beam_size: int = _DEFAULTS.beam_size
    length_penalty: float = _DEFAULTS.length_penalty
    max_length_ratio: float = _DEFAULTS.max_length_ratio
    max_length_extra: int = _DEFAULTS.max_length_extra
    batch_size: int = _DEFAULTS.batch_size
    n_best: int = 1
    groups: int = 1
    diversity: float = 0.5
    no_repeat: int = 0
    sampling: Sampling | None = None

    def __post_init__(self) -> None:
        problems = [*_out_of_range(self, _SEARCH_RANGES), *_conflicts(self)]
        if self.sampling is not None:
            problems += _out_of_range(self.sampling, _SAMPLING_RANGES)
        if problems:
            raise all_in_one(problems)

    @classmethod
    def from_recipe(cls, decoding: DecodingRecipe, **changes: Any) -> SearchOptions:
        """Take the values of a recipe, except for `changes`, which are any fields of this record."""
        names = [one.name for one in fields(cls)]
        for name in changes:
            if name not in names:
                raise unknown_name("option", name, names)
        return cls(**{**decoding.model_dump(), **changes})


_Range = tuple[Callable[[float], bool], str]

_SEARCH_RANGES: dict[str, _Range] = {
    "beam_size": (lambda value: 1 <= value <= MAX_BEAM, f"1 to {MAX_BEAM:,}"),
    "length_penalty": (lambda value: 0 <= value <= MAX_PENALTY, f"0 to {MAX_PENALTY}"),
    "max_length_ratio": (lambda value: 0 < value < math.inf, "above 0"),
    "max_length_extra": (lambda value: value >= 0, "0 or more"),
    "batch_size": (lambda value: value >= 1, "1 or more"),
    "n_best": (lambda value: value >= 1, "1 or more"),
    "diversity": (lambda value: 0 <= value < math.inf, "0 or more"),
    "no_repeat": (lambda value: value >= 0, "0 or more"),
}
_SAMPLING_RANGES: dict[str, _Range] = {
    "top_k": (lambda value: value >= 0, "1 or more, or 0 for all pieces"),
    "top_p": (lambda value: 0 < value <= 1, "above 0 and up to 1"),
    "temperature": (lambda value: 0 < value < math.inf, "above 0"),
    "seed": (lambda value: 0 <= value < _MAX_SEED, "0 to 2^63 - 1"),
}


def _out_of_range(options: SearchOptions | Sampling, ranges: Mapping[str, _Range]) -> Iterator[SynmtError]:
    for name, (is_allowed, allowed) in ranges.items():
        value = getattr(options, name)
        if not is_allowed(value):
            yield UsageError(f"--{name.replace('_', '-')} cannot be {value}", allowed=f"Allowed: {allowed}")


def _conflicts(options: SearchOptions) -> Iterator[SynmtError]:
    beam_size, groups, n_best = options.beam_size, options.groups, options.n_best
    if options.sampling is not None:
        if groups != 1:
            yield UsageError("sampling has no beam to divide into groups", do="Leave out --groups or --sample")
        return
    if not 1 <= beam_size <= MAX_BEAM:
        return
    if n_best > beam_size:
        yield UsageError(
            f"a beam of {beam_size} cannot give {n_best} translations",
            allowed=f"Allowed: --n-best from 1 to {beam_size}",
            do="Use a wider beam (--beam-size)",
        )
    if groups < 1 or beam_size % groups:
        divisors = ", ".join(str(number) for number in range(1, beam_size + 1) if beam_size % number == 0)
        yield UsageError(
            f"a beam of {beam_size} cannot be divided into {groups} equal groups",
            allowed=f"Allowed: --groups {divisors}",
        )
