"""Write what results/ says into the pages: docs/results*.md, the README with its figure, and the pages of the systems.

    python benchmarks/results_page.py

The same results give the same bytes. Text outside of the marked parts of the pages stays as it is. In another folder
than that of synmt, only docs/results*.md and the figure are made.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator
from pathlib import Path

from results_answer import in_detail
from results_figure import draw
from results_files import ending_errors, read_result
from results_found import Results, plans
from results_notes import notes
from results_recipes import fingerprint
from results_short import Found, in_short
from results_statistics import Line
from results_tables import (
    contrast_tables,
    control_tables,
    control_title,
    difference_cells,
    group_tables,
    main_table,
    markdown,
    search_table,
)

from synmt.errors import SynmtError

ROOT = Path(__file__).resolve().parent.parent
BEGIN, END = "<!-- begin: benchmarks/results_page.py -->", "<!-- end: benchmarks/results_page.py -->"
MEASURED = "## What we measured\n"
"""The heading of a section that the page of every system has."""


def main() -> None:
    """Write all pages."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", type=Path, default=ROOT, help="folder with results/; default: that of synmt")
    root = parser.parse_args().root
    with ending_errors():
        found = _found(root)
        (root / "docs").mkdir(exist_ok=True)
        _replace(_page(root / "docs/results.md", "Results"), _comparison(found))
        _replace(_page(root / "docs/results-by-group.md", "Results by group"), _groups(found))
        readme = root / "README.md"
        if readme.exists() and BEGIN in readme.read_text(encoding="utf-8"):
            _replace(readme, in_short(found))
        for page, rows in _pages(root, found).items():
            _replace(page, rows)
        draw(found, root / "docs/does-syntax-help.png")


def _found(root: Path) -> Found:
    """Compare the systems of all plans that have results; raises SynmtError for results of another recipe."""
    everything = list(map(Results, plans(root / "results")))
    if not everything:
        raise SynmtError("there are no results", where=str(root / "results"), do="Run `make results`")
    for results in everything:
        if others := _of_other_recipes(results):
            raise SynmtError(
                f"has results of other recipes than {results.plan.path.name} has now, of {', '.join(others)}",
                where=str(results.plan.folder),
                do="Remove them, and run `make results`",
            )
    return [(results, results.of_plan) for results in everything]


def _of_other_recipes(results: Results) -> list[str]:
    """Name the systems whose results belong to another recipe than the plan has now."""
    plan = results.plan
    tried = {one: [read_result(path)] for one in plan.search if (path := plan.result(one, plan.seeds[0])).exists()}
    return [
        system
        for system, runs in {**tried, **results.runs}.items()
        if {run["fingerprint"] for run in runs} != {fingerprint(plan.recipe(system, {}))}
    ]


def _page(path: Path, title: str) -> Path:
    """Begin a page that is not there."""
    if not path.exists():
        path.write_text(f"# {title}\n\n{BEGIN}{END}\n", encoding="utf-8")
    return path


def _comparison(found: Found) -> Iterator[str]:
    yield from in_short(found)
    for number, (results, lines) in enumerate(found):
        yield from ("", f"## {results.plan.title}: all systems", "")
        yield from main_table(results, lines, in_full=number == 0)
        for note in notes(results, lines):
            yield from ("", note)
        if said := list(in_detail(results, lines)):
            yield from ("", f"### {results.plan.title}: the answer in detail", "", *said)
        if results.other_trees:
            yield from ("", f"### {control_title(results)}", "", *control_tables(results))
        if results.plan.tried():
            yield from ("", f"### {results.plan.title}: the search for a mixture", "", *search_table(results.plan))
        if results.plan.groups:
            labels = ", ".join(f"{grouping.group.by}{grouping.of_test}" for grouping in results.groupings)
            yield from ("", f"[Scores by {labels}](results-by-group.md).")


def _groups(found: Found) -> Iterator[str]:
    for results, _ in found:
        if results.plan.groups:
            yield from ("", f"## {results.plan.title}", *group_tables(results), *contrast_tables(results))


def _pages(root: Path, found: Found) -> dict[Path, list[str]]:
    """Choose the rows of each system's page: those of its systems, and their baselines; old tables become empty."""
    written = sorted((root / "docs/systems").glob("*.md"))
    pages: dict[Path, list[str]] = {page: [] for page in written if BEGIN in page.read_text(encoding="utf-8")}
    for results, lines in found:
        of_page: dict[Path, list[Line]] = {}
        for line in lines:
            for page in _names(results, line.system):
                path = root / "docs/systems" / f"{page}.md"
                if path.exists():
                    of_page.setdefault(path, []).append(line)
        for path, chosen in of_page.items():
            systems = {line.system for line in chosen}
            while not (bases := {results.systems.baseline(one) for one in systems}) <= systems:
                systems |= bases
            shown = [line for line in lines if line.system in systems]
            rows = pages.setdefault(path, [])
            # the blank line before the first table is stripped
            rows += ["", f"{results.plan.title} ([the whole table](../results.md)):", ""]
            rows += markdown(*_short_table(shown))
    return pages


def _short_table(lines: Iterable[Line]) -> tuple[list[str], list[list[str]]]:
    rows = [
        [
            line.system,
            str(len(line.scores)),
            f"{line.mean:.2f}",
            *difference_cells(line.difference, unstable=line.unstable),
        ]
        for line in lines
    ]
    return ["system", "seeds", "BLEU", "difference", "95 % interval", "p (Holm)"], rows


def _names(results: Results, system: str) -> Iterator[str]:
    """Name the pages of a system: of its variants, of its task, of its controls."""
    recipe = results.systems.recipes[system]
    for variant in recipe.syntax.variants:
        yield variant.name.replace("_", "-")
    if recipe.tasks.mixed != "none" or recipe.tasks.mixed_only:
        yield "mixed"
    if recipe.tasks.parsing != "none":
        yield "multi-task"
    if recipe.parser.control != "none" or recipe.parser.rewire:
        yield "controls"
    if recipe.model.architecture == "lstm":
        yield "lstm"
    elif not recipe.syntax.variants:
        yield "transformer"


def _replace(path: Path, lines: Iterable[str]) -> None:
    """Replace the marked part of a page; the page of a system gets it at the end of its section of measurements."""
    text = path.read_text(encoding="utf-8")
    block = "\n\n".join(filter(None, [BEGIN, "\n".join(lines).strip(), END]))
    if BEGIN not in text:
        before, measured, rest = text.partition(MEASURED)
        section, following, others = rest.partition("\n## ")
        text = f"{before}{measured}{section.rstrip()}\n\n{BEGIN}{END}\n{following}{others}"
    before, _, rest = text.partition(BEGIN)
    path.write_text(before + block + rest.partition(END)[2], encoding="utf-8")


if __name__ == "__main__":
    main()
