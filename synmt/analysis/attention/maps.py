"""Heat maps of one sentence: the attention weights of each head, or the factors and biases of its variant."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from synmt.analysis.attention.heads import CAPTURED, AttentionKind, Head, edits_of, heads_of, weights_of
from synmt.analysis.forward_passes import ForwardPass, run_forward
from synmt.arrays import DoubleArray, Side
from synmt.data.tasks import tagged
from synmt.data.vocabulary import BOS, EOS, Vocabulary
from synmt.decode.translator import Translator
from synmt.errors import UsageError, did_you_mean
from synmt.syntax.parse import Parse, without_whitespace

MapContent = Literal["weights", "factor", "bias", "cross", "parents"]
"""The values that heat maps show."""

MAP_CONTENTS: tuple[str, ...] = get_args(MapContent)


@dataclass(frozen=True, eq=False)
class AttentionText:
    """The lines for which attention is computed.

    name: what the lines are: `source`, `reference` or `the run's own translation`.
    target: the lines that the decoder is forced to produce; None: only the encoder runs.
    """

    kind: AttentionKind
    name: str
    source: Sequence[str]
    target: Sequence[str] | None


@dataclass(frozen=True, eq=False)
class AttentionMap:
    """The matrices of one sentence.

    text: what the line is, as in `AttentionText`.
    sentence: number of the line, from 1.
    rows, columns: the pieces that attend, and the pieces attended to, as the vocabulary spells them.
    panels: (Tq, Tk) for each head.
    """

    content: MapContent
    kind: AttentionKind
    text: str
    sentence: int
    rows: list[str]
    columns: list[str]
    panels: dict[Head, DoubleArray]


def check_content(what: str) -> None:
    """Refuse unknown content of heat maps."""
    if what not in MAP_CONTENTS:
        raise UsageError(
            f"heat maps do not show '{what}'",
            where="--what",
            allowed=f"They show {', '.join(MAP_CONTENTS)}",
            do=did_you_mean(what, MAP_CONTENTS),
        )


def read_map(
    translator: Translator,
    heads: Sequence[Head],
    text: AttentionText,
    content: MapContent,
    number: int,
    trees: Sequence[Parse] = (),
) -> AttentionMap:
    """Run the model over sentence `number`; if `trees` is empty, its own parser makes the trees that it reads."""
    line, written = _choose_sentence(text, number)
    tree = trees[number - 1 : number] or None
    [forward] = run_forward(translator, [line], None if written is None else [written], tree, what=CAPTURED[text.kind])
    if forward.sentences[0].dropped:
        raise UsageError(
            f"this sentence has more pieces than the model takes, {translator.max_pieces}",
            where=f"--sentence {number}",
            do="Choose another sentence",
        )
    rows, columns = _axes(translator, text.kind, line, written or "")
    panels = _panels(translator, forward, heads, text.kind, content)
    return AttentionMap(content, text.kind, text.name, number, rows, columns, panels)


def _choose_sentence(text: AttentionText, number: int) -> tuple[str, str | None]:
    """Return the source and the target of a sentence; refuses missing and empty ones."""
    where, count = f"--sentence {number}", len(text.source)
    if not 1 <= number <= count:
        raise UsageError("the test set has no such sentence", where=where, allowed=f"Sentences 1 to {count:,}")
    source, target = text.source[number - 1], None if text.target is None else text.target[number - 1]
    if not all(without_whitespace(line) for line in (source, target) if line is not None):
        raise UsageError("the source or the target of this sentence is empty", where=where, do="Choose another one")
    return source, target


def _axes(translator: Translator, kind: AttentionKind, source: str, target: str) -> tuple[list[str], list[str]]:
    """Spell the pieces of the rows and of the columns."""
    bos, eos = translator.target.pieces([BOS]), translator.target.pieces([EOS])
    inputs = [*_pieces(translator.source, tagged(source, translator.task)), *translator.source.pieces([EOS])]
    outputs = _pieces(translator.target, target)
    # EOS has no parent
    rows = {"source": inputs, "target": [*bos, *outputs], "cross": [*outputs, *eos], "parents": inputs[:-1]}[kind]
    return rows, inputs if kind == "cross" else rows


def _pieces(vocabulary: Vocabulary, text: str) -> list[str]:
    return vocabulary.pieces(vocabulary.encode(text).ids)


def _panels(
    translator: Translator, forward: ForwardPass, heads: Sequence[Head], kind: AttentionKind, content: MapContent
) -> dict[Head, DoubleArray]:
    if content == "factor" or content == "bias":
        assert kind == "source" or kind == "target"
        edits = edits_of(forward.captured, kind, content, heads)
        if not edits:
            raise _no_edit(forward, heads, heads_of(translator.model, kind), kind, content)
        return {head: edit[0].cpu().double().numpy() for head, edit in edits.items()}
    weights = weights_of(forward, kind, heads)[0].cpu().double().numpy()  # (S, Tq, Tk)
    if kind == "parents":
        pieces = len(forward.sentences[0].source)
        weights = weights[:, :pieces, :pieces]
    if kind == "cross":
        # after the pieces, a memory may have other places
        weights = weights[..., : forward.memory.pieces]
    return dict(zip(heads, weights, strict=True))


def _no_edit(
    forward: ForwardPass, heads: Sequence[Head], all_heads: Sequence[Head], side: Side, content: MapContent
) -> UsageError:
    """Make the error for heads without a factor or bias, which names the heads that have one."""
    allowed = ["weights and cross: all heads"]
    for kind in ("factor", "bias"):
        labels = [head.label for head in edits_of(forward.captured, side, kind, all_heads)]
        allowed.append(f"{kind}: {', '.join(labels) or 'none'}")
    what = f"{heads[0].name} of the {side} has no" if len(heads) == 1 else f"no head of the {side} has a"
    return UsageError(f"{what} {content} to show", where=f"--what {content}", allowed="; ".join(allowed))
