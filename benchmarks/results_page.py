"""Write the tables of results/ into the pages: docs/results*.md and the pages of the systems, with
the figure.

    python benchmarks/results_page.py

The same results give the same bytes. Text outside of the marked parts of the pages stays as it is,
and is written by hand; tests/benchmarks/test_results.py holds its numbers against the tables. In
another folder than that of synmt, only docs/results*.md and the figure are made.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from results_compared import Results, plans
from results_figure import draw
from results_stored import ending_errors
from results_tables import (
    control_tables,
    group_tables,
    label_tables,
    main_table,
    pair_table,
    search_table,
    short_table,
)

from synmt.errors import SynmtError
from synmt.reporting.formats import render
from synmt.reporting.values import Part, Report, Table, TextBlock

ROOT = Path(__file__).resolve().parent.parent
BEGIN, END = (
    "<!-- begin: benchmarks/results_page.py -->",
    "<!-- end: benchmarks/results_page.py -->",
)


def main() -> None:
    """Write all pages."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--root", type=Path, default=ROOT, help="folder with results/; default: that of synmt"
    )
    root = parser.parse_args().root
    with ending_errors():
        found = [Results(plan) for plan in plans(root / "results")]
        if not found:
            raise SynmtError(
                "there are no results", where=str(root / "results"), do="Run `make results`"
            )
        (root / "docs").mkdir(exist_ok=True)
        replace(root / "docs/results.md", "Results", comparison(found))
        replace(root / "docs/results-by-group.md", "Results by group", groups(found))
        for page, parts in system_pages(root, found).items():
            replace(page, "", parts)
        draw(found, root / "docs/does-syntax-help.png")


def comparison(found: Sequence[Results]) -> Iterator[Part]:
    """Yield all tables of the page of results."""
    for results in found:
        title = results.plan.title
        yield from _titled(f"## {title}: all systems", main_table(results))
        if results.other_trees:
            yield TextBlock(lines=[f"### {title}: the parser's trees against others"])
            for line, table in control_tables(results):
                yield from _titled(line, table)
        if (pairs := pair_table(results)).rows:
            yield from _titled(f"### {title}: further differences", pairs)
        if (search := search_table(results.plan)).rows:
            yield from _titled(f"### {title}: the search for a mixture", search)
            line = "The lowest validation loss, in nats per piece, with the first seed."
            yield TextBlock(lines=[line])


def groups(found: Sequence[Results]) -> Iterator[Part]:
    """Yield all tables of the page of groups."""
    for results in found:
        if results.plan.groups:
            yield TextBlock(lines=[f"## {results.plan.title}"])
            for line, table in (*group_tables(results), *label_tables(results)):
                yield from _titled(line, table)


def _titled(line: str, table: Table) -> tuple[Part, Part]:
    return TextBlock(lines=[line]), table


def system_pages(root: Path, found: Sequence[Results]) -> dict[Path, list[Part]]:
    """Choose the rows of each system's page that has a marked part: those of its systems, and their
    baselines; old tables become empty."""
    folder = root / "docs/systems"
    pages: dict[Path, list[Part]] = {
        page: [] for page in sorted(folder.glob("*.md")) if BEGIN in _text(page)
    }
    for results in found:
        of_page: dict[str, set[str]] = {}
        for system in results.runs:
            for name in page_names(results, system):
                of_page.setdefault(name, set()).add(system)
        for name, systems in of_page.items():
            while not (bases := {results.systems.baseline(one) for one in systems}) <= systems:
                systems |= bases
            page = folder / f"{name}.md"
            if page in pages:
                shown = [line for line in results.lines if line.system in systems]
                line = f"{results.plan.title} ([the whole table](../results.md)):"
                pages[page].extend(_titled(line, short_table(shown)))
    return pages


def page_names(results: Results, system: str) -> Iterator[str]:
    """Yield the names of a system's pages: of its variants, of its task, of its controls."""
    recipe = results.systems.recipes[system]
    tasks, parser = recipe.tasks, recipe.parser
    lstm, variants = recipe.model.architecture == "lstm", recipe.syntax.variants
    yield from (variant.name.replace("_", "-") for variant in variants)
    applies = {
        "mixed": tasks.mixed != "none" or tasks.mixed_only,
        "multi-task": tasks.parsing != "none",
        "controls": parser.control != "none" or parser.rewire,
        "lstm": lstm,
        "transformer": not lstm and not variants,
    }
    yield from (name for name, holds in applies.items() if holds)


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def replace(path: Path, title: str, parts: Iterable[Part]) -> None:
    """Replace the marked part of a page.

    A page that is not there begins with a title.
    """
    text = _text(path) if path.exists() else f"# {title}\n\n{BEGIN}{END}\n"
    before, _, rest = text.partition(BEGIN)
    report = Report(title="", parts=list(parts))
    block = render({"": report}, "markdown").strip()
    path.write_text(
        before + "\n\n".join(filter(None, [BEGIN, block, END])) + rest.partition(END)[2],
        encoding="utf-8",
    )


if __name__ == "__main__":
    main()
