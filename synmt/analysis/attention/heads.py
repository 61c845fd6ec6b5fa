"""Attention heads of a model, by kind of attention: their weights in a forward pass, and heat maps
of one sentence.

Annotations of the source count as a kind of attention too: their weights say which pieces are
probably the parent of a piece.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import torch
from torch import Tensor

from synmt.analysis.forward_passes import ForwardPass, ParsedText, run_forward
from synmt.analysis.heads import Head, annotation_heads, annotation_weights, choose_heads
from synmt.arrays import DoubleArray, Side
from synmt.data.tasks import tagged
from synmt.data.vocabulary import BOS, EOS, Vocabulary
from synmt.decode.translator import Translator
from synmt.errors import UsageError
from synmt.model.capture import ActivationKind, Activations, self_attention
from synmt.model.seq2seq import Seq2Seq
from synmt.syntax.parse import without_whitespace

AttentionKind = Literal["source", "target", "cross", "parents"]
"""Self-attention of a side, cross-attention from the target to the source, or annotations: probable
parents."""


MapContent = Literal["weights", "factor", "bias", "cross", "parents"]
"""The values that heat maps show."""

MAP_CONTENTS: tuple[str, ...] = get_args(MapContent)


@dataclass(frozen=True)
class KindOfAttention:
    """What is known about a kind of attention.

    name: of the attention, in sentences.
    lines: the lines of the test set that it is computed for.
    rows, columns: the pieces that attend, and those attended to.
    ends: the positions that belong to no word.
    captured: the activations with its weights.
    """

    name: str
    lines: str
    rows: str
    columns: str
    ends: str
    captured: tuple[ActivationKind, ...] = ("attention",)


KINDS: dict[AttentionKind, KindOfAttention] = {
    "source": KindOfAttention(
        "self-attention of the source",
        "source",
        "piece that attends",
        "piece attended to",
        "EOS and task tags",
    ),
    "target": KindOfAttention(
        "self-attention of the target",
        "reference",
        "piece that attends",
        "piece attended to",
        "BOS",
    ),
    "cross": KindOfAttention(
        "attention to the source",
        "the run's own translation",
        "piece to be generated",
        "piece attended to",
        "the source's EOS",
        ("cross",),
    ),
    "parents": KindOfAttention(
        "probable parents in the annotations of the source",
        "source",
        "piece",
        "probable parent; on the diagonal: the root, or the piece itself if flat",
        "task tags",
        (),
    ),
}


def heads_of(model: Seq2Seq, kind: AttentionKind, head: str | None = None) -> list[Head]:
    """List the heads of one kind of attention, by layer: head `LAYER.HEAD`, or all."""
    without_heads = "annotations of the source have no heads"
    if kind == "parents":
        found = annotation_heads(model)
        if not found:
            raise UsageError(
                "the source of this model has no annotations with probable parents",
                where="--what parents",
                allowed="Models with latent_tree or latent_graph have them",
                do="Train one, for example `synmt train multi30k-sa`, or choose its run with "
                "`--run`",
            )
    elif self_attention(model, "source"):
        return choose_heads(model, side_of(kind), head, owned=kind != "cross")
    else:
        found, without_heads = (
            [Head()],
            "an LSTM has a single attention to the source, without heads",
        )
    if head not in (None, "all"):
        raise UsageError(without_heads, where="--head", do="Leave out `--head`")
    return found


def side_of(kind: AttentionKind) -> Side:
    """Return the side whose pieces attend."""
    return "target" if kind in ("target", "cross") else "source"


def weights_of(forward: ForwardPass, kind: AttentionKind, heads: Sequence[Head]) -> Tensor:
    """Return the attention weights of S heads in a forward pass: (B, S, Tq, Tk)."""
    captured = forward.captured
    if kind == "parents":
        return torch.stack([annotation_weights(head, forward) for head in heads], 1)
    layers = captured.cross
    if kind != "cross":
        layers = {
            layer: weights for (side, layer), weights in captured.attention.items() if side == kind
        }
    if heads[0].is_lstm:
        [weights] = layers.values()
        return weights
    return torch.stack([layers[head.layer][:, head.number - 1] for head in heads], 1)


def edits_of(
    captured: Activations, side: Side, what: Literal["factor", "bias"], heads: Sequence[Head]
) -> dict[Head, Tensor]:
    """Return the factors on attention scores, or the biases added to them: (B, Tq, Tk) each.

    Variants compute both, and the penalties of ALiBi are biases too. Heads whose edit changes
    nothing are left out.
    """
    layers, neutral = (captured.factors, 1.0) if what == "factor" else (captured.biases, 0.0)
    edits = {}
    for head in heads:
        edit = layers.get((side, head.layer))  # (B, H, Tq, Tk)
        if edit is not None and bool((edit[:, head.number - 1] != neutral).any()):
            edits[head] = edit[:, head.number - 1]
    return edits


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
    heads: Sequence[Head],
    kind: AttentionKind,
    text: ParsedText,
    *,
    content: MapContent,
    number: int,
) -> AttentionMap:
    """Run the model over sentence `number` of a text."""
    one = _choose_sentence(text, number)
    what = (
        (*KINDS[kind].captured, "terms") if kind in ("source", "target") else KINDS[kind].captured
    )
    [forward] = run_forward(translator, one.source, one.target, one.model_trees, what=what)
    if forward.sentences[0].dropped:
        raise UsageError(
            f"this sentence has more pieces than the model takes, {translator.max_pieces}",
            where=f"--sentence {number}",
            do="Choose another sentence",
        )
    rows = _rows(translator, kind, one)
    columns = _rows(translator, "source", one) if kind == "cross" else rows
    panels = _panels(translator, forward, heads, kind, content)
    return AttentionMap(content, kind, number, rows, columns, panels)


def _choose_sentence(text: ParsedText, number: int) -> ParsedText:
    """Return one sentence as a text; refuses missing and empty ones."""
    where, count = f"--sentence {number}", len(text.source)
    if not 1 <= number <= count:
        raise UsageError(
            "the test set has no such sentence", where=where, allowed=f"Sentences 1 to {count:,}"
        )
    this = slice(number - 1, number)
    trees = text.model_trees[this] if text.model_trees else None
    one = ParsedText(
        text.side, text.source[this], text.target[this] if text.target else None, [], trees
    )
    if not all(map(without_whitespace, [*one.source, *(one.target or [])])):
        raise UsageError(
            "the source or the target of this sentence is empty",
            where=where,
            do="Choose another one",
        )
    return one


def _rows(translator: Translator, kind: AttentionKind, one: ParsedText) -> list[str]:
    """Spell the pieces that attend."""
    [source], [target] = one.source, one.target or [""]
    if kind in ("source", "parents"):
        pieces = _pieces(translator.source, tagged(source, translator.task))
        # EOS has no parent
        return pieces if kind == "parents" else [*pieces, *translator.source.pieces([EOS])]
    pieces = _pieces(translator.target, target)
    if kind == "cross":
        return [*pieces, *translator.target.pieces([EOS])]
    return [*translator.target.pieces([BOS]), *pieces]


def _pieces(vocabulary: Vocabulary, text: str) -> list[str]:
    return vocabulary.pieces(vocabulary.encode(text).ids)


def _panels(
    translator: Translator,
    forward: ForwardPass,
    heads: Sequence[Head],
    kind: AttentionKind,
    content: MapContent,
) -> dict[Head, DoubleArray]:
    if content == "factor" or content == "bias":
        assert kind == "source" or kind == "target", kind
        edits = edits_of(forward.captured, kind, content, heads)
        if not edits:
            # name the heads that have one
            allowed = ["weights and cross: all heads"]
            for other in ("factor", "bias"):
                having = edits_of(forward.captured, kind, other, heads_of(translator.model, kind))
                allowed.append(f"{other}: {', '.join(head.label for head in having) or 'none'}")
            what = (
                f"{heads[0].name} of the {kind} has no"
                if len(heads) == 1
                else f"no head of the {kind} has a"
            )
            raise UsageError(
                f"{what} {content} to show", where=f"--what {content}", allowed="; ".join(allowed)
            )
        return {head: edit[0].cpu().double().numpy() for head, edit in edits.items()}
    weights = weights_of(forward, kind, heads)[0].cpu().double().numpy()  # (S, Tq, Tk)
    if kind == "parents":
        pieces = len(forward.sentences[0].source)
        weights = weights[:, :pieces, :pieces]
    if kind == "cross":
        # after the pieces, a memory may have other places
        weights = weights[..., : forward.memory.pieces]
    return dict(zip(heads, weights, strict=True))
