"""What Stanza's graph parser thinks of all arcs: it computes that for every tree, and drops it.

    p(parent, relation | word) = p(parent | word) · p(relation | word, parent)

Both factors come out of the pass that makes the tree. They are taken from there, so that trees with and without
probabilities are the same. This file is the only one that knows where Stanza keeps them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from synmt.errors import SynmtError
from synmt.syntax.parse import Arcs

FloatTable = npt.NDArray[np.floating[Any]]
T = TypeVar("T")

_LOST = 1e-4
"""The probability that a word may lose at most before its arcs are sorted."""


def parse_with_arcs(processor: Any, document: Any) -> tuple[Any, list[Arcs]]:
    """Let Stanza's `depparse` make its trees: the document, and for each sentence the arcs of its words.

    The arcs are neither sorted nor rounded; those too small to matter are left out.
    """
    with _recording(processor) as (loaders, batches):
        document = processor.process(document)
    sentences = [arcs for batch in batches for arcs in batch]
    # Stanza sorts the sentences by length before it makes batches
    order = loaders[0].data_orig_idx if loaders else None
    return document, sentences if order is None else _unsorted(sentences, order)


def check_graph_parser(processor: Any) -> None:
    """Raise unless the model is a graph parser: others score steps, and have no probabilities of arcs."""
    from stanza.models.depparse.model import EnsembleGraphParser, GraphParser

    model = getattr(getattr(processor, "trainer", None), "model", None)
    if not isinstance(model, (GraphParser, EnsembleGraphParser)):
        kind = type(processor if model is None else model).__name__
        raise SynmtError(
            f"the Stanza model is a {kind}, which has no probabilities of arcs",
            where=str(processor.config.get("model_path", "")),
            allowed="GraphParser and EnsembleGraphParser have them",
            do="Choose another --package, or parse without --arcs",
        )


def arc_table(arcs: FloatTable, labels: FloatTable, names: tuple[str, ...]) -> Arcs:
    """Multiply the two factors of a sentence of W words, where the product matters.

    arcs: (W+1, W+1) log-probabilities of parents, 0 is the root, up to a constant of each word.
    labels: (W+1, W+1, L) log-probabilities of relations.
    """
    scores = arcs[1:]  # (W, W+1)
    parents = np.exp(scores - scores.max(axis=1, keepdims=True))  # (W, W+1)
    parents /= parents.sum(axis=1, keepdims=True)
    # at most (W+1) parents and (W+1) · L products of a word lie below
    least = _LOST / 2 / len(arcs)
    word, head = np.nonzero(parents > least)  # (M,), (M,)
    joint = parents[word, head][:, None] * np.exp(labels[word + 1, head])  # (M, L)
    pair, relation = np.nonzero(joint > least / labels.shape[2])  # (N,), (N,)
    word, head = word[pair], head[pair]
    return Arcs(word, np.where(head == 0, word, head - 1), relation, joint[pair, relation], names)


@contextmanager
def _recording(processor: Any) -> Iterator[tuple[list[Any], list[list[Arcs]]]]:
    """Keep Stanza's loaders, and the arcs of each batch in the loader's order, for as long as the block runs."""
    from stanza.pipeline import depparse_processor

    trainer, load = processor.trainer, depparse_processor.DataLoader
    predict = trainer.predict
    names = _relations(trainer.vocab["deprel"])
    loaders: list[Any] = []
    outputs: list[Any] = []
    batches: list[list[Arcs]] = []

    def loading(*args: Any, **options: Any) -> Any:
        loaders.append(load(*args, **options))
        return loaders[-1]

    def predicting(batch: Any, *args: Any, **options: Any) -> Any:
        found = predict(batch, *args, **options)
        batches.append(_batch_arcs(batch, outputs.pop(), names, backwards=bool(trainer.args.get("reversed"))))
        return found

    hook = trainer.model.register_forward_hook(lambda model, given, output: outputs.append(output[1]))
    depparse_processor.DataLoader, trainer.predict = loading, predicting
    try:
        yield loaders, batches
    finally:
        hook.remove()
        depparse_processor.DataLoader = load
        del trainer.predict


def _relations(vocabulary: Any) -> tuple[str, ...]:
    from stanza.models.common.vocab import VOCAB_PREFIX_SIZE

    return tuple(vocabulary.id2unit(index) for index in range(VOCAB_PREFIX_SIZE, len(vocabulary)))


def _batch_arcs(batch: Sequence[Any], output: Sequence[Any], names: tuple[str, ...], *, backwards: bool) -> list[Arcs]:
    """Read the arcs of each sentence out of what the model has returned for a batch."""
    if len(output) < 3:
        import stanza

        raise SynmtError(
            f"Stanza {stanza.__version__} does not give the probabilities of relations",
            do="Install Stanza 1.15 or later, or parse without --arcs",
        )
    arcs, _, labels = output
    order, lengths = batch[11], batch[13]
    found: list[Arcs] = []
    for row, length in enumerate(lengths):
        # a length counts the root; what lies behind it is padding, on which Stanza puts probability, too
        found.append(arc_table(arcs[row, :length, :length], labels[row, :length, :length], names))
    return _unsorted([_turned(each) if backwards else each for each in found], order)


def _turned(arcs: Arcs) -> Arcs:
    """Number the words of a sentence that was read backwards from its beginning."""
    last = int(arcs.words.max())
    return Arcs(last - arcs.words, last - arcs.parents, arcs.relations, arcs.probabilities, arcs.names)


def _unsorted(items: Sequence[T], order: Sequence[int]) -> list[T]:
    """Put items back to where they came from: order names the old place of each."""
    return [item for _, item in sorted(zip(order, items, strict=True), key=lambda pair: pair[0])]
