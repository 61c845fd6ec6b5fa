"""How `synmt analyze --attention` shows its results: on a terminal, or on a page."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from synmt.cli import console

if TYPE_CHECKING:
    from synmt.analysis.attention.maps import AttentionMap
    from synmt.analysis.attention.table import AttentionReport, HeadRow
    from synmt.analysis.html import Section
    from synmt.analysis.trees.attachment import Share

_MANY, _SHOWN = 16, 12
"""With more heads than the one, only as many as the other stand in the table for people."""
_RELATIONS = 12
"""So many relations, the most frequent ones, stand in the table for people."""


def print_tables(report: AttentionReport) -> None:
    """Print how sharp each head is, how often it agrees with parents, and the best heads by relation."""
    print(f"{_title(report)}\n{_counted(report)}\n")
    many = len(report.rows) > _MANY
    if many:
        console.table("", *_matrix(report), to_stdout=True)
        print(f"\n{_matrix_note(report)}\n")
    rows = _ordered(report)[:_SHOWN] if many else report.rows
    console.table("", _columns(report), [*_heads(report, rows), *_baselines(report)], to_stdout=True)
    if many:
        print(f"\nthe {_SHOWN} {_order(report)} of {len(report.rows)} heads; all with --json or --html")
    print("", *_legend(report), sep="\n")
    if report.relations:
        columns, relations = _relations(report)
        print()
        console.table("", columns, relations[:_RELATIONS], to_stdout=True)
        print("", *_relation_legend(report), sep="\n")
        if len(relations) > _RELATIONS:
            print(f"the {_RELATIONS} most frequent of {len(relations)} relations; all with --json or --html")


def make_section(report: AttentionReport, shown: AttentionMap) -> Section:
    """Write all tables and figures for a page."""
    from synmt.analysis.html import Section, paragraph, table

    parts = [
        paragraph(f"{_title(report)}."),
        table(
            _columns(report),
            [*_heads(report, report.rows), *_baselines(report)],
            caption=f"Every head, by layer: {_counted(report)}",
        ),
        *(paragraph(note, faint=True) for note in _notes(_legend(report))),
    ]
    if report.relations and len(report.rows) > 1:
        parts.append(_agreement_figure(report))
    if report.relations:
        parts.append(table(*_relations(report), caption="Words whose parent is found, by relation, in percent"))
        parts += [paragraph(note, faint=True) for note in _notes(_relation_legend(report))]
    parts.append(_map_figure(report, shown))
    of = "to the source" if report.about.place == "cross" else f"of the {report.about.place}"
    return Section(f"What attention {of} looks at", "".join(parts))


def _notes(lines: Iterable[str]) -> list[str]:
    """Put lines together that belong together: one that is indented goes on with the one before."""
    return "\n".join(lines).replace("\n  ", " ").splitlines()


def _agreement_figure(report: AttentionReport) -> str:
    from synmt.analysis.attention.plot import draw_agreement
    from synmt.analysis.html import figure

    owners = sorted({row.head.variant for row in report.rows} - {""})
    framed = f" Framed: heads of {', '.join(owners)}." if owners else ""
    return figure(lambda: draw_agreement(report), caption=f"Choices that are the parent, by layer and head.{framed}")


def _map_figure(report: AttentionReport, shown: AttentionMap) -> str:
    from synmt.analysis.attention.map_plot import draw_maps, is_legible
    from synmt.analysis.html import figure, paragraph

    which = f"Sentence {shown.sentence} ({shown.text})"
    if not is_legible(shown) and len(shown.panels) > 1:
        head = _ordered(report)[0].head
        head = head if head in shown.panels else next(iter(shown.panels))
        shown = replace(shown, panels={head: shown.panels[head]})
        which += f", {head.name}: it is too long to show more"
    if not is_legible(shown):
        return paragraph(f"{which} is too long to be shown; choose another one by --sentence.", faint=True)
    rows = "to be written" if shown.place == "cross" else "that look"
    caption = (
        f"{which}. Rows are the pieces {rows}, columns those that are looked at; a dot continues a word. "
        "All heads share one scale."
    )
    return figure(lambda: draw_maps(shown, system=report.about.system), caption=caption, shrinks=False)


def _title(report: AttentionReport) -> str:
    about = report.about
    what = "attention to the source" if about.place == "cross" else f"self-attention of the {about.place}"
    parsed = f", parsed by {about.parser}" if about.parser else ""
    return f"{about.system}: {what}; test set {about.test}, {about.text}{parsed}"


def _counted(report: AttentionReport) -> str:
    counted = f"{report.pieces:,} pieces in {report.sentences:,} sentences"
    if report.visible is None:
        return counted
    counted += f"; {report.words:,} words, neither punctuation nor roots"
    if report.about.place == "target":
        counted += f", with a parent to the left ({_percent(report.visible)} % of all)"
    return counted


def _columns(report: AttentionReport) -> list[str]:
    agreement = ["parent", "[95 %]", "weight", "mostly at"] if report.relations else []
    return ["head", "bits", "of max", *agreement, "no word"]


def _heads(report: AttentionReport, rows: list[HeadRow]) -> list[list[str]]:
    best = report.rows[report.best] if report.best is not None and len(report.rows) > 1 else None
    return [_cells(row, best=row is best) for row in rows]


def _cells(row: HeadRow, *, best: bool) -> list[str]:
    cells = [row.head.name + ", best" * best]
    cells += ["-" if row.bits is None else f"{row.bits:.2f}", "-" if row.share is None else _percent(row.share)]
    if row.parent is not None and row.weight is not None:
        usual = f"{_signed(row.usual[0])} ({_percent(row.usual[1])})" if row.usual else "-"
        cells += [*_share(row.parent), f"{row.weight:.3f}", usual]
    return [*cells, f"{row.elsewhere:.3f}"]


def _baselines(report: AttentionReport) -> list[list[str]]:
    names = [
        f"{one.name} ({_signed(one.offset)})" if one.name.startswith("best") else one.name for one in report.baselines
    ]
    return [[name, "", "", *_share(one.parent), "", "", ""] for name, one in zip(names, report.baselines, strict=True)]


def _share(share: Share) -> list[str]:
    return [_percent(share.value), f"[{_percent(share.low)}, {_percent(share.high)}]"]


def _percent(share: float) -> str:
    return f"{100 * share:.1f}"


def _signed(offset: int) -> str:
    return f"{offset:+d}" if offset else "0"


def _legend(report: AttentionReport) -> Iterator[str]:
    about = report.about
    yield "bits: entropy of a piece's weights, the mean; 0 is a single piece looked at"
    yield "of max: the same in percent of log2 of the pieces in sight; 100 is no choice"
    if report.relations:
        yield "parent: words whose highest weight among words is on their parent, in percent"
        yield "weight: what a word gives to its parent, the mean, 0 to 1"
        yield "mostly at: where the highest weight stands most often, and in how many percent;"
        yield "  in words: -1 is the word before, 0 the word itself"
        yield "previous, next word, itself, best offset: words whose parent stands just there;"
        yield "  itself is no word's parent, since roots do not count"
        if about.parser:
            yield f"parents are what a parser says, and parsers err: {about.parser}"
        if len(report.rows) > 1:
            yield "best: chosen on these very words, so expect less on others"
    ends = {"source": "EOS", "target": "BOS", "cross": "the source's EOS"}[about.place]
    yield f"no word: weight on {ends}, which is no word, 0 to 1"


def _ordered(report: AttentionReport) -> list[HeadRow]:
    """Put the heads that agree most first, or the sharpest where there are no parents."""
    return sorted(
        report.rows, key=lambda row: -row.parent.value if row.parent else row.bits if row.bits is not None else 1e9
    )


def _order(report: AttentionReport) -> str:
    return "that agree most" if report.relations else "sharpest"


def _matrix(report: AttentionReport) -> tuple[list[str], list[list[str]]]:
    """Lay out one number of each head by layer and head."""
    numbers = range(1, max(row.head.number for row in report.rows) + 1)
    cells = {(row.head.layer, row.head.number): _short(row) for row in report.rows}
    layers = sorted({layer for layer, _ in cells})
    columns = ["parent" if report.relations else "bits", *map(str, numbers)]
    return columns, [[f"layer {layer}", *(cells.get((layer, one), "") for one in numbers)] for layer in layers]


def _short(row: HeadRow) -> str:
    value = 100 * row.parent.value if row.parent else row.bits
    return "-" if value is None else f"{value:.0f}{'*' * bool(row.head.variant)}" if row.parent else f"{value:.1f}"


def _matrix_note(report: AttentionReport) -> str:
    owners = sorted({row.head.variant for row in report.rows} - {""})
    unit = "parent, in percent" if report.relations else "bits"
    return f"{unit}, of each head by layer" + (f"; *: heads of {', '.join(owners)}" if owners else "")


def _relations(report: AttentionReport) -> tuple[list[str], list[list[str]]]:
    several = len(report.rows) > 1
    columns = [
        "relation",
        "words",
        "best offset",
        "%",
        *(["best head", "%"] if several else [report.rows[0].head.name]),
    ]
    rows = []
    for row in report.relations:
        name = report.rows[row.best].head.name.removeprefix("head ")
        cells = [row.relation, f"{row.words:,}", _signed(row.offset), _percent(row.by_offset)]
        rows.append([*cells, *([name] if several else []), _percent(row.heads[row.best])])
    return columns, rows


def _relation_legend(report: AttentionReport) -> Iterator[str]:
    yield "best offset: the one that leads to most parents of the relation, and to how many"
    if len(report.rows) > 1:
        yield "best head: the one that finds most of them; both are chosen on these very words"
