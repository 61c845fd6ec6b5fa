"""Heat maps of one sentence: the attention weights of each head, or the factors and biases of its variant."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from synmt.analysis.attention.heads import KINDS, AttentionKind, Head, edits_of, heads_of, weights_of
from synmt.analysis.forward_passes import ForwardPass, ParsedText, run_forward
from synmt.arrays import DoubleArray
from synmt.data.tasks import tagged
from synmt.data.vocabulary import BOS, EOS, Vocabulary
from synmt.decode.translator import Translator
from synmt.errors import UsageError
from synmt.syntax.parse import without_whitespace

MapContent = Literal["weights", "factor", "bias", "cross", "parents"]
"""The values that heat maps show."""

MAP_CONTENTS: tuple[str, ...] = get_args(MapContent)


@dataclass(frozen=True, eq=False)
class AttentionMap:
    """The matrices of one sentence.

    sentence: number of the line, from 1.
    rows, columns: the pieces that attend, and the pieces attended to, as the vocabulary spells them.
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
    what = (*KINDS[kind].captured, "terms") if kind in ("source", "target") else KINDS[kind].captured
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
        raise UsageError("the test set has no such sentence", where=where, allowed=f"Sentences 1 to {count:,}")
    this = slice(number - 1, number)
    trees = text.model_trees[this] if text.model_trees else None
    one = ParsedText(text.side, text.source[this], text.target[this] if text.target else None, [], trees)
    if not all(map(without_whitespace, [*one.source, *(one.target or [])])):
        raise UsageError("the source or the target of this sentence is empty", where=where, do="Choose another one")
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
    translator: Translator, forward: ForwardPass, heads: Sequence[Head], kind: AttentionKind, content: MapContent
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
            what = f"{heads[0].name} of the {kind} has no" if len(heads) == 1 else f"no head of the {kind} has a"
            raise UsageError(f"{what} {content} to show", where=f"--what {content}", allowed="; ".join(allowed))
        return {head: edit[0].cpu().double().numpy() for head, edit in edits.items()}
    weights = weights_of(forward, kind, heads)[0].cpu().double().numpy()  # (S, Tq, Tk)
    if kind == "parents":
        pieces = len(forward.sentences[0].source)
        weights = weights[:, :pieces, :pieces]
    if kind == "cross":
        # after the pieces, a memory may have other places
        weights = weights[..., : forward.memory.pieces]
    return dict(zip(heads, weights, strict=True))
