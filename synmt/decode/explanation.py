"""What a model makes of one sentence: the tree that it reads, translations, alignment, attention
and gates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from html import escape

import numpy as np
import torch
from torch import Tensor

from synmt.arrays import DoubleArray, IntArray, Values
from synmt.decode.alignment import (
    Pair,
    attention_to_source,
    best_pairs,
    whitespace_words,
    word_weights,
)
from synmt.decode.forced import force, scored_pieces, sum_by_word
from synmt.decode.inputs import Source, piece_owners
from synmt.decode.loaded_model import LoadedModel
from synmt.decode.translation import Candidate, Translation, piece_spans
from synmt.model.attention import Memory
from synmt.model.capture import Activations, capture, self_attention
from synmt.model.heads import choose_heads, head_weights, learned_heads
from synmt.model.seq2seq import Seq2Seq
from synmt.syntax.conllu import format_conllu
from synmt.syntax.drawing import TreeDrawing, draw_svg
from synmt.syntax.parse import Parse, words_at
from synmt.syntax.trees import collapse, maximum_spanning_tree

_DIGITS = 4


@dataclass(frozen=True, eq=False)
class WordAttention:
    """Self-attention of one head over the W words of a source.

    name: such as `head 1.2 (pascal)`.
    weights: (W, W), from each word to each word; a row sums to 1 at most, since EOS has a share.
    to_parents: the share of words, without the root, whose highest weight on another word is on
        their parent; NaN if there are none.
    """

    name: str
    weights: DoubleArray
    to_parents: float


@dataclass(frozen=True, eq=False)
class Explanation:
    """What a model makes of one line.

    line: its words, as the model reads them.
    translation: with its candidates, best first.
    tree: what the model reads or, if it reads none, its line's tree by a parser; None without a
        parser.
    probabilities: of each parent in the tree, by the parser; empty without a parser.
    reads: what the model reads of trees: `trees`, the name of a control such as `left`, or nothing.
    pieces: each source piece with its word in the tree, -1 for none.
    words: the words of the best translation.
    alignment: pairs of words in the tree and in the best translation.
    log_probabilities: of each piece of the best translation, and of its end, in nats.
    heads: those whose highest weights are most often on parents come first.
    induced: the parents of each word in the trees that the model has learned to make, by name.
    gates: how open the gate to syntax is at each word of the best translation, from 0 to 1.
    """

    line: str
    translation: Translation
    tree: Parse | None = None
    probabilities: Sequence[float] = ()
    reads: str = ""
    pieces: Sequence[tuple[str, int]] = ()
    words: Sequence[str] = ()
    alignment: Sequence[Pair] = ()
    log_probabilities: Sequence[tuple[str, float]] = ()
    heads: Sequence[WordAttention] = ()
    induced: Sequence[tuple[str, IntArray]] = ()
    gates: DoubleArray | None = None

    def svg(self, *, embedded: bool = False) -> str:
        """Draw the tree with the probability of each parent; empty without one.

        embedded: whether a page has the style, see `draw_svg`.
        """
        if self.tree is None:
            return ""
        notes = [f"{100 * value:.0f} %" for value in self.probabilities]
        drawing = TreeDrawing("", self.tree.parents, self.tree, notes)
        return draw_svg([drawing], embedded=embedded)

    def to_json(self) -> Values:
        """Return all of it in types of JSON; parents are counted from 1, and that of the root is
        0."""
        tree, gates = self.tree, self.gates
        return {
            "text": self.line,
            "reads": self.reads,
            "words": [] if tree is None else _words(tree, self.probabilities),
            "conllu": "" if tree is None else format_conllu(replace(tree, arcs=None), self.line, 1),
            "svg": self.svg(embedded=True),
            "pieces": [{"piece": piece, "word": word} for piece, word in self.pieces],
            "translations": [
                {
                    "text": candidate.text,
                    "score": round(candidate.score, _DIGITS),
                    "log_probability": round(candidate.log_probability, _DIGITS),
                }
                for candidate in self.translation.candidates
            ],
            "degenerate": self.translation.degenerate,
            "target_words": list(self.words or self.translation.text.split()),
            "target_pieces": [
                {"piece": piece, "log_probability": round(value, _DIGITS)}
                for piece, value in self.log_probabilities
            ],
            "alignment": [list(pair) for pair in self.alignment],
            "attention": [
                {
                    "head": head.name,
                    "to_parents": _number(head.to_parents),
                    "weights": np.round(head.weights, _DIGITS).tolist(),
                }
                for head in self.heads
            ],
            "induced": [
                {"name": name, "heads": _from_one(parents)} for name, parents in self.induced
            ],
            "gates": None if gates is None else [_number(gate) for gate in gates.tolist()],
        }

    def _repr_html_(self) -> str:
        """Show the tree above the translations, for a notebook."""
        rows = "".join(
            f"<li>{escape(candidate.text)} <small>{candidate.score:.2f}</small></li>"
            for candidate in self.translation.candidates
        )
        return f'<div style="overflow-x:auto">{self.svg()}</div><ol>{rows}</ol>'


def _words(tree: Parse, probabilities: Sequence[float]) -> list[Values]:
    nothing = [None] * len(tree)
    columns = {
        "text": tree.words,
        "start": tree.spans[:, 0].tolist(),
        "end": tree.spans[:, 1].tolist(),
        "tag": tree.tags or nothing,
        "head": _from_one(tree.parents),
        "relation": tree.relations,
        "probability": list(map(_number, probabilities)) or nothing,
    }
    rows = zip(*columns.values(), strict=True)
    return [dict(zip(columns, row, strict=True)) for row in rows]


def _from_one(parents: IntArray) -> list[int]:
    """Count parents from 1, with 0 for that of the root, as CoNLL-U does."""
    is_root = parents == np.arange(len(parents))
    return np.where(is_root, 0, parents + 1).tolist()


def _number(value: float) -> float | None:
    """Round a number; one that is not finite is null."""
    return round(value, _DIGITS) if np.isfinite(value) else None


@torch.inference_mode()
def explain(
    known: Explanation, loaded: LoadedModel, source: Source, candidate: Candidate, *, tagged: bool
) -> Explanation:
    """Add what happens inside a model, by teacher forcing, while it writes the best translation of
    a line; without a tree of the line, no attention.

    source: the line in pieces.
    candidate: the translation, whose words are not joined.
    tagged: whether there are pieces before or after the line.
    """
    model, tree = loaded.model, known.tree
    with capture(model, ("attention", "cross", "gates")) as captured:
        memory = loaded.encode([source])
        [forced] = force(model, memory, [candidate.pieces])
    words = whitespace_words(known.line) if tree is None else tree.spans  # (W, 2)
    written = whitespace_words(candidate.text)  # (V, 2)
    spans = piece_spans(candidate.pieces, loaded.target)  # (T, 2)
    cross = attention_to_source(captured.cross)[0][:, : len(source) + 1]
    soft = word_weights(cross, spans, source.spans, words, written)  # (V, W)
    owners = piece_owners(source.spans, words, len(known.line), tagged=tagged)  # (S,)
    gates = None
    if captured.gates is not None:
        norms = gate_norms(captured.gates)[0].cpu().double().numpy()  # (T + 1,)
        gates = word_norms(norms[: len(spans)], spans, written)
    read = loaded.source.pieces(source.example.source.tolist())
    found = replace(
        known,
        pieces=list(zip(read, owners.tolist(), strict=True)),
        words=words_at(candidate.text, written),
        alignment=best_pairs(soft),
        log_probabilities=scored_pieces(candidate.pieces, forced, loaded.target),
        gates=gates,
    )
    return found if tree is None else _with_heads(found, tree, model, captured, memory, owners)


def _with_heads(
    found: Explanation,
    tree: Parse,
    model: Seq2Seq,
    captured: Activations,
    memory: Memory,
    owners: IntArray,
) -> Explanation:
    """Add the attention of all heads, and the trees of those that have learned some.

    owners: the word of each source piece (S,).
    """
    learned = list(learned_heads(model, "source"))
    ordinary = choose_heads(model, "source") if self_attention(model, "source") else []
    belongs = (owners == np.arange(len(tree))[:, None]).astype(np.float64)  # (W, S)
    pieces = np.maximum(belongs.sum(1, keepdims=True), 1)  # (W, 1)
    heads, induced = list[WordAttention](), list[tuple[str, IntArray]]()
    for head in dict.fromkeys([*ordinary, *learned]):
        weights = head_weights(head, "source", captured, memory)[0, : len(owners), : len(owners)]
        of_pieces = weights.cpu().double().numpy()  # (S, S)
        if head.layer:
            of_words = belongs @ of_pieces @ belongs.T / pieces  # (W, W)
            heads.append(WordAttention(head.name, of_words, _to_parents(of_words, tree.parents)))
        if head in learned:
            parents = maximum_spanning_tree(collapse(of_pieces, owners, len(tree)))
            induced.append((head.name, parents))
    heads.sort(key=lambda head: -np.nan_to_num(head.to_parents))
    return replace(found, heads=heads, induced=induced)


def _to_parents(weights: DoubleArray, parents: IntArray) -> float:
    """Compute how often the highest weight of a word on another one is on its parent."""
    others = np.where(np.eye(len(weights)), -np.inf, weights)
    children = np.flatnonzero(parents != np.arange(len(parents)))
    if not len(children):
        return float("nan")
    return float((others.argmax(1) == parents)[children].mean())


def gate_norms(gates: Tensor) -> Tensor:
    """Compute the norms of gates (B, T, D), from 0 to 1: (B, T)."""
    return gates.norm(dim=-1) / gates.size(-1) ** 0.5


def word_norms(norms: DoubleArray, spans: IntArray, words: IntArray) -> DoubleArray:
    """Average pieces (T,) with spans (T, 2) over each word of (W, 2): (W,), NaN for a word without
    pieces."""
    pieces = sum_by_word(np.ones(len(spans)), spans, words)  # (W,)
    totals = sum_by_word(norms, spans, words)  # (W,)
    return np.divide(totals, pieces, out=np.full(len(words), np.nan), where=pieces > 0)
