"""The parts of Stanza that synmt replaces while it loads and parses, and the only versions that it does this to.

    stanza.models.common.utils.dispatch_optimizer          by one without parameters (`without_optimizers`)
    stanza.models.depparse.model.chuliu_edmonds_one_root   by a faster search with the same result (`best_tree`)
    stanza.pipeline.depparse_processor.DataLoader          by one that records the order of the sentences (arcs.py)
    predict of the parser's Trainer                        by one that records the arcs of each batch (arcs.py)

All of them are those of Stanza 1.15, as are the parts of its models that `direct/` calls without replacing them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import numpy.typing as npt

from synmt.arrays import BoolArray, IntArray
from synmt.errors import SynmtError
from synmt.syntax.spanning import maximum_spanning_tree

SUPPORTED = "1.15"


def checked_version() -> str:
    """Return the version of the installed Stanza; raise SynmtError unless synmt supports it."""
    import stanza

    if not f"{stanza.__version__}.".startswith(f"{SUPPORTED}."):
        raise unsupported("synmt replaces parts of Stanza that other versions may not have")
    return stanza.__version__


def unsupported(why: str) -> SynmtError:
    """Make the error for a Stanza whose internals are not the expected ones."""
    import stanza

    return SynmtError(
        f"Stanza {stanza.__version__} is not supported: {why}",
        allowed=f"Stanza {SUPPORTED}",
        do=f"Install it: `pip install 'stanza=={SUPPORTED}.*'`",
    )


@contextmanager
def replaced(owner: Any, name: str, replace: Callable[[Any], Any]) -> Iterator[None]:
    """Replace an attribute of a module or an object of Stanza by `replace(attribute)` while the block runs."""
    if not hasattr(owner, name):
        raise unsupported(f"{getattr(owner, '__name__', type(owner).__name__)} has no '{name}'")
    original, is_inherited = getattr(owner, name), name not in vars(owner)
    setattr(owner, name, replace(original))
    try:
        yield
    finally:
        if is_inherited:
            delattr(owner, name)
        else:
            setattr(owner, name, original)


@contextmanager
def without_optimizers() -> Iterator[None]:
    """Let Stanza load models without optimizers, which only training needs.

    The first optimizer of a process makes torch import its compiler, which takes longer than all models together.
    """
    import torch
    from stanza.models.common import utils

    class Nothing(torch.optim.Optimizer):
        """What Stanza gives to its schedulers: an optimizer without parameters."""

        def __init__(self) -> None:
            self.param_groups, self.state, self.defaults = [], {}, {}  # type: ignore[assignment]

    with replaced(utils, "dispatch_optimizer", lambda _: lambda *_, **__: Nothing()):
        yield


def best_tree(scores: npt.NDArray[Any]) -> IntArray:
    """Find the best tree with one root: (W+1, W+1) -> (W+1,), 0 is the root.

    Stanza's search (Chu-Liu-Edmonds with weighted root arcs) contracts a cycle for nearly every word and takes a third
    of the parsing time. Where the best parent of every word gives a tree with one root, no other tree is better; this
    holds for most sentences. Otherwise, all cycles are contracted at once.
    """
    scores = scores.copy()
    np.fill_diagonal(scores, -np.inf)
    [heads], [is_tree] = greedy_trees(scores[None], np.ones((1, len(scores)), dtype=np.bool_))
    return heads if is_tree else searched_tree(scores)


def searched_tree(scores: npt.NDArray[Any]) -> IntArray:
    """Find the best tree with one root: (W+1, W+1) -> (W+1,), 0 is the root."""
    words = scores[1:, 1:].astype(np.float64)  # (W, W)
    np.fill_diagonal(words, scores[1:, 0])
    parents = maximum_spanning_tree(words)  # (W,)
    return np.concatenate([[0], np.where(parents == np.arange(len(parents)), 0, parents + 1)])


def greedy_trees(scores: npt.NDArray[Any], real: BoolArray) -> tuple[IntArray, BoolArray]:
    """Give every word its best parent: (B, W+1, W+1) -> (B, W+1), and whether the result is a tree with one root (B,).

    No word may be its own parent, or have one in the padding.

    real: (B, W+1) False in the padding.
    """
    heads = scores.argmax(axis=2)  # (B, W+1)
    heads[:, 0] = 0
    heads[~real] = 0
    roots = np.count_nonzero((heads == 0) & real, axis=1) - 1  # (B,)
    above = heads
    for _ in range(heads.shape[1].bit_length()):
        above = np.take_along_axis(above, above, axis=1)
    # in a cycle, no ancestor is the root
    return heads, (roots == 1) & ~above.any(axis=1)
