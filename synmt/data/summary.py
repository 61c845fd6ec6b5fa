"""A table of what was kept and removed, and of how words were segmented."""

from __future__ import annotations

from collections.abc import Sequence

from synmt.arrays import SIDES
from synmt.corpora.corpus import CorpusPart, rows_of_parts
from synmt.data.corpus import PreparedCorpus
from synmt.files.schemas import AnnotationFacts, SplitFacts
from synmt.reporting.values import Quantity, Table, Value, count_column, text_column


def corpus_table(
    prepared: PreparedCorpus,
    annotations: Sequence[str] = (),
    parts: Sequence[CorpusPart] = (),
    *,
    title: str = "",
) -> Table:
    """Make the table; with annotations, also of how their words match the pieces, with parts of
    their rows."""
    facts, sizes = prepared.facts, prepared.facts["vocabulary_sizes"]
    splits = [facts["splits"]["train"], facts["splits"]["valid"]]
    rows: list[list[Value]] = [["lines", *(split["lines"] for split in splits)]]
    rows.append(["kept", *(split["rows"] for split in splits)])
    kept = rows_of_parts(parts, prepared.split("train").lines) if parts else []
    for part, of_part in zip(parts, kept, strict=True):
        name = f"kept of {part.name}{part.tag and f', {part.tag}'}"
        rows.append([name, f"{len(of_part):,} × {part.weight:g} per epoch", None])
    for reason in splits[0]["reasons"]:
        dropped = [split["reasons"].get(reason, 0) for split in splits]
        if reason != "kept" and any(dropped):
            rows.append([f"dropped: {reason}", *dropped])
    if any(split["cut"] for split in splits):
        longest = facts["filters"]["max_pieces"]
        rows.append([f"truncated to {longest} pieces", *(split["cut"] for split in splits)])
    for number, side in enumerate(SIDES):
        rows += _side_rows(f"{side} ({facts[side]})", number, splits)
    for annotation in annotations:
        rows += _tree_rows(prepared.annotations()[annotation])
    if facts["vocabularies"]["source"] == facts["vocabularies"]["target"]:
        rows.append(["joint vocabulary, pieces", sizes["source"], None])
    else:
        rows += [[f"{side} vocabulary, pieces", sizes[side], None] for side in SIDES]
    columns = [text_column(""), count_column("train"), count_column("valid")]
    return Table(title=title, columns=columns, rows=rows)


def _side_rows(name: str, side: int, splits: Sequence[SplitFacts]) -> list[list[Value]]:
    words, pieces, unknown, longest = (
        [split[key][side] for split in splits] for key in ("words", "pieces", "unknown", "longest")
    )
    return [
        [f"{name}: pieces per word", *map(_ratio, pieces, words)],
        [f"{name}: unknown pieces", *map(_share, unknown, pieces)],
        [f"{name}: longest, in pieces", *longest],
    ]


def _tree_rows(facts: AnnotationFacts) -> list[list[Value]]:
    counts = [facts["counts"]["train"], facts["counts"]["valid"]]
    words, pieces, straddling, unowned, characters, merged = (
        [count[key] for count in counts]
        for key in ("words", "pieces", "straddling", "unowned", "characters", "merged")
    )
    name = f"{facts['side']} trees"
    rows: list[list[Value]] = [
        [f"{name}: pieces per word of the tree", *map(_ratio, pieces, words)],
        [f"{name}: pieces that span two words", *map(_share, straddling, pieces)],
        [f"{name}: characters outside any word or piece", *map(_share, unowned, characters)],
        [f"{name}: words merged into a neighbour (no separate piece)", *map(_share, merged, words)],
    ]
    # corpora that were prepared earlier do not know it
    known = facts.get("arc_mass", {"train": None, "valid": None})
    masses = known["train"], known["valid"]
    if any(masses):
        title = f"{name}: probability that the stored arcs of a word sum to"
        rows.append([title, *(Quantity(mass, "share", 3) if mass else None for mass in masses)])
    return rows


def _ratio(number: int, of: int) -> Value:
    return Quantity(number / of) if of else None


def _share(number: int, of: int) -> Value:
    return Quantity(number / of, "share", 3) if of else None
