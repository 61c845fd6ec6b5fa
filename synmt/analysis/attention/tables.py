"""Tables and figures of attention heads, for a terminal and for a web page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from synmt.analysis.attention.agreement_plot import draw_agreement
from synmt.analysis.attention.map_plot import draw_maps, is_legible
from synmt.analysis.attention.maps import AttentionMap
from synmt.analysis.attention.summary import AttentionSummary, HeadRow
from synmt.analysis.report import TextTable
from synmt.evaluation.bootstrap import Proportion
from synmt.evaluation.outputs import the_test_set
from synmt.reporting.page import Section, figure, paragraph, table

_MANY_HEADS, _BEST_HEADS = 16, 12
"""With more heads than the first number, the terminal's table has only the best ones, as many as the second."""
_MOST_RELATIONS = 12
"""Number of relations in the terminal's table, the most frequent ones."""


def summary_as_text(summary: AttentionSummary) -> Iterator[str | TextTable]:
    """Yield the statistics of each head, the baselines, and the agreement by relation."""
    yield f"{_title(summary)}\n{_counts(summary)}\n"
    heads, many = len(summary.rows), len(summary.rows) > _MANY_HEADS
    if many:
        yield _layer_table(summary)
        yield f"\n{_layer_note(summary)}\n"
    yield _head_table(summary, summary.ranked()[:_BEST_HEADS] if many else summary.rows)
    if many:
        order = "with the highest agreement" if summary.relations else "with the lowest entropy"
        yield f"\n{_BEST_HEADS} of {heads} heads, those {order}; all with --json or --html"
    yield from ("", *_legend(summary))
    if summary.relations:
        relations = _relation_table(summary)
        yield ""
        yield TextTable(relations.columns, relations.rows[:_MOST_RELATIONS])
        yield from ("", *_relation_legend(summary))
        if len(relations.rows) > _MOST_RELATIONS:
            yield f"the {_MOST_RELATIONS} most frequent of {len(relations.rows)} relations; all with --json or --html"


def summary_as_html(summary: AttentionSummary, heat_map: AttentionMap) -> Section:
    """Write all tables and figures as a section of a page."""
    heads = _head_table(summary, summary.rows)
    parts = [
        paragraph(f"{_title(summary)}."),
        table(heads.columns, heads.rows, caption=f"{_heads_caption(summary)}{_counts(summary)}"),
        *(paragraph(line, faint=True) for line in _legend(summary)),
    ]
    if summary.relations:
        if len(summary.rows) > 1:
            parts.append(_agreement_figure(summary))
        relations = _relation_table(summary)
        caption = "Agreement with parents by relation, in percent"
        parts.append(table(relations.columns, relations.rows, caption=caption))
        parts += [paragraph(line, faint=True) for line in _relation_legend(summary)]
    parts.append(_map_figure(summary, heat_map))
    return Section(_attention_name(summary).capitalize(), "".join(parts))


def _heads_caption(summary: AttentionSummary) -> str:
    return "" if summary.context.kind == "parents" or len(summary.rows) == 1 else "All heads, by layer: "


def _agreement_figure(summary: AttentionSummary) -> str:
    owners = summary.variants()
    framed = f" Framed: heads of {', '.join(owners)}." if owners else ""
    caption = f"Words whose highest weight is on their parent, by layer and head.{framed}"
    return figure(lambda: draw_agreement(summary), caption=caption)


def _map_figure(summary: AttentionSummary, heat_map: AttentionMap) -> str:
    """Draw the heat maps of all heads; of the best head alone if the sentence is too long for all."""
    title = f"Sentence {heat_map.sentence} ({heat_map.text})"
    if not is_legible(heat_map) and len(heat_map.panels) > 1:
        best = summary.ranked()[0].head
        head = best if best in heat_map.panels else next(iter(heat_map.panels))
        heat_map = replace(heat_map, panels={head: heat_map.panels[head]})
        title += f", {head.name} only, because the sentence is long"
    if not is_legible(heat_map):
        return paragraph(f"{title} is too long for a heat map; choose another one with --sentence.", faint=True)
    rows = "to be generated" if heat_map.kind == "cross" else "that attend"
    axes = f"Rows: pieces {rows}; columns: pieces attended to; a dot marks a piece inside a word."
    if heat_map.kind == "parents":
        # latent trees and flat attention differ on the diagonal
        axes = "Rows: pieces; columns: their probable parents, on the diagonal the root, or the piece itself if flat."
    caption = f"{title}. {axes}{' All heads share one scale.' * (len(heat_map.panels) > 1)}"
    return figure(lambda: draw_maps(heat_map, system=summary.context.system), caption=caption, shrinks=False)


def _attention_name(summary: AttentionSummary) -> str:
    kind = summary.context.kind
    names = {"cross": "attention to the source", "parents": "probable parents in the annotations of the source"}
    return names.get(kind, f"self-attention of the {kind}")


