"""What do damaged trees do to translations? Translate the test set again with other trees."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from synmt.analysis.inputs import (
    find_parser,
    name_parser,
    parse_lines,
    read_test,
    save_plot,
    scoring_options,
)
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
from synmt.evaluation.significance import Comparison, holm
from synmt.parsing.parser import StanzaParser
from synmt.reporting.figures import INK, ONE, OTHER, check_plot, fit_text
from synmt.reporting.progress import progress
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
from synmt.syntax.parse import Parse

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
    outputs = read_test(run.folder, options.test)
    metric = make_metric(
        options.metric,
        scoring_options(outputs, options.tokenize, options.lowercase, options.metric),
    )
    translator = Translator.load(run)
    check_translator(translator, str(run.folder), has_trees=options.parses is not None)
    # a missing parser should be reported before the test set is parsed
    other = (
        find_parser(run.recipe(), "source", options.parser, to="parse") if options.parser else None
    )
    if other and translator.reading.of_parser:
        other = other.with_features(translator.reading.of_parser)
    own, parser = _read_own_trees(translator, outputs, options.parses)
    others = _other_trees(translator, own, parser, other)
    conditions = list(make_conditions(own, shares, seed=options.seed, others=others))
    if own.with_arcs:
        _logger.info(
            "the model reads arc probabilities: original trees have the parser's, all other arcs "
            "are certain"
        )
    with progress("translating", len(outputs.source) * (len(conditions) + 1), "lines") as advance:
        outcomes = list(measure(translator, own, conditions, metric, outputs, advance))
    differing = sum(
        one != stored
        for one, stored in zip(outcomes[0].translations, outputs.hypothesis, strict=True)
    )
    if differing:
        count = f"{differing:,} of {len(outputs.hypothesis):,}"
        _logger.warning(
            "%s translations with the original trees differ from those stored in the run", count
        )
    system = f"{outputs.system} on {the_test_set(outputs.test)}"
    draw = partial(draw_robustness, outcomes, metric, system=system)
    if options.plot:
        save_plot(options.plot, draw)
    caption = (
        f"{metric.title} by share of words with a different parent. Bars: 95 % intervals of the "
        "difference from the "
        "original trees, whose score is the dashed line"
    )
    introduction = "The more the score falls, the more the model relies on its trees."
    return Report(
        title=f"{system}: {len(outputs.source):,} sentences with other trees, seed {options.seed}",
        parts=[
            TextBlock(lines=[introduction]),
            _table(outcomes, metric, own, parser),
            Figure(draw=draw, caption=caption),
        ],
        notes=[f"{metric.title}|{metric.signature}"],
        facts={"parser": parser, "seed": options.seed, "not_as_in_the_run": differing}
        | _facts(outputs, metric, own, outcomes),
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
    translator: Translator, outputs: Outputs, parses: Path | None
) -> tuple[ModelTrees, str]:
    """Parse the test set, or read its trees from a file, and name the parser or the file."""
    lines = outputs.as_read().source
    if parses is None:
        trees, name = parse_lines(translator.parser, lines), name_parser(translator.parser)
    else:
        trees, name = list(read_parses(parses, lines)), parses.name
        # raises an error for trees without the arc probabilities that the model reads
        translator.trees(lines, trees)
    return find_model_trees(translator, lines, trees), name


def _other_trees(
    translator: Translator, own: ModelTrees, name: str, parser: StanzaParser | None
) -> list[tuple[str, list[Parse]]]:
    """Name the trees without the control of the recipe, and the trees of another parser, if there
    are any."""
    others = [] if own.control.idle else [(f"{name}, unchanged", own.before_control)]
    if parser is not None:
        parses = parse_lines(parser.with_arcs() if own.with_arcs else parser, own.lines)
        # a control would replace the trees of every parser by the same random trees
        others.append(
            (name_parser(parser), find_model_trees(translator, own.lines, parses).before_control)
        )
    return others


def _table(outcomes: Sequence[Outcome], metric: Metric, own: ModelTrees, parser: str) -> Table:
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
    return Table(columns=columns, rows=rows, notes=_notes(own, parser))


def _notes(own: ModelTrees, parser: str) -> list[str]:
    """Explain the conditions."""
    if own.control.idle:
        first = f"own: the original trees, which the model reads, by {parser}"
    else:
        made = f"{own.control.name} trees made from those of {parser}"
        first = (
            f"own: the original trees, which the model reads ({made}); '{parser}, unchanged': "
            "those of the parser"
        )
    notes = [
        first,
        "rewired: this percentage of words, sampled at random without the root, has a "
        "different parent",
        "left, right: the parent is always the next, the previous word",
        "random: a random tree; shuffled: the same tree over shuffled words",
        "flat: the parent is always the first word, as in lines that cannot be parsed",
    ]
    certain = (
        "arcs: original trees and those of other parsers have probabilities; all other arcs "
        "are certain"
    )
    return [*notes, certain] if own.with_arcs else notes


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


def _draw(axes: Axes, some: Sequence[Outcome], form: str, label: str) -> None:
    """Draw points with the intervals of their difference from the score with the original trees."""
    compared = [one.against_own or Comparison(0.0, 0.0, 0.0, 1.0) for one in some]
    axes.errorbar(
        [100 * (1 - one.uas) for one in some],
        [one.score for one in some],
        yerr=[
            [max(one.difference - one.low, 0.0) for one in compared],
            [max(one.high - one.difference, 0.0) for one in compared],
        ],
        fmt=form,
        color=ONE if len(form) > 1 else OTHER,
        label=label,
        markersize=5.5,
        markeredgecolor=INK,
        markeredgewidth=0.6,
        linewidth=1.2,
        elinewidth=1,
        capsize=2.5,
    )
