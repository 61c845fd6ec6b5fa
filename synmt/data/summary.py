"""A table of what was kept and removed, and of how words were segmented."""

from __future__ import annotations

from collections.abc import Sequence

from synmt.arrays import SIDES
from synmt.corpora.corpus import CorpusPart, rows_of_parts
from synmt.data.corpus import PreparedCorpus
from synmt.files.schemas import SplitFacts, TreeCounts
from synmt.reporting.values import Quantity, Table, Value, count_column, text_column

Row = list[Value]


def corpus_table(
    prepared: PreparedCorpus,
    annotations: Sequence[str] = (),
    parts: Sequence[CorpusPart] = (),
    *,
    title: str = "",
) -> Table:
    """Make the table; with annotations, also of how their words match the pieces, with parts of
    their rows."""
    columns = [text_column(""), count_column("train"), count_column("valid")]
    return Table(title=title, columns=columns, rows=_rows(prepared, annotations, parts))


def _rows(
    prepared: PreparedCorpus, annotations: Sequence[str], parts: Sequence[CorpusPart]
) -> list[Row]:
    splits = [prepared.facts["splits"][name] for name in ("train", "valid")]
    rows: list[Row] = [["lines", *(split["lines"] for split in splits)]]
    rows += [["kept", *(split["rows"] for split in splits)]]
    rows += _part_rows(prepared, parts)
    rows += _dropped(splits)
    if any(split["cut"] for split in splits):
        longest = prepared.facts["filters"]["max_pieces"]
        rows += [[f"truncated to {longest} pieces", *(split["cut"] for split in splits)]]
    for side, name in enumerate(("source", "target")):
        rows += _side_rows(f"{name} ({prepared.facts[name]})", side, splits)
    for annotation in annotations:
        facts = prepared.annotations()[annotation]
        rows += _tree_rows(facts["side"], [facts["counts"][name] for name in ("train", "valid")])
        # corpora that were prepared earlier do not know it
        mass = [facts.get("arc_mass", {}).get(name) for name in ("train", "valid")]
        if any(mass):
            shown = (Quantity(each, "share", 3) if each else None for each in mass)
            rows += [
                [
                    f"{facts['side']} trees: probability that the stored arcs of a word sum to",
                    *shown,
                ]
            ]
    sizes = prepared.facts["vocabulary_sizes"]
    if prepared.facts["vocabularies"]["source"] == prepared.facts["vocabularies"]["target"]:
        return [*rows, ["joint vocabulary, pieces", sizes["source"], None]]
    return [*rows, *([f"{side} vocabulary, pieces", sizes[side], None] for side in SIDES)]


def _part_rows(prepared: PreparedCorpus, parts: Sequence[CorpusPart]) -> list[Row]:
    kept = rows_of_parts(parts, prepared.split("train").lines) if parts else []
    return [
        [
            f"kept of {part.name}{part.tag and f', {part.tag}'}",
            f"{len(rows):,} × {part.weight:g} per epoch",
            None,
        ]
        for part, rows in zip(parts, kept, strict=True)
    ]


def _dropped(splits: list[SplitFacts]) -> list[Row]:
    reasons = [reason for reason in splits[0]["reasons"] if reason != "kept"]
    return [
        [f"dropped: {reason}", *(split["reasons"].get(reason, 0) for split in splits)]
        for reason in reasons
        if any(split["reasons"].get(reason, 0) for split in splits)
    ]


def _side_rows(name: str, side: int, splits: list[SplitFacts]) -> list[Row]:
    return [
        [
            f"{name}: pieces per word",
            *(_ratio(s["pieces"][side], s["words"][side]) for s in splits),
        ],
        [
            f"{name}: unknown pieces",
            *(_share(s["unknown"][side], s["pieces"][side]) for s in splits),
        ],
        [f"{name}: longest, in pieces", *(s["longest"][side] for s in splits)],
    ]


def _tree_rows(side: str, counts: list[TreeCounts]) -> list[Row]:
    rows = {
        "pieces per word of the tree": lambda c: _ratio(c["pieces"], c["words"]),
        "pieces that span two words": lambda c: _share(c["straddling"], c["pieces"]),
        "characters outside any word or piece": lambda c: _share(c["unowned"], c["characters"]),
        "words merged into a neighbour (no separate piece)": lambda c: _share(
            c["merged"], c["words"]
        ),
    }
    return [[f"{side} trees: {name}", *map(show, counts)] for name, show in rows.items()]


def _ratio(number: int, of: int) -> Value:
    return Quantity(number / of) if of else None


def _share(number: int, of: int) -> Value:
    return Quantity(number / of, "share", 3) if of else None
