"""Write what results/ holds: docs/results.csv, the figures, and tables on the pages of the systems.

    python benchmarks/results_page.py

The same results give the same bytes. All other text is written by hand, docs/results.md too;
tests/benchmarks/test_results.py holds its numbers against results.csv. In another folder than that
of synmt (--root), only the table and the figures are made.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from pathlib import Path

from measuring import Row, arguments
from results_compared import Results
from results_figures import draw_all
from results_plan import Plan
from results_rows import rows, short_table
from results_stored import ending_errors

from synmt.errors import SynmtError
from synmt.reporting.formats import render
from synmt.reporting.values import Part, Report, TextBlock

ROOT = Path(__file__).resolve().parent.parent
BEGIN = "<!-- begin: benchmarks/results_page.py -->"
END = "<!-- end: benchmarks/results_page.py -->"


def main() -> None:
    """Write the table, the figures and the pages."""
    root = Path(arguments(__doc__, root=str(ROOT)).root)
    with ending_errors():
        plans = [Plan.load(path) for path in sorted(root.glob("results/*.yaml"))]
        found = [results for plan in plans if plan.shown and (results := Results(plan)).runs]
        if not found:
            raise SynmtError("there are no results", where=str(root), do="Run `make results`")
        (root / "docs").mkdir(exist_ok=True)
        write_rows(root / "docs/results.csv", [row for results in found for row in rows(results)])
        draw_all(found, root / "docs")
        for page in sorted(root.glob("docs/systems/*.md")):
            replace(page, list(rows_of_page(found, page.stem)))


def write_rows(path: Path, found: Sequence[Row]) -> None:
    """Write rows as comma-separated values, numbers with up to six decimals."""
    with path.open("w", encoding="utf-8", newline="") as stream:
        titles = list(dict.fromkeys(title for row in found for title in row))
        writer = csv.DictWriter(stream, titles, lineterminator="\n")
        writer.writeheader()
        for row in found:
            writer.writerow(
                {
                    title: round(value, 6) if isinstance(value, float) else value
                    for title, value in row.items()
                }
            )


def rows_of_page(found: Sequence[Results], page: str) -> Iterator[Part]:
    """Yield the rows of a system's page: those of its systems, and of their baselines."""
    for results in found:
        systems = {system for system in results.runs if page in page_names(results.plan, system)}
        # a baseline may have one itself
        for _ in range(2):
            systems |= {results.plan.baseline(system) for system in systems}
        if systems:
            yield TextBlock(lines=[f"{results.plan.title} ([all systems](../results.md)):"])
            yield short_table(results, systems)


def page_names(plan: Plan, system: str) -> set[str]:
    """Name a system's pages: of its variants, of its architecture, of its tasks, of its trees."""
    recipe = plan.recipes[system]
    names = {variant.name.replace("_", "-") for variant in recipe.syntax.variants}
    holds = {
        "mixed": recipe.tasks.mixed != "none" or recipe.tasks.mixed_only,
        "multi-task": recipe.tasks.parsing != "none",
        "controls": recipe.parser.control != "none" or recipe.parser.rewire > 0,
        "lstm": recipe.model.architecture == "lstm",
        "transformer": recipe.model.architecture != "lstm" and not names,
    }
    return names | {name for name, applies in holds.items() if applies}


def replace(path: Path, parts: Sequence[Part]) -> None:
    """Replace the marked part of a page, if it has one."""
    text = path.read_text(encoding="utf-8")
    before, begin, rest = text.partition(BEGIN)
    if begin:
        block = render({"": Report(title="", parts=parts)}, "markdown").strip()
        marked = "\n\n".join(filter(None, [BEGIN, block, END]))
        path.write_text(before + marked + rest.partition(END)[2], encoding="utf-8")


if __name__ == "__main__":
    main()
