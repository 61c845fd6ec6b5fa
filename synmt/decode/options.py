"""How to search for translations: one record, checked when it is made."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

from synmt.errors import SynmtError, UsageError, all_in_one
from synmt.options import MAX_BEAM, MAX_PENALTY, Option, Range, out_of_range

if TYPE_CHECKING:
    from synmt.recipe.schema import DecodingRecipe

_search = partial(Option, panel="Search")
_sampling = partial(Option, panel="Sampling")


@dataclass(frozen=True, kw_only=True)
class Sampling:
    """Draw each piece at random instead of searching for the best translation.

    top_k: draw from the k most probable pieces only (Fan et al., 2018); 0 means all.
    top_p: draw from the smallest set of pieces with this share of the probability that top_k leaves
        (Holtzman et al., 2020).
    temperature: divides the log-probabilities before top_k and top_p; below 1 sharpens, above 1
        flattens.
    seed: a line's sample depends only on the seed, the line and its number, not on the other lines.
    """

    top_k: Annotated[
        int,
        Range(0),
        _sampling("Draw from the K most probable pieces.", minimum=1, show_default="all"),
    ] = 0
    top_p: Annotated[
        float,
        Range(0, 1, is_open=True),
        _sampling(
            "Draw from the smallest set of pieces with this total probability.", show_default="1"
        ),
    ] = 1.0
    temperature: Annotated[
        float,
        Range(0, is_open=True),
        _sampling(
            "Below 1 sharpens, above 1 flattens the distribution; applied before top-k and top-p.",
            show_default="1",
        ),
    ] = 1.0
    seed: Annotated[
        int,
        Range(0, (1 << 63) - 1),
        _sampling(
            "Random seed. A line's sample depends only on the seed, the line and its number, not "
            "on the other lines.",
            show_default="1",
        ),
    ] = 1


def _of_recipe(name: str) -> Any:
    def default() -> Any:
        # a help page does not load pydantic
        from synmt.recipe.schema import DecodingRecipe

        return DecodingRecipe.model_fields[name].default

    return field(default_factory=default)


@dataclass(frozen=True, kw_only=True)
class SearchOptions:
    """How to search for translations; raises UsageError, which lists every problem, if the values
    do not fit.

    beam_size: hypotheses per sentence; 1 is greedy search.
    length_penalty: alpha of Wu et al. (2016).
    max_length_ratio, max_length_extra: the maximum length of a translation is the source length in
        pieces times the ratio, plus the extra pieces.
    batch_size: sentences translated in parallel.
    shortlist: number of target pieces that each piece of the source may become; 0 for all. Samples
        are drawn from all.
    n_best: translations per sentence.
    groups: number of groups in diverse beam search (Vijayakumar et al., 2018); must divide
        beam_size.
    diversity: penalty of a piece for each hypothesis of an earlier group that has just chosen it,
        in nats.
    no_repeat: no n-gram of this many pieces occurs twice in a translation; 0 allows all.
    word_scores: add the log-probabilities of its pieces and words to each translation.
    sampling: draw n_best translations at random; None searches with a beam.
    """

    beam_size: Annotated[
        int,
        Range(1, MAX_BEAM),
        _search("Beam size; 1 is greedy search.", show_default="the recipe's"),
    ] = _of_recipe("beam_size")
    length_penalty: Annotated[
        float,
        Range(0, MAX_PENALTY),
        _search(
            "α of the length penalty of Wu et al. (2016); 0: none.", show_default="the recipe's"
        ),
    ] = _of_recipe("length_penalty")
    max_length_ratio: Annotated[float, Range(0, is_open=True)] = _of_recipe("max_length_ratio")
    max_length_extra: Annotated[int, Range(0)] = _of_recipe("max_length_extra")
    no_repeat: Annotated[
        int,
        Range(0),
        _search(
            "Forbid repeated n-grams of N pieces in a translation, to prevent loops; 0 allows them."
        ),
    ] = 0
    n_best: Annotated[int, Range(1), _search("Number of translations for each line.")] = 1
    groups: Annotated[
        int,
        Range(1),
        _search(
            "Groups of diverse beam search (Vijayakumar et al., 2018), which share the beam, for "
            "more variety in an n-best list. Duplicates are removed, so a list may be shorter than "
            "--n-best."
        ),
    ] = 1
    diversity: Annotated[
        float,
        Range(0),
        _search(
            "Penalty of a piece, in nats, for each hypothesis of an earlier group that has just "
            "chosen it; needs --groups.",
            show_default="0.5",
        ),
    ] = 0.5
    batch_size: Annotated[
        int,
        Range(1),
        _search("Sentences translated in parallel.", show_default="the recipe's"),
    ] = _of_recipe("batch_size")
    shortlist: Annotated[int, Range(0)] = _of_recipe("shortlist")
    word_scores: Annotated[
        bool,
        Option(
            "With --jsonl: add the log-probability of each piece (`pieces`), and the sum of each "
            "word (`word_scores`), words as in --alignments. In int8 their sum is not quite the "
            "score of the search.",
            panel="Input and output",
        ),
    ] = False
    sampling: Sampling | None = None

    def __post_init__(self) -> None:
        problems: list[SynmtError] = [*out_of_range(self), *out_of_range(self.sampling)]
        if problems:
            raise all_in_one(problems)
        if self.sampling is None and self.n_best > self.beam_size:
            raise UsageError(f"--n-best {self.n_best} needs a wider beam (--beam-size)")
        if self.beam_size % self.groups or (self.groups > 1 and self.sampling is not None):
            raise UsageError(
                f"--groups {self.groups} must divide --beam-size, and does not go with --sample"
            )

    @classmethod
    def from_recipe(cls, decoding: DecodingRecipe, **changes: Any) -> SearchOptions:
        """Take the values of a recipe, except for `changes`, which are any fields of this
        record."""
        return cls(**{**decoding.model_dump(), **changes})
