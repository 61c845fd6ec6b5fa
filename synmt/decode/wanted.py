"""What is wanted of translations, by the recipe and by the person who asks for them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from synmt.decode.options import Sampling, SearchOptions, check_options
from synmt.errors import UsageError
from synmt.recipe import DecodingRecipe


@dataclass(frozen=True)
class Wanted:
    """What is wanted of translations, beyond what a recipe says.

    n_best, groups, diversity, no_repeat, sampling: those of `SearchOptions`.
    alignment: whether each translation comes with what its words come from.
    parse_cache: whether trees that are made here are kept for the next run.
    """

    n_best: int = 1
    groups: int = 1
    diversity: float = 0.5
    no_repeat: int = 0
    sampling: Sampling | None = None
    alignment: bool = False
    parse_cache: bool = True


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
