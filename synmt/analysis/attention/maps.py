"""What heat maps show: of one sentence, what each head looks at or what its variant makes of the scores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from synmt.analysis.attention.heads import WATCHED, Head, Place, What, edits_of, heads_of, weights_of
from synmt.analysis.forward_passes import ForwardPass, run_forward
from synmt.arrays import DoubleArray, Side
from synmt.data.tasks import tagged
from synmt.data.vocabulary import BOS, EOS, Vocabulary
from synmt.decode.translator import Translator
from synmt.errors import UsageError
from synmt.syntax.whitespace import without_whitespace

Panels = dict[Head, DoubleArray]


@dataclass(frozen=True, eq=False)
class AttentionMap:
    """The matrices of one sentence.

    text: what was read, such as `source` or `reference`.
    sentence: its number, from 1.
    rows, columns: the pieces that look, and those they look at, as the vocabulary spells them.
    panels: (Tq, Tk) of each head that has one.
    """

    what: What
    place: Place
    text: str
    sentence: int
    rows: list[str]
    columns: list[str]
    panels: Panels


def check_sentence(number: int, source: Sequence[str], target: Sequence[str] | None) -> None:
    """Refuse a sentence that is not there, or without words."""
    where = f"--sentence {number}"
    if not 1 <= number <= len(source):
        raise UsageError("the test set has no such sentence", where=where, allowed=f"Sentences 1 to {len(source):,}")
    if not without_whitespace(source[number - 1]) or (
        target is not None and not without_whitespace(target[number - 1])
    ):
        raise UsageError("this sentence is empty on a side that is read", where=where, do="Choose another one")


def read_map(
    translator: Translator,
    heads: Sequence[Head],
    place: Place,
    what: What,
    number: int,
    *,
    source: Sequence[str],
    target: Sequence[str] | None,
    text: str,
) -> AttentionMap:
    """Run the model over sentence `number` of the lines; it reads its own parser's tree, where it reads one."""
    check_sentence(number, source, target)
    line = source[number - 1]
    written = None if target is None else target[number - 1]
    given = None if written is None else [written]
    [passed] = run_forward(translator, [line], given, what=WATCHED[place])
    if passed.sentences[0].dropped:
        raise UsageError(
            f"this sentence has more pieces than the model takes, {translator.max_pieces}",
            where=f"--sentence {number}",
            do="Choose another one",
        )
    sources = _pieces(translator.source, tagged(line, translator.task))
    targets = _pieces(translator.target, written or "")
    begun, ended = [*translator.target.pieces([BOS]), *targets], [*sources, *translator.source.pieces([EOS])]
    rows, columns = {
        "source": (ended, ended),
        "target": (begun, begun),
        "cross": ([*targets, *translator.target.pieces([EOS])], ended),
    }[place]
    panels = _panels(translator, passed, heads, place, what)
    return AttentionMap(what, place, text, number, rows, columns, panels)


def _pieces(vocabulary: Vocabulary, text: str) -> list[str]:
    return vocabulary.pieces(vocabulary.encode(text).ids)


def _panels(translator: Translator, passed: ForwardPass, heads: Sequence[Head], place: Place, what: What) -> Panels:
    if what == "factor" or what == "bias":
        assert place != "cross"
        edits = edits_of(passed.captured, place, what, heads)
        if not edits:
            raise _without(passed, heads, heads_of(translator.model, place), place, what)
        return {head: edit[0].double().cpu().numpy() for head, edit in edits.items()}
    weights = weights_of(passed.captured, place, heads)[0].double().cpu().numpy()  # (S, Tq, Tk)
    return dict(zip(heads, weights, strict=True))


def _without(passed: ForwardPass, heads: Sequence[Head], every: Sequence[Head], side: Side, what: What) -> UsageError:
    """Say which heads there are to show in place of those that have nothing."""
    asked = heads[0].name if len(heads) == 1 else "no head"
    allowed = ["weights and cross: all heads"]
    for kind in ("factor", "bias"):
        names = [head.name.removeprefix("head ") for head in edits_of(passed.captured, side, kind, every)]
        allowed.append(f"{kind}: {', '.join(names) or 'none'}")
    return UsageError(
        f"{asked} of the {side} has {'no' if len(heads) == 1 else 'a'} {what} to show",
        where=f"--what {what}",
        allowed="; ".join(allowed),
    )
