"""`synmt analyze --by-length`, `--by-depth`, … `--by-label`: where one system beats another, as tables and plots."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, cast

from synmt.analysis.inputs import check_name, save_plot
from synmt.analysis.scoring import scoring
from synmt.cli import console
from synmt.cli.finding import AnalysisReport
from synmt.cli.grouped_inputs import (
    Sentences,
    choose,
    evidence,
    lengths,
    read_baseline,
    read_system,
    trees,
)
from synmt.errors import UsageError

if TYPE_CHECKING:
    from synmt.analysis.groups.buckets import Edges
    from synmt.analysis.groups.scores import Grouping, Table
    from synmt.arrays import Side
    from synmt.cli.grouped_tables import Shown

TOO_MANY = 50
"""A label with more values than this is no label but a name for each sentence, unless it is asked for."""

_SHOWN = 8
"""So many of the relations left out are named."""


@dataclass(frozen=True)
class _Asked:
    """What the groups are to be made by, as it was typed."""

    length: bool
    depth: bool
    distance: bool
    relation: bool
    label: bool
    labels: tuple[str, ...]
    buckets: str | None
    unit: str
    side: Side
    parser: str | None
    parses: Path | None

    @property
    def trees(self) -> bool:
        """Tell whether trees are needed."""
        return self.depth or self.distance or self.relation


def analyze_groups(
    *,
    labels: Path | None,
    by_length: bool,
    by_depth: bool,
    by_distance: bool,
    by_relation: bool,
    by_label: bool,
    label: list[str] | None,
    where: list[str] | None,
    run: Path | None,
    test: str | None,
    baseline: Path | None,
    hypotheses: Path | None,
    references: Path | None,
    source: Path | None,
    metric: str,
    tokenize: str | None,
    lowercase: bool | None,
    buckets: str | None,
    unit: str,
    side: str,
    parser: str | None,
    parses: Path | None,
    plot: Path | None,
) -> AnalysisReport:
    """Score every group of test sentences, by length, tree or label, and compare with a baseline."""
    from synmt.analysis.groups.scores import tabulate
    from synmt.cli.grouped_tables import Shown
    from synmt.evaluation.metrics import make_metric

    names = tuple(label or ())
    checked = cast("Side", side)
    asked = _Asked(
        by_length, by_depth, by_distance, by_relation, by_label, names, buckets, unit, checked, parser, parses
    )
    _check(asked, labels, where, plot)
    system = read_system(run, test, hypotheses, references, source)
    options = scoring(system.outputs, tokenize, lowercase)
    chosen = make_metric(metric, options)
    about = choose(system, read_baseline(system, baseline), labels, where or (), by_label=by_label)
    groupings, whose = _groupings(asked, about, plot)
    scored = evidence(about, chosen, lowercase=options.lowercase)
    tables = [tabulate(grouping, *scored) for grouping in groupings]
    if plot:
        _draw(tables, plot, about)
    other = about.baseline.outputs.system if about.baseline else None
    shown = Shown(tables, chosen, system.outputs.system, other, system.outputs.test, about.where, whose)
    return _finding(shown, about)


def _finding(shown: Shown, about: Sentences) -> AnalysisReport:
    from synmt.cli.grouped_tables import as_sections, as_values, print_tables

    runs = [one.run for one in (about.system, about.baseline) if one and one.run]
    return AnalysisReport(
        shown.system,
        lambda: as_values(shown),
        lambda: print_tables(shown),
        lambda: as_sections(shown),
        tuple(run.folder for run in runs),
    )


def _check(asked: _Asked, labels: Path | None, where: list[str] | None, plot: Path | None) -> None:
    from synmt.analysis.groups.groupings import UNITS
    from synmt.arrays import SIDES

    if not asked.label and (asked.labels or (labels and not where)):
        raise UsageError("labels were given, but not asked for", do="Add `--by-label`")
    check_name(asked.unit, UNITS, "unit")
    check_name(asked.side, SIDES, "side")
    _check_buckets(asked)
    if plot:
        from synmt.analysis.plots import check_plot

        check_plot(plot)


def _check_buckets(asked: _Asked) -> None:
    """Refuse buckets that would be nobody's, or of several things at once."""
    from synmt.analysis.groups.buckets import parse_buckets

    if asked.buckets is None:
        return
    edges = parse_buckets(asked.buckets)
    measured = [f"--by-{name}" for name in ("length", "depth", "distance") if getattr(asked, name)]
    if not measured or (_of_paper(asked) and not asked.length):
        raise UsageError(
            "these would be buckets of lengths, which were not asked for"
            if _of_paper(asked)
            else "nothing was asked for that has buckets",
            where="--buckets",
            do="Add `--by-length`" if _of_paper(asked) else "Add `--by-length`, `--by-depth` or `--by-distance`",
        )
    if len(measured) > 1 and not _of_paper(asked):
        raise UsageError(
            f"the same numbers would be buckets of {' and '.join(measured)}",
            where="--buckets",
            do="Ask for one of them at a time",
        )
    if asked.length and (edges[0] < 1 or any(edge != int(edge) for edge in edges)):
        raise UsageError("lengths are whole numbers from 1 on", where="--buckets", do="Write for example `10,20,30`")


