"""The parts of Stanza that synmt replaces while it loads and parses, and the only versions that it
does this to.

    stanza.models.common.utils.dispatch_optimizer          by one without parameters
                                                           (`without_optimizers`)
    stanza.models.depparse.model.chuliu_edmonds_one_root   by a faster search with the same result
                                                           (trees.py)
    stanza.pipeline.depparse_processor.DataLoader          by one that records the order of the
                                                           sentences (arcs.py)
    predict of the parser's Trainer                        by one that records the arcs of each
                                                           batch (arcs.py)

All of them are those of Stanza 1.15, as are the parts of its models that `synmt.fast.parser` calls
as they are.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from synmt.errors import SynmtError

SUPPORTED = "1.15"


def language_name(code: str) -> str:
    """Name a language in English, as Stanza does; an unknown one has its code."""
    from stanza.models.common.constant import lcode2lang

    return lcode2lang.get(code, code).replace("_", " ")


def checked_version() -> str:
    """Return the version of the installed Stanza; raise SynmtError unless synmt supports it."""
    import stanza

    if not f"{stanza.__version__}.".startswith(f"{SUPPORTED}."):
        raise SynmtError(
            f"Stanza {stanza.__version__} is not supported: synmt replaces parts of Stanza that "
            "other versions may not have",
            allowed=f"Stanza {SUPPORTED}",
            do=f"Install it: `pip install 'stanza=={SUPPORTED}.*'`",
        )
    return stanza.__version__


@contextmanager
def replaced(owner: Any, name: str, replace: Callable[[Any], Any]) -> Iterator[None]:
    """Replace an attribute of a module or an object of Stanza by `replace(attribute)` while the
    block runs."""
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
    """Make Stanza load models without optimizers, which only training needs.

    The first optimizer of a process makes torch import its compiler, which takes longer than all
    models together.
    """
    import torch
    from stanza.models.common import utils

    class Nothing(torch.optim.Optimizer):
        """What Stanza gives to its schedulers: an optimizer without parameters."""

        def __init__(self) -> None:
            self.param_groups, self.state, self.defaults = [], {}, {}  # type: ignore[assignment]

    with replaced(utils, "dispatch_optimizer", lambda _: lambda *_, **__: Nothing()):
        yield


@contextmanager
def isolated() -> Iterator[None]:
    """Restore the random state, the warning filters and the number of threads when the block ends.

    The block runs in one thread: several would mostly wait for each other on matrices of this size.
    """
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with torch.random.fork_rng(devices=[]), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        torch.set_num_threads(threads)
