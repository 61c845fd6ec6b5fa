"""What do damaged trees do to translations? Translate the test set again with other trees."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from synmt.analysis import inputs
from synmt.analysis.options import RobustnessOptions
from synmt.analysis.robustness.conditions import (
    ModelTrees,
    Outcome,
    check_translator,
    find_model_trees,
    make_conditions,
    measure,
    parse_shares,
)
from synmt.decode.translator import Translator
from synmt.evaluation.metrics import Metric, make_metric
from synmt.evaluation.outputs import Outputs, the_test_set
from synmt.evaluation.significance import holm
from synmt.reporting.figures import INK, ONE, OTHER, check_plot, fit_text
from synmt.reporting.values import (
    Column,
    Figure,
    Report,
    Table,
    TextBlock,
    share_column,
    text_column,
)
from synmt.run_folder import find_run
from synmt.syntax.conllu import read_parses

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawing

_logger = logging.getLogger(__name__)

_MARKERS = "s^vDPX<>h*"
"""Shapes of the conditions that are not rewired trees: ten points cannot be distinguished by
colour."""


def analyze_robustness(options: RobustnessOptions) -> Report:
    """Translate the test set of a run with damaged trees, with other parsers' trees and without a
    parser."""
    if options.plot:
        check_plot(options.plot)
    shares = parse_shares(options.shares)
    run = find_run(options.run)
    outputs = inputs.read_test(run.folder, options.test)
    scoring = inputs.scoring_options(outputs, options.tokenize, options.lowercase, options.metric)
    metric = make_metric(options.metric, scoring)
    translator = Translator.load(run)
    check_translator(translator, run.folder, has_trees=options.parses is not None)
    other = None
    if options.parser:
        # a missing parser should be reported before the test set is parsed
        other = inputs.find_parser(run.recipe(), "source", options.parser, to="parse")
        if translator.reading.of_parser:
            other = other.with_features(translator.reading.of_parser)
    own, parser = _read_own_trees(translator, outputs.as_read().source, options.parses)
    others = [] if own.control.idle else [(f"{parser}, unchanged", own.before_control)]
    if other is not None:
        parses = inputs.parse_lines(other.with_arcs() if own.with_arcs else other, own.lines)
        # a control would replace the trees of every parser by the same random trees
        trees = find_model_trees(translator, own.lines, parses).before_control
        others.append((inputs.name_parser(other), trees))
    conditions = make_conditions(own, shares, seed=options.seed, others=others)
    outcomes = measure(translator, own, conditions, metric, outputs)
    stored = zip(outcomes[0].translations, outputs.hypothesis, strict=True)
    differing = sum(one != other for one, other in stored)
    if differing:
        count = f"{differing:,} of {len(outputs.hypothesis):,}"
        _logger.warning(
            "%s translations with the original trees differ from those stored in the run", count
        )
    system = f"{outputs.system} on {the_test_set(outputs.test)}"
    draw = partial(draw_robustness, outcomes, metric, system=system)
    if options.plot:
        inputs.save_plot(options.plot, draw)
    caption = (
        f"{metric.title} by share of words with a different parent. Bars: 95 % intervals of the "
        "difference from the original trees, whose score is the dashed line"
    )
    facts = {"parser": parser, "seed": options.seed, "not_as_in_the_run": differing}
    return Report(
        title=f"{system}: {len(outputs.source):,} sentences with other trees, seed {options.seed}",
        parts=[
            TextBlock(lines=["The more the score falls, the more the model relies on its trees."]),
            _table(outcomes, metric, _notes(own, parser)),
            Figure(draw=draw, caption=caption),
        ],
        notes=[f"{metric.title}|{metric.signature}"],
        facts={**facts, **_facts(outputs, metric, own, outcomes)},
        system=outputs.system,
        runs=(run.folder,),
    )


def _facts(
    outputs: Outputs, metric: Metric, own: ModelTrees, outcomes: Sequence[Outcome]
) -> dict[str, Any]:
    """Return what the table does not have."""
    conditions = []
    for one in outcomes:
        p = one.against_own.p_value if one.against_own else None
        kind, share = one.condition.kind, one.condition.share
        conditions.append({"name": one.condition.name, "kind": kind, "share": share, "p": p})
    return {
        "system": outputs.system,
        "test": outputs.test,
        "sentences": len(outputs.source),
        "metric": metric.title,
        "signature": metric.signature,
        "higher_is_better": metric.higher_is_better,
        "control": own.control.name or None,
        "probabilities_of_arcs": own.with_arcs,
        "conditions": conditions,
    }


def _read_own_trees(
    translator: Translator, lines: Sequence[str], parses: Path | None
) -> tuple[ModelTrees, str]:
    """Parse the test set, or read its trees from a file, and name the parser or the file."""
    if parses is None:
        name = inputs.name_parser(translator.parser)
        trees = inputs.parse_lines(translator.parser, lines)
    else:
        trees, name = list(read_parses(parses, lines)), parses.name
        # raises an error for trees without the arc probabilities that the model reads
        translator.trees(lines, trees)
    return find_model_trees(translator, lines, trees), name


def _table(outcomes: Sequence[Outcome], metric: Metric, notes: Sequence[str]) -> Table:
    """Lay out the scores, and their differences from the score with the original trees."""
    columns = [
        text_column("trees", name="name"),
        share_column(
            "UAS", name="uas", about="words with the same parent as in the original trees"
        ),
        Column(
            title=metric.title,
            name="score",
            about="" if metric.higher_is_better else "lower is better",
        ),
        Column(
            title="difference",
            signed=True,
            about="from the score with the original trees, by paired bootstrap",
        ),
        Column(title="95 % interval", signed=True),
        Column(
            title="p (Holm)",
            kind="p",
            name="holm_p",
            about="two-sided, corrected for the comparisons of the table (Holm, 1979); intervals "
            "are not corrected",
        ),
        share_column(
            "changed", about="translations that differ from those with the original trees"
        ),
    ]
    holm_p = iter(holm([one.against_own.p_value for one in outcomes if one.against_own]))
    rows = []
    for one in outcomes:
        compared = one.against_own
        cells = [compared.difference, compared.interval, next(holm_p)] if compared else [None] * 3
        rows.append([one.condition.name, one.uas, one.score, *cells, one.changed])
    return Table(columns=columns, rows=rows, notes=notes)


def _notes(own: ModelTrees, parser: str) -> list[str]:
    """Explain the conditions."""
    first = f"own: the original trees, which the model reads, by {parser}"
    if not own.control.idle:
        first = (
            f"own: the original trees, which the model reads ({own.control.name} trees made from "
            f"those of {parser}); '{parser}, unchanged': those of the parser"
        )
    notes = [
        first,
        "rewired: this percentage of words, sampled at random without the root, has a "
        "different parent",
        "left, right: the parent is always the next, the previous word",
        "random: a random tree; shuffled: the same tree over shuffled words",
        "flat: the parent is always the first word, as in lines that cannot be parsed",
    ]
    if own.with_arcs:
        notes.append(
            "arcs: original trees and those of other parsers have probabilities; all other arcs "
            "are certain"
        )
    return notes


def draw_robustness(outcomes: Sequence[Outcome], metric: Metric, *, system: str) -> Drawing:
    """Draw the score by share of words with a different parent than in the original trees.

    Bars are the 95 % intervals of the difference from the score with the original trees.
    """
    from matplotlib.figure import Figure as NewFigure

    figure = NewFigure(figsize=(6.4, 3.6), layout="constrained")
    axes = figure.subplots()
    own, *conditions = outcomes
    axes.axhline(own.score, color=INK, linewidth=0.8, linestyle=(0, (4, 3)), label="original trees")
    rewired = [one for one in conditions if one.condition.kind == "rewired"]
    others = [one for one in conditions if one.condition.kind != "rewired"]
    if rewired:
        # the curve starts at the original trees, unless these differ from share 0 in arc
        # probabilities
        first = [] if rewired[0].condition.share == 0 else [own]
        _draw(axes, [*first, *rewired], "o-", "rewired")
    for place, one in enumerate(others):
        _draw(axes, [one], _MARKERS[place % len(_MARKERS)], one.condition.name)
    better = "" if metric.higher_is_better else ", lower is better"
    axes.set_ylabel(f"{metric.title} (points{better})\n95 % interval of the difference")
    axes.set_xlabel("Words with a different parent than in the original trees (%)")
    axes.set_xlim(-3, 103)
    axes.margins(y=0.1)
    axes.set_title(fit_text(system, 4.6), fontsize=9, loc="left")
    axes.legend(frameon=False, loc="center left", bbox_to_anchor=(1.01, 0.5))
    return figure


def _draw(axes: Axes, points: Sequence[Outcome], form: str, label: str) -> None:
    """Draw points with the intervals of their difference from the score with the original trees."""
    places, scores = [100 * (1 - one.uas) for one in points], [one.score for one in points]
    color = ONE if len(form) > 1 else OTHER
    axes.plot(places, scores, form, color=color, label=label, markeredgecolor=INK)
    for place, one in zip(places, points, strict=True):
        if compared := one.against_own:
            base = one.score - compared.difference
            axes.vlines(place, base + compared.low, base + compared.high, color=color, linewidth=1)
