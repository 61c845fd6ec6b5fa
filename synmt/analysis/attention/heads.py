"""Attention heads of a model, by kind of attention: their weights in a forward pass, and heat maps
of one sentence.

Annotations of the source count as a kind of attention too: their weights say which pieces are
probably the parent of a piece.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from synmt.analysis.forward_passes import ForwardPass, ParsedText, SentencePass, run_forward
from synmt.analysis.options import MapContent
from synmt.analysis.trees.induced import word_owners
from synmt.arrays import DoubleArray, IntArray, Side
from synmt.data.task_corpus import tagged
from synmt.data.vocabulary import BOS, EOS
from synmt.decode.translator import Translator
from synmt.errors import UsageError
from synmt.model.capture import Activations, self_attention
from synmt.model.heads import (
    Head,
    annotation_heads,
    choose_heads,
    head_weights,
    supervised_heads,
)
from synmt.model.seq2seq import Seq2Seq

AttentionKind = Literal["source", "target", "cross", "parents"]
"""Self-attention of a side, cross-attention from the target to the source, or annotations: probable
parents."""


Heads = Sequence[Head]


@dataclass(frozen=True)
class KindOfAttention:
    """What is known about a kind of attention.

    name: of the attention, in sentences.
    lines: the lines of the test set that it is computed for.
    ends: the positions that belong to no word.
    side: of the pieces that attend.
    """

    name: str
    lines: str
    ends: str
    side: Side = "source"


KINDS: dict[AttentionKind, KindOfAttention] = {
    "source": KindOfAttention("self-attention of the source", "source", "EOS and task tags"),
    "target": KindOfAttention("self-attention of the target", "reference", "BOS", "target"),
    "cross": KindOfAttention(
        "attention to the source", "the run's own translation", "the source's EOS", "target"
    ),
    "parents": KindOfAttention(
        "probable parents in the annotations of the source", "source", "task tags"
    ),
}


def heads_of(model: Seq2Seq, kind: AttentionKind, head: str | None = None) -> list[Head]:
    """List the heads of one kind of attention, by layer: head `LAYER.HEAD`, or all; annotations and
    an LSTM have none to choose."""
    if kind != "parents" and self_attention(model, "source"):
        return choose_heads(model, KINDS[kind].side, head, owned=kind != "cross")
    heads = annotation_heads(model) if kind == "parents" else [Head()]
    if not heads:
        raise UsageError(
            "the source of this model has no annotations with probable parents",
            where="--what parents",
            allowed="Models with latent_tree or latent_graph have them",
        )
    return heads


def weights_of(forward: ForwardPass, kind: AttentionKind, heads: Heads) -> Tensor:
    """Return the attention weights of S heads in a forward pass: (B, S, Tq, Tk)."""
    side, captured, memory = KINDS[kind].side, forward.captured, forward.memory
    of_heads = [
        # an LSTM attends to the source in layer 1
        head.of(captured.cross[head.layer or 1])
        if kind == "cross"
        else head_weights(head, side, captured, memory)
        for head in heads
    ]
    return torch.stack(of_heads, 1)


@dataclass(frozen=True, eq=False)
class AttentionMap:
    """The matrices of one sentence.

    sentence: number of the line, from 1.
    rows, columns: the pieces that attend, and the pieces attended to, as the vocabulary spells
    them.
    panels: (Tq, Tk) for each head.
    """

    content: MapContent
    kind: AttentionKind
    sentence: int
    rows: list[str]
    columns: list[str]
    panels: dict[Head, DoubleArray]


def read_map(
    translator: Translator,
    heads: Heads,
    kind: AttentionKind,
    text: ParsedText,
    *,
    content: MapContent,
    number: int,
) -> AttentionMap:
    """Run the model over sentence `number` of a text, which has gold trees for content `target`."""
    this = slice(number - 1, number)
    alone = replace(
        text,
        source=text.source[this],
        target=text.target and text.target[this],
        gold=text.gold[this],
        model_trees=text.model_trees and text.model_trees[this],
    )
    what = ("attention", "terms", "cross")
    passes = run_forward(translator, alone.source, alone.target, alone.model_trees, what=what)
    forward = next(passes, None)
    if forward is None or forward.sentences[0].dropped:
        raise UsageError(
            "there is no such sentence, or it is empty or too long for the model",
            where=f"--sentence {number}",
            allowed=f"1 to {len(text.source):,}, of at most {translator.max_pieces} pieces",
        )
    spell = translator.source
    ids = spell.encode(tagged(alone.source[0], translator.task)).ids
    # among annotations, EOS has no parent
    rows = columns = spell.pieces(ids if kind == "parents" else [*ids, EOS])
    if alone.target:
        spell = translator.target
        ids = spell.encode(alone.target[0]).ids
        rows = spell.pieces([*ids, EOS] if kind == "cross" else [BOS, *ids])
        columns = columns if kind == "cross" else rows
    if content == "target":
        owners = owners_with_ends(translator, alone, forward.sentences[0])
        # 1 at the parent of each piece, nan where the future is masked; the rows of BOS and EOS,
        # whose word is -1, are empty
        learned, itself = owners[:, None] >= 0, np.eye(len(owners))  # (T, 1), (T, T)
        masked = np.triu(np.full_like(itself, np.nan), 1) if text.side == "target" else 0.0
        panels = {
            head: torch.from_numpy(itself[signal.compute(alone.gold[0], owners)] * learned + masked)
            for head, signal in supervised_heads(translator.model, text.side, heads).items()
        }
    elif content == "factor" or content == "bias":
        panels = edits_of(forward.captured, KINDS[kind].side, content, heads)
    else:
        weights = weights_of(forward, kind, heads)[0]  # (S, Tq, Tk)
        # after the pieces, a memory may have other places
        panels = dict(zip(heads, weights[:, : len(rows), : len(columns)], strict=True))
    arrays = {head: panel.cpu().double().numpy() for head, panel in panels.items()}
    return AttentionMap(content, kind, number, rows, columns, arrays)


def owners_with_ends(translator: Translator, text: ParsedText, sentence: SentencePass) -> IntArray:
    """Find the word of each piece that self-attention reads, with BOS or EOS: (T,), -1 for these
    and for task tags."""
    owners = word_owners(translator, text, sentence)
    return np.append(-1, owners) if text.side == "target" else np.append(owners, -1)


def edits_of(
    captured: Activations, side: Side, content: Literal["factor", "bias"], heads: Heads
) -> dict[Head, Tensor]:
    """Return the factors on attention scores of one sentence, or the biases added to them: (Tq, Tk)
    each.

    Variants compute both, and the penalties of ALiBi are biases too. Heads whose edit changes
    nothing are left out.
    """
    layers, neutral = (captured.factors, 1.0) if content == "factor" else (captured.biases, 0.0)
    of_heads = {
        head: head.of(layers[side, head.layer])[0]  # (Tq, Tk)
        for head in heads
        if (side, head.layer) in layers
    }
    edits = {head: edit for head, edit in of_heads.items() if bool((edit != neutral).any())}
    if not edits:
        raise UsageError(
            f"no chosen head of the {side} has a {content} to show",
            where=f"--what {content}",
            do="Leave out `--head`, or choose a run whose variants have one",
        )
    return edits