def _title(summary: AttentionSummary) -> str:
    context = summary.context
    trees = f", with trees of {context.parser}" if context.parser else ""
    return f"{context.system}: {_attention_name(summary)}; {context.text} of {the_test_set(context.test)}{trees}"


def _counts(summary: AttentionSummary) -> str:
    counts = f"{summary.pieces:,} pieces in {summary.sentences:,} sentences"
    if summary.visible is None:
        return counts
    counts += f"; {summary.words:,} words, neither punctuation nor roots"
    if summary.context.kind == "target":
        counts += f", with a parent to the left ({_percent(summary.visible)} % of all)"
    return counts


def _head_table(summary: AttentionSummary, rows: Sequence[HeadRow]) -> TextTable:
    """Lay out the statistics of heads, then the baselines."""
    agreement = ["parent", "[95 %]", "weight", "mostly at"] if summary.relations else []
    best = summary.rows[summary.best] if summary.best is not None and len(summary.rows) > 1 else None
    cells = [_head_cells(row, best=row is best) for row in rows]
    for one in summary.baselines:
        name = f"{one.name} ({_signed(one.offset)})" if one.name.startswith("best") else one.name
        cells.append([name, "", "", *_share_cells(one.parent), "", "", ""])
    return TextTable(["head", "bits", "of max", *agreement, "no word"], cells)


def _head_cells(row: HeadRow, *, best: bool) -> list[str]:
    cells = [row.head.name + ", best" * best, "-" if row.bits is None else f"{row.bits:.2f}"]
    cells.append("-" if row.relative_bits is None else _percent(row.relative_bits))
    if row.parent is not None and row.parent_weight is not None:
        usual = f"{_signed(row.usual_offset[0])} ({_percent(row.usual_offset[1])})" if row.usual_offset else "-"
        cells += [*_share_cells(row.parent), f"{row.parent_weight:.3f}", usual]
    return [*cells, f"{row.no_word:.3f}"]


def _share_cells(share: Proportion) -> list[str]:
    return [_percent(share.value), f"[{_percent(share.low)}, {_percent(share.high)}]"]


def _percent(share: float) -> str:
    return f"{100 * share:.1f}"


def _signed(offset: int) -> str:
    return f"{offset:+d}" if offset else "0"


def _legend(summary: AttentionSummary) -> Iterator[str]:
    context = summary.context
    yield "bits: mean entropy of the weights of a piece; 0 = all weight on one piece"
    yield "of max: entropy relative to uniform attention (100 % = uniform)"
    if summary.relations:
        yield "parent: words whose highest weight on a word is on their parent, in percent"
        yield "weight: mean weight of a word on its parent, 0 to 1"
        yield "mostly at: most frequent offset of the highest weight (-1: previous word), in percent"
        yield "previous, next word, best offset: words whose parent is at this offset"
        yield "itself: always 0, since roots do not count"
        if context.parser:
            yield f"parents: those of {context.parser}{'; a parser makes errors' * (not context.given)}"
        if len(summary.rows) > 1:
            yield "best: selected on these words; expect a lower agreement on others"
    ends = {
        "source": "EOS and task tags" if context.tagged else "EOS",
        "target": "BOS",
        "cross": "the source's EOS",
        "parents": "task tags",
    }[context.kind]
    yield f"no word: weight on {ends}, 0 to 1"


def _layer_table(summary: AttentionSummary) -> TextTable:
    """Lay out one number for each head, by layer and head."""
    cells = {row.head.place: _layer_cell(row) for row in summary.rows}
    numbers = range(1, max(number for _, number in cells) + 1)
    rows = [
        [f"layer {layer}", *(cells.get((layer, number), "") for number in numbers)]
        for layer in sorted({layer for layer, _ in cells})
    ]
    return TextTable(["parent" if summary.relations else "bits", *map(str, numbers)], rows)


def _layer_cell(row: HeadRow) -> str:
    if row.parent:
        return f"{100 * row.parent.value:.0f}{'*' * bool(row.head.variant)}"
    return "-" if row.bits is None else f"{row.bits:.1f}"


def _layer_note(summary: AttentionSummary) -> str:
    owners = summary.variants()
    unit = "parent, in percent" if summary.relations else "bits"
    return f"{unit}, by layer and head" + (f"; *: heads of {', '.join(owners)}" if owners else "")


def _relation_table(summary: AttentionSummary) -> TextTable:
    several = len(summary.rows) > 1
    head_columns = ["best head", "%"] if several else [summary.rows[0].head.name]
    rows = []
    for row in summary.relations:
        label = [summary.rows[row.best].head.label] if several else []
        cells = [row.relation, f"{row.words:,}", _signed(row.offset), _percent(row.by_offset)]
        rows.append([*cells, *label, _percent(row.heads[row.best])])
    return TextTable(["relation", "words", "best offset", "%", *head_columns], rows)


def _relation_legend(summary: AttentionSummary) -> Iterator[str]:
    yield "best offset: the most frequent offset of the parent, with its percentage"
    if len(summary.rows) > 1:
        yield "best head: the head with the highest agreement; both are selected on these words"
