"""How `synmt analyze` shows its tables: for people, or as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from synmt.cli import console

if TYPE_CHECKING:
    from synmt.analysis.groups import Row, Table
    from synmt.metrics import Metric
    from synmt.outputs import Outputs


def restriction(where: Sequence[str]) -> str:
    """Say which sentences a title is about; nothing where it is about all of them."""
    return f", where {' and '.join(where)}" if where else ""


def print_tables(
    tables: list[Table], metric: Metric, outputs: Outputs, other: Outputs | None, where: Sequence[str] = ()
) -> None:
    """Print tables for people, under a line that says whose they are and which sentences they are about."""
    against = f" against {other.system}" if other else ""
    test = f", test set {outputs.test}" if outputs.test else ""
    print(f"{outputs.system}{against}{test}{restriction(where)}")
    for table in tables:
        name = f"{table.by} ({table.unit})" if table.unit else table.by
        columns = ["sentences", "share", metric.title]
        columns += ["baseline", "difference"] if other else []
        if not table.unit:
            columns += ["exact match", "baseline", "difference"] if other else ["exact match"]
        rows = [_cells(row, exact=not table.unit, compared=other is not None) for row in (*table.rows, table.total)]
        print()
        console.table("", [name, *columns], rows, to_stdout=True)
    print(f"\n{metric.title}|{metric.signature}")
    if not metric.higher_is_better:
        print(f"{metric.title}: lower is better")


def as_values(
    tables: list[Table], metric: Metric, outputs: Outputs, other: Outputs | None, where: Sequence[str] = ()
) -> dict[str, Any]:
    """Write tables as plain values."""
    from synmt.analysis.groups import as_json

    return {
        "system": outputs.system,
        "baseline": other.system if other else None,
        "test": outputs.test or None,
        "where": list(where),
        "metric": metric.title,
        "signature": metric.signature,
        "tables": [as_json(table) for table in tables],
    }


def _cells(row: Row, *, exact: bool, compared: bool) -> list[str]:
    results = [row.system, row.baseline, row.difference][: 3 if compared else 1]
    cells = [row.group, f"{row.count:,}", f"{row.share:.1%}"]
    for position, result in enumerate(results):
        sign = "+" if position == 2 else ""
        cells.append(format(result.score, sign + ".2f") if result else "-")
    for position, result in enumerate(results if exact else []):
        sign = "+" if position == 2 else ""
        cells.append(format(result.accuracy, sign + ".1%") if result else "-")
    return cells
