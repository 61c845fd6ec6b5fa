"""All numbers of an analysis of attention as plain values."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from synmt.analysis.attention.maps import AttentionMap
from synmt.analysis.attention.table import AttentionReport, HeadRow, RelationRow
from synmt.evaluation.bootstrap import SAMPLES, SEED


def as_json(report: AttentionReport, shown: AttentionMap) -> dict[str, Any]:
    """Write a report and the map of its sentence; shares are from 0 to 1, and what is missing is None."""
    about, best = report.about, report.best
    return {
        "system": about.system,
        "test": about.test,
        "attention": about.place,
        "of": about.text,
        "parser": about.parser or None,
        "sentences": report.sentences,
        "left_out": {"too_long": report.too_long, "empty": report.empty},
        "pieces": report.pieces,
        "words": report.words,
        "parents_in_sight": report.visible,
        "intervals": {"share": 0.95, "resamples": SAMPLES, "seed": SEED},
        "best": None if best is None else report.rows[best].head.name,
        "heads": [_row_as_json(row) for row in report.rows],
        "baselines": [asdict(one) for one in report.baselines],
        "relations": [_relation_as_json(row, report) for row in report.relations],
        "map": _map_as_json(shown),
    }


def _row_as_json(row: HeadRow) -> dict[str, Any]:
    return {
        "name": row.head.name,
        "layer": row.head.layer or None,
        "head": row.head.number or None,
        "variant": row.head.variant or None,
        "entropy": {"bits": row.bits, "share_of_the_largest": row.share},
        "weight_on_no_word": row.elsewhere,
        "parent": asdict(row.parent) if row.parent else None,
        "weight_on_the_parent": row.weight,
        "usual_choice": {"offset": row.usual[0], "share": row.usual[1]} if row.usual else None,
    }


def _relation_as_json(row: RelationRow, report: AttentionReport) -> dict[str, Any]:
    names = [one.head.name for one in report.rows]
    return {
        "relation": row.relation,
        "words": row.words,
        "best_offset": {"offset": row.offset, "parent": row.by_offset},
        "best_head": names[row.best],
        "heads": dict(zip(names, row.heads, strict=True)),
    }


def _map_as_json(shown: AttentionMap) -> dict[str, Any]:
    return {
        "what": shown.what,
        "of": shown.text,
        "sentence": shown.sentence,
        "rows": shown.rows,
        "columns": shown.columns,
        "heads": {head.name: panel.round(6).tolist() for head, panel in shown.panels.items()},
    }
