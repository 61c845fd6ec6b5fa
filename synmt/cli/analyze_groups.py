"""`synmt analyze --by-length` and `--by-label`: where one system beats another, as tables and plots."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import compress
from pathlib import Path
from typing import TYPE_CHECKING

from synmt.cli import console
from synmt.cli.analyze_inputs import read_test
from synmt.cli.finding import Finding
from synmt.errors import UsageError

if TYPE_CHECKING:
    from synmt.analysis.groups import Evidence, Grouping, Table
    from synmt.metrics import Metric, MetricOptions
    from synmt.outputs import Outputs

TOO_MANY = 50
"""A label with more values than this is no label but a name for each sentence, unless it is asked for."""


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
) -> Finding:
    """Score every group of test sentences, by length or by label, and compare with a baseline."""
    from synmt.cli.grouped_tables import as_values, print_tables
    from synmt.metrics import make_metric

    _check_labels(by_label, labels, label, where)
    if plot:
        from synmt.plots import check_plot

        check_plot(plot)
    outputs = _read_outputs(run, test, hypotheses, references, source)
    options = _scoring(outputs, tokenize, lowercase)
    chosen = make_metric(metric, options)
    labelled = _read_labels(outputs, labels) if by_label or where else {}
    read = _Sentences(outputs, _read_baseline(outputs, baseline), labelled, tuple(where or ()))
    about = _only(read) if where else read
    groupings = [_length_grouping(about.outputs, buckets, unit)] if by_length else []
    groupings += _label_groupings(about.labels, label) if by_label else []
    if plot:
        _check_one(groupings, plot)
    tables = _tabulate(groupings, chosen, about, options.lowercase)
    if plot:
        _draw(tables[0], plot, about)
    shown = (tables, chosen, about.outputs, about.other, about.where)
    return Finding(about.outputs.system, as_values(*shown), lambda: print_tables(*shown), list)


@dataclass(frozen=True)
class _Sentences:
    """What the tables are about.

    other: the baseline, for the same sentences.
    labels: the columns by their names, a value for each sentence; empty where none are needed.
    where: the conditions that the sentences meet.
    """

    outputs: Outputs
    other: Outputs | None
    labels: dict[str, list[str]]
    where: tuple[str, ...]


def _only(read: _Sentences) -> _Sentences:
    """Leave out the sentences that do not meet the conditions."""
    from synmt.analysis.groups import choose_sentences

    chosen = choose_sentences(read.labels, read.where)

    def keep(lines: list[str]) -> list[str]:
        return list(compress(lines, chosen))

    def part(of: Outputs) -> Outputs:
        return replace(
            of, source=keep(of.source), reference=keep(of.reference), hypothesis=keep(of.hypothesis), labels=None
        )

    labels = {name: keep(values) for name, values in read.labels.items()}
    return _Sentences(part(read.outputs), part(read.other) if read.other else None, labels, read.where)


def _check_labels(by_label: bool, labels: Path | None, label: list[str] | None, where: list[str] | None) -> None:
    if not by_label and (label or (labels and not where)):
        raise UsageError("labels were given, but not asked for", do="Add `--by-label`")


def _read_outputs(
    run: Path | None, test: str | None, hypotheses: Path | None, references: Path | None, source: Path | None
) -> Outputs:
    from synmt.outputs import from_files

    if hypotheses is None:
        if references or source:
            raise UsageError("references and source belong to translations", do="Give them as `--hypotheses`")
        return read_test(run, test)
    if run or test:
        raise UsageError("a run and `--hypotheses` exclude each other", do="Give one of them")
    if references is None:
        raise UsageError("translations need their references", do="Give them as `--references`")
    return from_files(hypotheses, references, source)


def _scoring(outputs: Outputs, tokenize: str | None, lowercase: bool | None) -> MetricOptions:
    """Take the options given, and the run's own for the others."""
    own = outputs.scoring
    return replace(
        own,
        tokenize=own.tokenize if tokenize is None else tokenize,
        lowercase=own.lowercase if lowercase is None else lowercase,
    )


def _read_baseline(outputs: Outputs, baseline: Path | None) -> Outputs | None:
    from synmt.outputs import baseline_of

    return baseline_of(outputs, baseline) if baseline else None


def _length_grouping(outputs: Outputs, buckets: str | None, unit: str) -> Grouping:
    from synmt.analysis import groups
    from synmt.errors import did_you_mean

    edges = groups.parse_edges(buckets or "10,20,30,40,50")
    if unit not in groups.UNITS:
        raise UsageError(
            f"there is no unit '{unit}'",
            allowed=f"Units: {', '.join(groups.UNITS)}",
            do=did_you_mean(unit, groups.UNITS),
        )
    if not outputs.source:
        raise UsageError("lengths are those of the source, which was not given", do="Give it as `--source`")
    return groups.by_length(outputs.source, edges=edges, unit=unit)


def _read_labels(outputs: Outputs, labels: Path | None) -> dict[str, list[str]]:
    from synmt.analysis.groups import read_labels

    path = labels or outputs.labels
    if path is None:
        raise UsageError(
            f"there are no labels with {outputs.test or outputs.system}",
            do="Give a file: `synmt analyze LABELS.tsv …`",
        )
    return read_labels(path, len(outputs.reference))


def _label_groupings(columns: dict[str, list[str]], wanted: list[str] | None) -> list[Grouping]:
    from synmt.analysis import groups

    if wanted:
        columns = groups.choose_labels(columns, wanted)
    groupings = [groups.by_label(name, values) for name, values in columns.items()]
    few = [grouping for grouping in groupings if len(grouping.names) <= TOO_MANY or wanted]
    for grouping in groupings:
        if grouping not in few:
            values = f"{len(grouping.names):,} values"
            console.remark(f"label '{grouping.by}' has {values} and is left out; see it with --label {grouping.by}")
    if not few:
        raise UsageError("no label has few enough values to show all", do="Choose with `--label`")
    return few


def _tabulate(groupings: list[Grouping], metric: Metric, about: _Sentences, lowercase: bool) -> list[Table]:
    from synmt.analysis.groups import collect, tabulate

    def evidence(of: Outputs) -> Evidence:
        return collect(metric, of.hypothesis, of.reference, lowercase=lowercase)

    system, baseline = evidence(about.outputs), evidence(about.other) if about.other else None
    return [tabulate(grouping, system, baseline) for grouping in groupings]


def _check_one(groupings: list[Grouping], plot: Path) -> None:
    if len(groupings) != 1:
        raise UsageError(
            "a plot shows one table",
            where=str(plot),
            allowed=f"Tables asked for: {', '.join(grouping.by for grouping in groupings)}",
            do="Ask for one, by `--by-length` alone or `--by-label --label NAME`",
        )


def _draw(table: Table, plot: Path, about: _Sentences) -> None:
    from synmt.analysis.groups_plot import save_groups_plot
    from synmt.cli.grouped_tables import restriction

    # a figure is seen without the table's title
    rest = restriction(about.where)
    named = replace(table, unit=table.unit + rest) if table.unit else replace(table, by=table.by + rest)
    baseline = about.other.system if about.other else None
    with console.written("plot", plot):
        save_groups_plot(named, plot, system=about.outputs.system, baseline=baseline)
