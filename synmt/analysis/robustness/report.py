"""What do damaged trees do to translations? Translate the test set again with other trees."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from operator import ne
from typing import TYPE_CHECKING

from synmt.analysis import inputs
from synmt.analysis.answers import differences_in_words
from synmt.analysis.options import RobustnessOptions
from synmt.analysis.robustness.conditions import (
    Outcome,
    check_translator,
    find_model_trees,
    make_conditions,
    measure,
    parse_shares,
)
from synmt.decode.translator import Translator
from synmt.evaluation.metrics import Metric, make_metric
from synmt.evaluation.outputs import from_run, the_test_set
from synmt.evaluation.significance import difference_columns, holm
from synmt.reporting.figures import INK, check_plot, new_figure, save_figure, series_style
from synmt.reporting.values import Column, Figure, Report, Table, share_column, text_column
from synmt.run_folder import find_run
from synmt.syntax.conllu import read_parses

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing

_CONDITIONS = [
    "own: the original trees, which the model reads, with the control of its recipe",
    "rewired: this percentage of words, sampled at random without the root, has a different parent",
    "left, right: the parent is always the next, the previous word",
    "random: a random tree; shuffled: the same tree over shuffled words",
    "flat: the parent is always the first word, as in lines that cannot be parsed",
    "if the model reads probabilities of arcs, original trees and those of other parsers have "
    "them, and all other arcs are certain",
]


def analyze_robustness(options: RobustnessOptions) -> Report:
    """Translate the test set of a run with damaged trees, with other parsers' trees and without a
    parser."""
    check_plot(options.plot)
    shares = parse_shares(options.shares)
    run = find_run(options.run)
    outputs = from_run(run.folder, options.test)
    metric = make_metric(options.metric, outputs.scoring.updated(options))
    translator = Translator.load(run)
    check_translator(translator, run.folder, has_trees=options.parses is not None)
    other = None
    if options.parser:
        # a missing parser should be reported before the test set is parsed
        other = inputs.find_parser(run.recipe(), "source", options.parser)
        if translator.reading.of_parser:
            other = other.with_features(translator.reading.of_parser)
    lines = outputs.as_read().source
    if options.parses is None:
        parser = inputs.name_parser(translator.parser)
        trees = inputs.parse_lines(translator.parser, lines)
    else:
        parser, trees = options.parses.name, list(read_parses(options.parses, lines))
        # raises an error for trees without the arc probabilities that the model reads
        translator.trees(lines, trees)
    model_trees = find_model_trees(translator, lines, trees)
    conditions = make_conditions(model_trees, shares, seed=options.seed)
    if not model_trees.control.idle:
        conditions[f"{parser}, unchanged"] = model_trees.before_control
    if other is not None:
        parses = inputs.parse_lines(other.with_arcs() if model_trees.with_arcs else other, lines)
        # a control would replace the trees of every parser by the same random trees
        conditions[inputs.name_parser(other)] = find_model_trees(
            translator, lines, parses
        ).before_control
    outcomes = measure(translator, model_trees, conditions, metric, outputs)
    system = f"{outputs.system} on {the_test_set(outputs.test)}"
    table = _table(outcomes, metric)
    draw = partial(draw_robustness, outcomes, metric.title, system=system)
    save_figure(draw, options.plot)
    caption = (
        f"{metric.title} by share of words with a different parent. Bars: 95 % intervals of the "
        "difference from the original trees, whose score is the dashed line"
    )
    return Report(
        title=f"{system}: {len(lines):,} sentences with other trees, seed {options.seed}",
        parts=[
            differences_in_words([table], "the original trees", "score"),
            table,
            Figure(draw=draw, caption=caption),
        ],
        notes=[f"original trees: {parser}", metric.label],
        facts={
            "p": [outcome.against_own and outcome.against_own.p_value for outcome in outcomes],
            "probabilities_of_arcs": model_trees.with_arcs,
            "not_as_in_the_run": sum(map(ne, outcomes[0].translations, outputs.hypothesis)),
        },
        runs=(run.folder,),
    )


def _table(outcomes: Sequence[Outcome], metric: Metric) -> Table:
    """Lay out the scores, and their differences from the score with the original trees."""
    columns = [
        text_column("trees", name="name"),
        share_column(
            "UAS", name="uas", about="words with the same parent as in the original trees"
        ),
        Column(
            metric.title,
            name="score",
            about="" if metric.higher_is_better else "lower is better",
        ),
        *difference_columns("the score with the original trees", "by paired bootstrap"),
        Column(
            "p (Holm)",
            kind="p",
            name="holm_p",
            about="two-sided, corrected for the comparisons of the table (Holm, 1979); intervals "
            "are not corrected",
        ),
        share_column(
            "changed", about="translations that differ from those with the original trees"
        ),
    ]
    holm_p = iter(
        holm([outcome.against_own.p_value for outcome in outcomes if outcome.against_own])
    )
    rows = []
    for outcome in outcomes:
        compared = outcome.against_own
        cells = [compared.difference, compared.interval, next(holm_p)] if compared else [None] * 3
        rows.append([outcome.name, outcome.uas, outcome.score, *cells, outcome.changed])
    return Table(columns=columns, rows=rows, notes=_CONDITIONS)


def draw_robustness(outcomes: Sequence[Outcome], score: str, *, system: str) -> Drawing:
    """Draw the score, which has this name, by share of words with a different parent than in the
    original trees.

    Bars are the 95 % intervals of the difference from the score with the original trees.
    """
    figure = new_figure(6.4, 3.6)
    axes, base = figure.subplots(), outcomes[0].score
    axes.axhline(base, color=INK, linewidth=0.8, linestyle="--")
    for index, outcome in enumerate(outcomes):
        place, style = 100 * (1 - outcome.uas), series_style(index)
        axes.plot(place, outcome.score, label=outcome.name, **style)
        if compared := outcome.against_own:
            axes.vlines(place, base + compared.low, base + compared.high, color=style["color"])
    axes.set(
        ylabel=f"{score}\n95 % interval of the difference",
        xlabel="Words with a different parent than in the original trees (%)",
    )
    axes.set_title(system, loc="left", wrap=True)
    figure.legend(loc="outside right center")
    return figure