def _of_paper(asked: _Asked) -> bool:
    from synmt.analysis.groups.buckets import PAPERS

    return asked.buckets is not None and asked.buckets.strip().lower() in PAPERS


def _groupings(asked: _Asked, about: Sentences, plot: Path | None) -> tuple[list[Grouping], str]:
    """Make all groupings, those first that need no parser; and say whose trees they have, if any."""
    from synmt.analysis.groups.groupings import by_length, without_empty_end

    labelled = _by_labels(asked, about) if asked.label else []
    if plot:
        _check_plot(asked, labelled, plot)
    found = []
    if asked.length:
        counts = lengths(about, asked.side, asked.unit)
        grouping = by_length(counts, side=asked.side, unit=asked.unit, edges=_edges(asked, length=True))
        # buckets that were asked for by name are shown, even empty ones
        found.append(grouping if asked.buckets else without_empty_end(grouping))
    whose = ""
    if asked.trees:
        parsed, whose = _by_trees(asked, about)
        found += parsed
    return found + labelled, whose


def _edges(asked: _Asked, *, length: bool = False) -> Edges | None:
    """Find the buckets that were given for lengths, or for a measure of trees; None for its own."""
    from synmt.analysis.groups.buckets import parse_buckets

    return None if asked.buckets is None or (_of_paper(asked) and not length) else parse_buckets(asked.buckets)


def _by_trees(asked: _Asked, about: Sentences) -> tuple[list[Grouping], str]:
    from synmt.analysis.groups.groupings import by_depth, by_distance, by_relation, without_rare
    from synmt.analysis.groups.scores import FEW

    parsed, whose = trees(about, asked.side, asked.parser, asked.parses)
    found = []
    if asked.depth:
        found.append(by_depth(parsed, side=asked.side, edges=_edges(asked)))
    if asked.distance:
        found += by_distance(parsed, side=asked.side, edges=_edges(asked))
    if asked.relation:
        grouping, rare = without_rare(by_relation(parsed, side=asked.side))
        found.append(grouping)
        if rare:
            some = ", ".join(rare[:_SHOWN] + ["…"] * (len(rare) > _SHOWN))
            console.remark(f"relations in fewer than {FEW} sentences are left out: {some}")
    return found, whose


def _by_labels(asked: _Asked, about: Sentences) -> list[Grouping]:
    from synmt.analysis.groups.groupings import by_label, count_units
    from synmt.analysis.groups.labels import choose_labels

    columns = choose_labels(about.labels, asked.labels) if asked.labels else about.labels
    outputs = about.system.outputs
    text = outputs.reference if asked.side == "target" else outputs.source or outputs.reference
    sizes = count_units(about.only(text), "words")
    groupings = [by_label(name, values, sizes) for name, values in columns.items()]
    few = [grouping for grouping in groupings if len(grouping.names) <= TOO_MANY or asked.labels]
    for grouping in groupings:
        if grouping not in few:
            values = f"{len(grouping.names):,} values"
            console.remark(f"label '{grouping.by}' has {values} and is left out; see it with --label {grouping.by}")
    if not few:
        raise UsageError("no label has few enough values to show all", do="Choose with `--label`")
    return few


def _check_plot(asked: _Asked, labelled: list[Grouping], plot: Path) -> None:
    from synmt.analysis.groups.plot import check_number

    names = {"length": ["length"], "depth": ["depth"], "distance": ["mean distance", "longest distance"]}
    names["relation"] = ["relation"]
    wanted = [one for name, tables in names.items() if getattr(asked, name) for one in tables]
    check_number([*wanted, *(grouping.by for grouping in labelled)], plot)


def _draw(tables: list[Table], plot: Path, about: Sentences) -> None:
    from synmt.analysis.groups.plot import save_groups_plot
    from synmt.cli.grouped_tables import restriction

    # a figure is seen without the table's title
    rest = restriction(about.where)
    named = [replace(table, grouping=_called(table.grouping, rest)) for table in tables]
    baseline = about.baseline.outputs.system if about.baseline else None
    save_plot(plot, lambda: save_groups_plot(named, plot, system=about.system.outputs.system, baseline=baseline))


def _called(grouping: Grouping, rest: str) -> Grouping:
    return replace(grouping, unit=grouping.unit + rest) if grouping.unit else replace(grouping, by=grouping.by + rest)
