"""The parts of Stanza that synmt replaces while it loads and parses, and the only versions that it does this to.

    stanza.models.common.utils.dispatch_optimizer          by one without parameters (`without_optimizers`)
    stanza.models.depparse.model.chuliu_edmonds_one_root   by a faster search with the same result (`cheapest_first`)
    stanza.pipeline.depparse_processor.DataLoader          by one that records the order of the sentences (arcs.py)
    predict of the parser's Trainer                        by one that records the arcs of each batch (arcs.py)

All of them are those of Stanza 1.15.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import numpy.typing as npt

from synmt.errors import SynmtError

SUPPORTED = "1.15"

Search = Callable[[npt.NDArray[Any]], npt.NDArray[Any]]


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


def cheapest_first(plain: Search, weighted: Search) -> Search:
    """Make a search that tries the greedy tree, then the search without weights, then the weighted one.

    Stanza's search (Chu-Liu-Edmonds with weighted root arcs) contracts a cycle for nearly every word and takes a third
    of the parsing time. Where the best parent of every word gives a tree with one root, no other tree is better; this
    holds for most sentences. Otherwise, the search without weights contracts real cycles only; if its tree has one
    root, no other tree with one root is better.
    """

    def find(scores: npt.NDArray[Any]) -> npt.NDArray[Any]:
        heads = greedy_tree(scores)
        if heads is None:
            # a copy: Stanza's searches change their argument
            heads = plain(scores.astype(np.float64))
        return heads if _roots(heads) == 1 else weighted(scores)

    return find


def greedy_tree(scores: npt.NDArray[Any]) -> npt.NDArray[np.int64] | None:
    """Give every word its best parent: (W+1, W+1) -> (W+1,), 0 is the root; None where the result is not a tree."""
    scores = scores.copy()
    np.fill_diagonal(scores, -np.inf)
    scores[0] = -np.inf
    scores[0, 0] = 0
    heads = scores.argmax(axis=1)
    above = heads
    for _ in range(len(heads).bit_length()):
        above = above[above]
    # in a cycle, no ancestor is the root
    return heads if _roots(heads) == 1 and not above.any() else None


def _roots(heads: npt.NDArray[Any]) -> int:
    return int(np.count_nonzero(heads[1:] == 0))
