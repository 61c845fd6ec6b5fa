"""From the scores of Stanza's graph parser to the best tree with one root, and to the probabilities
of all arcs, which Stanza computes for every tree, and discards.

    p(parent, relation | word) = p(parent | word) · p(relation | word, parent)

Both factors are recorded while Stanza makes the tree, so that the trees are the same with and
without probabilities.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from synmt.arrays import BoolArray, IntArray, Strings
from synmt.parsing.stanza_internals import replaced
from synmt.syntax.parse import Arcs
from synmt.syntax.trees import maximum_spanning_tree

FloatTable = npt.NDArray[np.floating[Any]]
T = TypeVar("T")

_MOST_DROPPED = 1e-4
"""Maximum probability per word that may be dropped before its arcs are sorted."""


def parse_with_arcs(processor: Any, document: Any) -> tuple[Any, list[Arcs]]:
    """Run Stanza's `depparse`; return the document and the arcs of each sentence's words.

    The arcs are neither sorted nor rounded; those with a negligible probability are left out.
    """
    with _recording(processor) as (loaders, batches):
        document = processor.process(document)
    sentences = [arcs for batch in batches for arcs in batch]
    # Stanza sorts the sentences by length before it makes batches
    order = loaders[0].data_orig_idx if loaders else None
    return document, sentences if order is None else _unsorted(sentences, order)


def joint_probabilities(arcs: FloatTable, labels: FloatTable, names: Strings) -> Arcs:
    """Multiply the two factors for a sentence of W words, and leave out negligible products.

    arcs: (W+1, W+1) log-probabilities of parents up to a constant for each word; index 0 is the
        root.
    labels: (W+1, W+1, L) log-probabilities of relations.
    """
    scores = arcs[1:]  # (W, W+1)
    parents = np.exp(scores - scores.max(axis=1, keepdims=True))  # (W, W+1)
    parents /= parents.sum(axis=1, keepdims=True)
    # a word has at most (W+1) parents and (W+1) · L products below this threshold
    least = _MOST_DROPPED / 2 / len(arcs)
    word, head = np.nonzero(parents > least)  # (M,), (M,)
    joint = parents[word, head][:, None] * np.exp(labels[word + 1, head])  # (M, L)
    pair, relation = np.nonzero(joint > least / labels.shape[2])  # (N,), (N,)
    word, head = word[pair], head[pair]
    return Arcs(word, np.where(head == 0, word, head - 1), relation, joint[pair, relation], names)


@contextmanager
def _recording(processor: Any) -> Iterator[tuple[list[Any], list[list[Arcs]]]]:
    """Record Stanza's data loaders, and the arcs of each batch in the loader's order, while the
    block runs."""
    from stanza.pipeline import depparse_processor

    trainer = processor.trainer
    names = relation_names(trainer.vocab["deprel"])
    loaders: list[Any] = []
    outputs: list[Any] = []
    batches: list[list[Arcs]] = []

    def recording_loader(load: Any) -> Any:
        def loader(*args: Any, **options: Any) -> Any:
            loaders.append(load(*args, **options))
            return loaders[-1]

        return loader

    def recording_predict(predict: Any) -> Any:
        def recorded(batch: Any, *args: Any, **options: Any) -> Any:
            trees = predict(batch, *args, **options)
            batches.append(
                batch_arcs(
                    batch, outputs.pop(), names, backwards=bool(trainer.args.get("reversed"))
                )
            )
            return trees

        return recorded

    hook = trainer.model.register_forward_hook(
        lambda model, inputs, output: outputs.append(output[1])
    )
    try:
        with (
            replaced(depparse_processor, "DataLoader", recording_loader),
            replaced(trainer, "predict", recording_predict),
        ):
            yield loaders, batches
    finally:
        hook.remove()


def relation_names(vocabulary: Any) -> Strings:
    """List the relations of Stanza's vocabulary, without its special entries."""
    from stanza.models.common.vocab import VOCAB_PREFIX_SIZE

    return tuple(vocabulary.id2unit(index) for index in range(VOCAB_PREFIX_SIZE, len(vocabulary)))


def batch_arcs(
    batch: Sequence[Any], output: Sequence[Any], names: Strings, *, backwards: bool
) -> list[Arcs]:
    """Read the arcs of each sentence from what Stanza's model returns for a batch.

    backwards: whether the model reads sentences from right to left.
    """
    arcs, _, labels = output
    order, lengths = batch[11], batch[13]
    # a length includes the root; the padding after it gets probability from Stanza, too
    sizes = [(row, slice(length), slice(length)) for row, length in enumerate(lengths)]
    sentences = [joint_probabilities(arcs[size], labels[size], names) for size in sizes]
    return _unsorted(
        [_reversed(sentence) if backwards else sentence for sentence in sentences], order
    )


def _reversed(arcs: Arcs) -> Arcs:
    """Number the words of a sentence from its other end."""
    last = int(arcs.words.max())
    return replace(arcs, words=last - arcs.words, parents=last - arcs.parents)


def _unsorted(items: Sequence[T], order: Sequence[int]) -> list[T]:
    """Undo a sort; order: the original index of each item."""
    return [items[place] for place in np.argsort(order)]


def best_tree(scores: FloatTable) -> IntArray:
    """Find the best tree with one root: (W+1, W+1) -> (W+1,), 0 is the root.

    Stanza's search (Chu-Liu-Edmonds with weighted root arcs) contracts a cycle for nearly every
    word and takes a third of the parsing time. Where the best parent of every word gives a tree
    with one root, no other tree is better; this holds for most sentences. Otherwise, all cycles are
    contracted at once.
    """
    scores = scores.copy()
    np.fill_diagonal(scores, -np.inf)
    [heads], [is_tree] = greedy_trees(scores[None], np.ones((1, len(scores)), dtype=np.bool_))
    return heads if is_tree else searched_tree(scores)


def searched_tree(scores: FloatTable) -> IntArray:
    """Find the best tree with one root: (W+1, W+1) -> (W+1,), 0 is the root."""
    words = scores[1:, 1:].astype(np.float64)  # (W, W)
    np.fill_diagonal(words, scores[1:, 0])
    parents = maximum_spanning_tree(words)  # (W,)
    return np.concatenate([[0], np.where(parents == np.arange(len(parents)), 0, parents + 1)])


def greedy_trees(scores: FloatTable, real: BoolArray) -> tuple[IntArray, BoolArray]:
    """Choose the best parent of every word, (B, W+1, W+1) -> (B, W+1), and check for a tree with
    one root: (B,).

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
