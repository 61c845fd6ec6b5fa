"""Trees that a model has found by itself: read off annotations or heads, collapsed to words, and searched for.

    collapsed[i, j] = Σ weights[s, t] over the pieces s of the word i and t of the word j, i ≠ j
    collapsed[i, i] = Σ weights[s, s]        tree = the spanning tree of the greatest sum

A row of weights is a piece that looks for its parent, a column a possible parent, the diagonal the root. What a word's
pieces look for inside the word is dropped. In the code of Tran & Bisk (2018), whose collapsing this is, such weights
choose the root, and it sums unbounded scores where here weights are summed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from torch import Tensor

from synmt.analysis.forward_passes import ForwardPass, Sentence, run_forward
from synmt.arrays import DoubleArray, IntArray, Side
from synmt.data.vocabulary import word_of
from synmt.decode.translator import Translator
from synmt.errors import UsageError
from synmt.model.build import variant_class, variant_names
from synmt.model.capture import self_attention
from synmt.model.seq2seq import Seq2Seq
from synmt.model.variant import Variant
from synmt.syntax.parse import Parse
from synmt.syntax.spanning import maximum_spanning_tree

_ALL = "all"


@dataclass(frozen=True)
class TreeSource:
    """Where trees are read off: a head of self-attention, or the annotations of the source.

    variant: what the recipe calls the variant that owns it; empty for an ordinary head.
    layer, head: counted from 1; 0 for annotations.
    flat: whether the weights of the annotations are those of any parent, and no trees (FA-NMT).
    """

    side: Side
    variant: str = ""
    layer: int = 0
    head: int = 0
    flat: bool = False

    @property
    def name(self) -> str:
        """What people call it, such as `head 4.1 (dbsa)`."""
        if not self.layer:
            return f"{'flat attention' if self.flat else 'latent trees'} ({self.variant})"
        return f"head {self.layer}.{self.head}" + (f" ({self.variant})" if self.variant else "")

    @property
    def file_name(self) -> str:
        """What a file about it is called, without an ending."""
        part = f"head-{self.layer}.{self.head}" if self.layer else "flat" if self.flat else "latent"
        return part if self.side == "source" else f"{self.side}-{part}"

    def weights(self, passed: ForwardPass) -> Tensor:
        """Take its weights from a pass: (B, T, T), without BOS on the target."""
        if self.layer:
            weights = passed.captured.attention[self.side, self.layer][:, self.head - 1]  # (B, T, T)
            return weights if self.side == "source" else weights[:, 1:, 1:]
        if passed.memory.weights is None:
            raise UsageError(
                f"{self.variant} annotates the source and does not say by which weights",
                do="Give them to its memory, `memory.edit(annotations=…, weights=…)`",
            )
        return passed.memory.weights


@dataclass(frozen=True, eq=False)
class Texts:
    """What the model reads and writes, line by line, and the trees to compare with.

    side: of the trees.
    source, target: the lines; None where only the source is read.
    gold: a tree of each line of the side.
    read: trees of the source that the model reads; None where its own parser makes them.
    """

    side: Side
    source: Sequence[str]
    target: Sequence[str] | None
    gold: Sequence[Parse]
    read: Sequence[Parse] | None = None

    @property
    def lines(self) -> Sequence[str]:
        """The lines that the trees are of."""
        return self.source if self.side == "source" or self.target is None else self.target


@dataclass(frozen=True, eq=False)
class FoundTrees:
    """What has been read off in one place, sentence by sentence.

    trees: (W,) parents; the root is its own.
    choices: (W,) of each word what it gives most weight to, itself for the root; -1 where it gives none.
    """

    source: TreeSource
    trees: list[IntArray] = field(default_factory=list)
    choices: list[IntArray] = field(default_factory=list)


@dataclass(frozen=True, eq=False)
class ModelTrees:
    """All that has been read off a model.

    kept: the numbers of the sentences, in order; the others are too long for the model or have no words.
    too_long: how many the model takes only in part.
    found: of each place, the trees of the sentences kept.
    """

    kept: list[int]
    too_long: int
    found: list[FoundTrees]


def tree_sources(model: Seq2Seq, side: Side, head: str | None = None, *, where: str = "") -> list[TreeSource]:
    """List where trees are read off: `LAYER.HEAD`, `all` heads, or by default annotations and what has learnt trees.

    where: what the model is called in an error.
    """
    own = list(_learnt(model, side))
    heads = [layer.heads for layer in self_attention(model, side)]
    if head is None:
        return own or _none_learnt(model, side, heads, where)
    if not heads:
        raise UsageError(
            "an LSTM has no attention heads",
            where="--head",
            do="Leave `--head` out to read latent trees, or take a run of a Transformer",
        )
    owners = {(source.layer, source.head): source for source in own}
    places = [(layer, number) for layer, count in enumerate(heads, 1) for number in range(1, count + 1)]
    chosen = places if head == _ALL else [_one_head(head, side, heads)]
    return [owners.get(place, TreeSource(side, "", *place)) for place in chosen]


def _learnt(model: Seq2Seq, side: Side) -> Iterator[TreeSource]:
    for variant in model.variants[side]:
        name, place = type(variant).__module__.rpartition(".")[2], variant.place
        if variant.annotates_memory():
            yield TreeSource(side, name, flat=not variant.induces_trees)
        elif _has_tree_heads(variant):
            for head in range(place.first_head, place.first_head + place.heads):
                yield TreeSource(side, name, place.layer, head + 1)


def _has_tree_heads(variant: Variant | type[Variant]) -> bool:
    return variant.edits_attention() and (variant.induces_trees or bool(variant.learns))


def _none_learnt(model: Seq2Seq, side: Side, heads: list[int], where: str) -> list[TreeSource]:
    other: Side = "target" if side == "source" else "source"
    ways = {
        f"see those of its {other} by `--side {other}`": any(_learnt(model, other)),
        "read any head as trees, by `--head LAYER.HEAD` or `--head all`": bool(heads),
        "train one with latent_tree (`synmt train recipes/multi30k-sa.yaml`)": not heads and side == "source",
        "name the run of a Transformer, whose heads can be read by `--head`": not heads,
    }
    raise UsageError(
        f"nothing in this model has learnt trees of the {side}",
        where=where,
        allowed=f"Variants that learn them: {', '.join(_learners(side))}",
        do="You can " + ", or ".join(way for way, possible in ways.items() if possible),
    )


def _learners(side: Side) -> Iterator[str]:
    kinds = ((name, variant_class(name)) for name in variant_names())
    learners = ((name, kind) for name, kind in kinds if kind.annotates_memory() or _has_tree_heads(kind))
    return (name for name, kind in learners if side in kind.sides)


def _one_head(text: str, side: Side, heads: list[int]) -> tuple[int, int]:
    layer, _, head = text.partition(".")
    if not (layer.isdecimal() and head.isdecimal()):
        raise UsageError(
            f"'{text}' is no head", where="--head", allowed=f"LAYER.HEAD, both counted from 1, or `{_ALL}`"
        )
    if not 1 <= int(layer) <= len(heads):
        raise UsageError(f"the {side} has no layer {layer}", where="--head", allowed=f"Layers 1 to {len(heads)}")
    if not 1 <= int(head) <= heads[int(layer) - 1]:
        raise UsageError(
            f"there is no head {text}",
            where="--head",
            allowed=f"Layer {int(layer)} has heads 1 to {heads[int(layer) - 1]}",
        )
    return int(layer), int(head)


def induce(
    translator: Translator,
    sources: Sequence[TreeSource],
    texts: Texts,
    advance: Callable[[float], None] = lambda sentences: None,
) -> ModelTrees:
    """Run the model over the texts and find the trees of every source."""
    found: dict[int, list[tuple[IntArray, IntArray]]] = {}
    too_long = 0
    for passed in run_forward(translator, texts.source, texts.target, texts.read):
        weights_of_each = [source.weights(passed).double().cpu().numpy() for source in sources]  # S of (B, T, T)
        for row, sentence in enumerate(passed.sentences):
            gold = texts.gold[sentence.index]
            too_long += sentence.dropped > 0
            if len(gold) and not sentence.dropped:
                owners = piece_owners(translator, texts, sentence)  # (T,)
                part = slice(len(owners))
                inner = [weights[row, part, part] for weights in weights_of_each]  # S of (T, T)
                found[sentence.index] = [_read(weights, owners, len(gold)) for weights in inner]
        advance(len(passed.sentences))
    kept = sorted(found)
    columns = zip(*(found[index] for index in kept), strict=True) if kept else ([] for _ in sources)
    trees = [
        FoundTrees(source, [tree for tree, _ in column], [choice for _, choice in column])
        for source, column in zip(sources, columns, strict=True)
    ]
    return ModelTrees(kept, too_long, trees)


def piece_owners(translator: Translator, texts: Texts, sentence: Sentence) -> IntArray:
    """Find the word of each piece: (T,), -1 for a task tag."""
    spans = sentence.source if texts.side == "source" else sentence.target  # (T, 2)
    owners = word_of(spans, texts.gold[sentence.index].spans)  # (T,)
    if texts.side == "source" and translator.task:
        owners[(spans[:, 1] <= 0) | (spans[:, 0] >= len(texts.source[sentence.index]))] = -1
    return owners


def _read(weights: DoubleArray, owners: IntArray, words: int) -> tuple[IntArray, IntArray]:
    collapsed = collapse(weights, owners, words)  # (W, W)
    choices = np.where(collapsed.any(1), collapsed.argmax(1), -1)  # (W,)
    return maximum_spanning_tree(collapsed), choices


def collapse(weights: DoubleArray, owners: IntArray, words: int) -> DoubleArray:
    """Sum the weights of pieces over words: (T, T), the owners of the pieces (T,) -> (W, W).

    Of a word with itself only the pieces' own diagonal counts, as the weight of being the root. A word without a piece
    has weights of 0, and so may hang anywhere; a piece of no word, -1, counts nowhere.
    """
    belongs = (owners[:, None] == np.arange(words)).astype(np.float64)  # (T, W)
    collapsed = belongs.T @ weights @ belongs  # (W, W)
    np.fill_diagonal(collapsed, weights.diagonal() @ belongs)
    return collapsed
