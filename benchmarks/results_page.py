"""Write the tables of results/ into docs/results.md and the pages of the systems, with the figure.

    python benchmarks/results_page.py

The same results give the same bytes. Text outside of the marked parts of the pages is written by
hand; tests/benchmarks/test_results.py holds its numbers against the tables. In another folder than
that of synmt (--root), only docs/results.md and the figure are made.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import results_tables as tables
from measuring import arguments
from results_compared import Results
from results_figure import draw
from results_plan import Plan
from results_stored import ending_errors

from synmt.errors import SynmtError
from synmt.reporting.formats import render
from synmt.reporting.values import Part, Report, TextBlock

ROOT = Path(__file__).resolve().parent.parent
BEGIN = "<!-- begin: benchmarks/results_page.py -->"
END = "<!-- end: benchmarks/results_page.py -->"


def main() -> None:
    """Write all pages."""
    root = Path(arguments(__doc__, root=str(ROOT)).root)
    with ending_errors():
        plans = [Plan.load(path) for path in sorted(root.glob("results/*.yaml"))]
        found = [results for plan in plans if plan.shown and (results := Results(plan)).runs]
        if not found:
            raise SynmtError("there are no results", where=str(root), do="Run `make results`")
        page = root / "docs/results.md"
        if not page.exists():
            page.parent.mkdir(exist_ok=True)
            page.write_text(f"# Results\n\n{BEGIN}{END}\n", encoding="utf-8")
        replace(page, list(comparison(found)))
        for page in sorted(root.glob("docs/systems/*.md")):
            replace(page, list(rows_of_page(found, page.stem)))
        draw(found, root / "docs/does-syntax-help.png")


def comparison(found: Sequence[Results]) -> Iterator[Part]:
    """Yield all tables of the page of results."""
    for results in found:
        shown = {
            "all systems": tables.main_table(results),
            "BLEU by split": tables.split_table(results),
            **tables.further_tables(results),
            "validation losses": tables.validation_table(results),
        }
        yield TextBlock(lines=[f"## {results.plan.title}"])
        for heading, table in shown.items():
            if table.rows:
                yield TextBlock(lines=[f"### {results.plan.title}: {heading}"])
                yield table


def rows_of_page(found: Sequence[Results], page: str) -> Iterator[Part]:
    """Yield the rows of a system's page: those of its systems, and of their baselines."""
    for results in found:
        systems = {system for system in results.runs if page in page_names(results.plan, system)}
        # a baseline may have one itself
        for _ in range(2):
            systems |= {results.plan.baseline(system) for system in systems}
        if systems:
            yield TextBlock(lines=[f"{results.plan.title} ([the whole table](../results.md)):"])
            yield tables.short_table(results, systems)


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
