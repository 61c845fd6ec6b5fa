"""Statistics of attention heads as plain values for JSON."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from synmt.analysis.attention.maps import AttentionMap
from synmt.analysis.attention.summary import AttentionSummary, HeadRow, RelationRow
from synmt.evaluation.bootstrap import SAMPLES, SEED


def summary_as_json(summary: AttentionSummary, shown: AttentionMap) -> dict[str, Any]:
    """Convert a summary and the map of one sentence; shares are from 0 to 1, and missing values None."""
    context, best = summary.context, summary.best
    return {
        "system": context.system,
        "test": context.test,
        "attention": context.kind,
        "of": context.text,
        "parser": context.parser or None,
        "sentences": summary.sentences,
        "left_out": {"too_long": summary.too_long, "empty": summary.empty},
        "pieces": summary.pieces,
        "words": summary.words,
        "parents_in_sight": summary.visible,
        "intervals": {"share": 0.95, "resamples": SAMPLES, "seed": SEED},
        "best": None if best is None else summary.rows[best].head.name,
        "heads": [_row_as_json(row) for row in summary.rows],
        "baselines": [asdict(one) for one in summary.baselines],
        "relations": [_relation_as_json(row, summary) for row in summary.relations],
        "map": _map_as_json(shown),
    }


def _row_as_json(row: HeadRow) -> dict[str, Any]:
    usual = row.usual_offset
    return {
        "name": row.head.name,
        "layer": row.head.layer or None,
        "head": row.head.number or None,
        "variant": row.head.variant or None,
        "entropy": {"bits": row.bits, "share_of_the_largest": row.relative_bits},
        "weight_on_no_word": row.no_word,
        "parent": asdict(row.parent) if row.parent else None,
        "weight_on_the_parent": row.parent_weight,
        "usual_choice": {"offset": usual[0], "share": usual[1]} if usual else None,
    }


def _relation_as_json(row: RelationRow, summary: AttentionSummary) -> dict[str, Any]:
    names = [one.head.name for one in summary.rows]
    return {
        "relation": row.relation,
        "words": row.words,
        "best_offset": {"offset": row.offset, "parent": row.by_offset},
        "best_head": names[row.best],
        "heads": dict(zip(names, row.heads, strict=True)),
    }


def _map_as_json(shown: AttentionMap) -> dict[str, Any]:
    return {
        "what": shown.content,
        "of": shown.text,
        "sentence": shown.sentence,
        "rows": shown.rows,
        "columns": shown.columns,
        "heads": {head.name: panel.round(6).tolist() for head, panel in shown.panels.items()},
    }
