"""A table of what was kept and removed, and of how words were segmented."""

from __future__ import annotations

from collections.abc import Sequence

from synmt.arrays import SIDES, Texts
from synmt.data.corpus import PreparedCorpus
from synmt.reporting.values import Table, Value, Written, count_column, text_column


def corpus_table(
    prepared: PreparedCorpus,
    annotations: Texts = (),
    *,
    title: str = "",
) -> Table:
    """Make the table; with annotations, also of how their words match the pieces."""
    facts = prepared.facts
    splits = [facts["splits"]["train"], facts["splits"]["valid"]]
    rows: list[list[Value]] = [
        ["lines", *(split["lines"] for split in splits)],
        ["kept", *(split["rows"] for split in splits)],
    ]
    for reason in splits[0]["reasons"]:
        dropped = [split["reasons"].get(reason, 0) for split in splits]
        if reason != "kept" and any(dropped):
            rows.append([f"dropped: {reason}", *dropped])
    rows.append(
        [
            f"truncated to {facts['filters']['max_pieces']} pieces",
            *(split["cut"] for split in splits),
        ]
    )
    for number, side in enumerate(SIDES):
        words, pieces, unknown = (
            [split[key][number] for split in splits] for key in ("words", "pieces", "unknown")
        )
        name = f"{side} ({facts[side]})"
        rows.append(_quotients(f"{name}: pieces per word", pieces, words))
        rows.append(_quotients(f"{name}: unknown pieces", unknown, pieces, ".3%"))
        rows.append([f"{name}: vocabulary, in pieces", facts["vocabulary_sizes"][side], None])
    for annotation in annotations:
        trees = prepared.annotations()[annotation]
        words, pieces, merged = (
            [trees["counts"]["train"][key], trees["counts"]["valid"][key]]
            for key in ("words", "pieces", "merged")
        )
        name = f"{trees['side']} trees"
        rows.append(_quotients(f"{name}: pieces per word of the tree", pieces, words))
        rows.append(_quotients(f"{name}: words without a separate piece", merged, words, ".3%"))
    return Table(
        title=title,
        columns=[text_column(""), count_column("train"), count_column("valid")],
        rows=rows,
    )


def _quotients(
    title: str, numbers: Sequence[int], of: Sequence[int], form: str = ".2f"
) -> list[Value]:
    cells: list[Value] = [title]
    for number, total in zip(numbers, of, strict=True):
        cells.append(Written(number / total, f"{number / total:{form}}") if total else None)
    return cells
