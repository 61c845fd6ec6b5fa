"""Which sentences do systems translate most differently?"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, replace
from functools import cache, partial
from string import ascii_uppercase
from typing import TYPE_CHECKING, Any

import numpy as np

from synmt.analysis.compare.sentences import (
    ComparedSystems,
    bracketed,
    classify_all,
    rank_differences,
    ranking_metric,
)
from synmt.analysis.compare.words import WordDetails, find_words
from synmt.analysis.inputs import save_plot, scoring_options
from synmt.analysis.options import CompareOptions
from synmt.analysis.systems import read_translations
from synmt.errors import UsageError, counted, listed
from synmt.evaluation.comparison import score_outputs
from synmt.evaluation.metrics import make_metric
from synmt.evaluation.outputs import Outputs, the_test_set
from synmt.evaluation.systems import check_existence, matching
from synmt.reporting.figures import INK, ONE, check_plot, fit_text
from synmt.reporting.values import (
    Column,
    Figure,
    Report,
    Table,
    TextBlock,
    Written,
    count_column,
    text_column,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing


def analyze_compare(options: CompareOptions) -> Report:
    """Find the sentences that systems translate most differently from the first one."""
    if options.plot:
        check_plot(options.plot)
    outputs = _read_outputs(options)
    settings = scoring_options(outputs[0], options.tokenize, options.lowercase, options.metric)
    metrics = make_metric(options.metric, settings), ranking_metric(options.metric, settings)
    scores, ranks = ([score_outputs(one, each) for each in outputs] for one in metrics)
    words = [one.as_read() for one in outputs]
    # alignments are those of words: systems that tokenize the source in different ways are compared
    # without them
    same = all(one.source == words[0].source for one in words)
    compared = rank_differences(words if same else outputs, scores, ranks, top=options.top)
    runs = [one.run for one in outputs]
    draw = partial(draw_boxes, compared)
    if options.plot:
        save_plot(options.plot, draw)

    @cache  # parsing and aligning take long, and the tables need neither
    def details() -> WordDetails:
        return find_words(compared.sentences, runs, options.source, options.parser, raw=not same)

    def on_page() -> TextBlock:
        from synmt.analysis.compare.cards import make_cards

        return make_cards(compared, details())

    names, test = listed(one.name for one in compared.systems), the_test_set(compared.test)
    boxes = Figure(draw=draw, caption=f"{compared.ranking.title} of single sentences. {_BOXES}")
    return Report(
        title=f"{names}, sentence by sentence" + (f", on {test}" if compared.test else ""),
        parts=[
            systems_table(compared),
            boxes,
            *([sentences_table(compared, on_page)] if compared.sentences else []),
        ],
        notes=_notes(compared),
        facts=_facts(compared),
        late_facts=lambda: _late_facts(compared, details()),
        system=names,
        runs=tuple(dict.fromkeys(run for run in runs if run)),
    )


def systems_table(compared: ComparedSystems) -> Table:
    """Make a row for each system: score, difference from the first, and in how many sentences it is
    better."""
    several = (
        "; p corrected for the number of systems (Holm), the interval not"
        if len(compared.systems) > 2
        else ""
    )
    difference = f"from {compared.systems[0].name}, by paired bootstrap (Koehn, 2004){several}"
    columns = [
        text_column("system"),
        Column(title=compared.metric.title, name="score"),
        Column(title="difference", signed=True, about=difference),
        Column(title="95 % interval", signed=True, name="interval"),
        Column(title="p", kind="p", name="holm_p"),
        count_column(
            "better", name="wins", about=f"in how many sentences, by {compared.ranking.title}"
        ),
        count_column("equal", name="ties"),
        count_column("worse", name="losses"),
    ]
    rows = []
    for letter, one in zip(compared.letters, compared.systems, strict=True):
        found, name = one.difference, f"{letter}: {one.name}"
        against = (
            [found.difference, found.interval, one.holm_p, *one.counts] if found else [None] * 6
        )
        rows.append([name, one.score, *against])
    return Table(columns=columns, rows=rows)


def sentences_table(compared: ComparedSystems, on_page: Callable[[], TextBlock]) -> Table:
    """Make rows for each sentence: its source, its reference and its translations."""
    of_others = "of B over A" if len(compared.systems) == 2 else "of the others over A, on average"
    columns = [
        count_column("line"),
        Column(title="gain", digits=1, signed=True, about=of_others),
        text_column("text"),
        Column(title=compared.ranking.title, digits=1, name="score"),
        text_column("sentence", about=f"[…]: {compared.marked}"),
    ]
    rows = []
    for one in compared.sentences:
        first = [one.line, one.gain]
        if one.source:
            rows.append([*first, "source", None, one.source])
        rows.append([*first, "reference", None, one.reference])
        kinds = classify_all(one.translations, one.reference)
        for letter, score, line, own in zip(
            compared.letters, one.scores, one.translations, kinds, strict=True
        ):
            rows.append([*first, letter, score, Written(line, bracketed(line, own))])
    title = (
        "Sentences with the largest gains, then those with the largest losses, by "
        f"{compared.ranking.title}"
    )
    return Table(title=title, columns=columns, rows=rows, shared=2, on_page=on_page)


def _notes(compared: ComparedSystems) -> list[str]:
    notes = [] if compared.sentences else ["All systems have equal scores in every sentence."]
    if compared.ranking.title != compared.metric.title:
        notes.append(f"{compared.metric.title} is uninformative for single sentences.")
    for metric in (compared.metric, compared.ranking):
        lower = "" if metric.higher_is_better else "; lower is better"
        notes.append(f"{metric.title}|{metric.signature}{lower}")
    return list(dict.fromkeys(notes))


def _facts(compared: ComparedSystems) -> dict[str, Any]:
    """List what the tables do not have."""
    names = ("lowest", "lower_quartile", "median", "upper_quartile", "highest")
    quantiles = {}
    for one in compared.systems:
        values = np.quantile(one.sentences, (0, 0.25, 0.5, 0.75, 1)).tolist()
        quantiles[one.name] = dict(zip(names, values, strict=True))
    return {
        "test": compared.test or None,
        "metric": compared.metric.title,
        "signature": compared.metric.signature,
        "higher_is_better": compared.metric.higher_is_better,
        "ranked_by": compared.ranking.title,
        "ranking_signature": compared.ranking.signature,
        "sentence_scores": quantiles,
    }


def _late_facts(compared: ComparedSystems, details: WordDetails) -> dict[str, Any]:
    """List the sentences with their trees and alignments."""
    sentences = [asdict(one) | details.by_line[one.line].as_json() for one in compared.sentences]
    return {"parser": details.parser or None, "sentences": sentences}


_INCHES_OF_NAMES = 2.0

_BOXES = (
    "A box has the middle half of a system's sentences, with a line at the median and a diamond at "
    "the mean; "
    "whiskers reach up to 1.5 widths of the box."
)


def draw_boxes(compared: ComparedSystems) -> Drawing:
    """Draw a box of sentence scores for each system (Tukey, 1977)."""
    from matplotlib.figure import Figure as Drawing

    lower = "" if compared.ranking.higher_is_better else ", lower is better"
    names = [fit_text(one.name, _INCHES_OF_NAMES) for one in compared.systems]
    drawing = Drawing(figsize=(6.8, 0.9 + 0.4 * len(names)), layout="constrained")
    axes = drawing.subplots()
    axes.boxplot(
        [one.sentences for one in compared.systems],
        orientation="horizontal",
        tick_labels=names,
        showmeans=True,
        widths=0.5,
        medianprops={"color": INK, "linewidth": 2},
        meanprops={"marker": "D", "markerfacecolor": ONE, "markeredgecolor": ONE, "markersize": 4},
        flierprops={"marker": "o", "markeredgecolor": "#8C8C8C", "markersize": 3},
    )
    axes.invert_yaxis()
    axes.grid(visible=False, axis="y")
    axes.grid(axis="x")
    axes.set_xlabel(f"{compared.ranking.title} of single sentences (points{lower})")
    return drawing


def _read_outputs(options: CompareOptions) -> list[Outputs]:
    """Read runs and files; all matches of a pattern are systems."""
    check_existence(options.compare)
    paths = [match for path in options.compare for match in matching(path)]
    _check_count(len(paths))
    if options.references is None and not any(path.is_dir() for path in paths):
        raise UsageError("translations in files need references", do="Add `--references FILE`")
    systems = read_translations(
        options.compare,
        test=options.test,
        references=options.references,
        source=options.source,
        apart=True,
    )
    # one that is given twice counts once
    _check_count(len(systems))
    return [replace(system.seeds[0], system=system.name) for system in systems]


def _check_count(systems: int) -> None:
    if not 2 <= systems <= len(ascii_uppercase):
        given = f"{counted(systems, 'system')} {'is' if systems == 1 else 'are'} given"
        raise UsageError(given, where="--compare", do=f"Give 2 to {len(ascii_uppercase)} systems")
