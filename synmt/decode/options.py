"""How translations are searched for."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Sampling:
    """Draw each piece at random instead of searching.

    top_k: only from so many of the most probable pieces; 0 for all.
    top_p: only from the most probable pieces that together have this probability at least (Holtzman et al., 2020).
    temperature: logits are divided by it before anything is cut off; below 1 sharpens.
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
    diversity: what a piece loses for each earlier group that has just chosen it, in nats.
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
