"""Which target words use syntax? The norm of the gate to syntactic annotations, by part of
speech."""

from __future__ import annotations

import logging
import math
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from synmt.analysis.forward_passes import ParsedText
from synmt.analysis.gates.norms import (
    MIN_WORDS,
    PUNCTUATION,
    GatedSentence,
    GatedWords,
    TagRow,
    check_gates,
    check_tags,
    gated_words,
    read_gates,
    tag_rows,
)
from synmt.analysis.gates.page import style, words_as_html
from synmt.analysis.inputs import (
    check_recorded,
    find_parser,
    log_left_out,
    name_parser,
    parse_lines,
    read_test,
    save_plot,
)
from synmt.analysis.options import GateOptions
from synmt.decode.translator import Translator
from synmt.evaluation.bootstrap import SAMPLES, SEED
from synmt.evaluation.outputs import the_test_set
from synmt.reporting.figures import INK, ONE, OTHER, check_plot, fit_text
from synmt.reporting.values import (
    Column,
    Figure,
    Interval,
    Marked,
    Report,
    Table,
    TextBlock,
    count_column,
    share_column,
    text_column,
)
from synmt.run_folder import find_run

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing

_logger = logging.getLogger(__name__)


def analyze_gates(options: GateOptions) -> Report:
    """Measure how far the gate to syntax is open at each target word, as in Tran & Bisk (2018)."""
    if options.plot:
        check_plot(options.plot)
    run = find_run(options.run)
    outputs, recipe = read_test(run.folder, options.test).as_read(), run.recipe()
    translator = Translator.load(run)
    check_gates(translator, str(run.folder))
    check_recorded(translator, run.folder)
    parser = find_parser(recipe, "target", options.parser, to="tag")
    tagger = name_parser(parser)
    _logger.info(
        "gates are read while the model is forced to produce the references; tags: %s", tagger
    )
    parses = parse_lines(parser, outputs.reference)
    check_tags(parses, tagger)
    text = ParsedText("target", outputs.source, outputs.reference, parses)
    sentences, too_long = read_gates(translator, text)
    words = gated_words(sentences)
    rows = tag_rows(words, gated_words(sentences, without=PUNCTUATION))
    left_out = log_left_out(len(outputs.source), len(sentences), too_long)
    draw = partial(draw_gates, rows, system=outputs.system)
    if options.plot:
        save_plot(options.plot, draw)
    facts = gate_facts(words, rows, sentences)
    of = f"{facts['words']:,} words in {facts['sentences']:,} sentences"
    caption = "How often a part of speech has the highest norm of a sentence, relative to chance"
    by_word = words_as_html(sentences, (recipe.source, recipe.target))
    return Report(
        title=f"{outputs.system} on {the_test_set(outputs.test)}: gates of {of}",
        parts=[
            gate_table(rows, _notes(words, tagger, facts["words_without_pieces"])),
            Figure(draw=draw, caption=caption),
            TextBlock(title="Gates word by word", html=by_word, style=style()),
        ],
        facts={
            "system": outputs.system,
            "test": outputs.test,
            "tagger": tagger,
            "left_out": left_out,
        }
        | facts,
        system=outputs.system,
        runs=(run.folder,),
    )


def _notes(words: GatedWords, tagger: str, without: int) -> list[str]:
    notes = [
        "a word of several pieces has their mean; the target is the reference, which the model is "
        "forced to produce",
        f"all words: norm {words.norms.mean():.3f} ± {words.norms.std():.3f}",
        f"tags: {tagger}",
    ]
    if without:
        notes.append(f"left out: {without:,} words that share all their pieces with other words")
    return notes


def gate_facts(
    words: GatedWords, rows: Sequence[TagRow], sentences: Sequence[GatedSentence]
) -> dict[str, Any]:
    """Return what the table does not have, and every word."""
    mean, deviation = float(words.norms.mean()), float(words.norms.std())
    return {
        "of": "reference",
        "norm": {"unit": "‖z‖/√D, 0 to 1", "mean": mean, "deviation": deviation},
        "sentences": int(words.sentences[-1]) + 1,
        "words": len(words.norms),
        "words_without_pieces": sum(int(np.isnan(one.norms).sum()) for one in sentences),
        "deviations": {row.tag: row.deviation for row in rows},
        "intervals": {"share": 0.95, "resamples": SAMPLES, "seed": SEED},
        "lines": list(map(_line, sentences)),
    }


def _line(one: GatedSentence) -> dict[str, Any]:
    norms = [None if np.isnan(norm) else norm for norm in one.norms.tolist()]
    words = zip(one.parse.words, one.tags, norms, strict=True)
    return {
        "line": one.line,
        "source": one.source,
        "target": one.target,
        "words": [{"word": word, "tag": tag, "norm": norm} for word, tag, norm in words],
    }


def gate_table(rows: Sequence[TagRow], notes: Sequence[str]) -> Table:
    """Make the table of parts of speech."""
    columns = [
        text_column("tag"),
        count_column("words"),
        share_column("share"),
        Column(title="norm", digits=3, about="mean norm of the gate, 0 = closed, 1 = open"),
        share_column(
            "highest",
            about="sentences with the highest norm on this tag; chance: expected share",
        ),
        share_column("chance", name="expected"),
        Column(
            title="ratio",
            about="highest / chance, with 95 % interval; no PUNCT: without punctuation",
        ),
        Column(title="95 %", name="interval"),
        Column(title="no PUNCT", name="unpunctuated"),
    ]
    cells = []
    for row in rows:
        tag = Marked(row.tag, "*") if row.few else row.tag
        interval = Interval(*row.interval) if row.interval else None
        means = [row.norm, row.highest, row.expected, row.ratio]
        cells.append([tag, row.words, row.share, *means, interval, row.unpunctuated])
    few = [f"*: fewer than {MIN_WORDS} words"] if any(row.few for row in rows) else []
    return Table(columns=columns, rows=cells, notes=[*notes, *few])


def draw_gates(rows: Sequence[TagRow], *, system: str) -> Drawing:
    """Draw the ratio of each part of speech with its interval; the two shares are at the right."""
    from matplotlib.figure import Figure as NewFigure

    figure = NewFigure(figsize=(6.2, 0.27 * len(rows) + 1.5), layout="constrained")
    axes, places = figure.subplots(), range(len(rows))
    axes.grid(visible=False, axis="y")
    axes.grid(visible=True, axis="x")
    axes.axvline(1, color=INK, linewidth=1)
    intervals = [row.interval or (row.ratio, row.ratio) for row in rows]
    # clip_on would cut a mark at 0 in half
    axes.hlines(places, *zip(*intervals, strict=True), color=ONE, linewidth=1.6)
    axes.plot(
        [row.ratio for row in rows],
        places,
        "o",
        color=ONE,
        markersize=5.5,
        clip_on=False,
        label="all words",
    )
    if any(row.tag == PUNCTUATION for row in rows):
        others = [math.nan if row.unpunctuated is None else row.unpunctuated for row in rows]
        axes.plot(
            others,
            places,
            "D",
            color=OTHER,
            fillstyle="none",
            clip_on=False,
            label="without punctuation",
        )
        axes.legend(fontsize=8)
    axes.set_yticks(places, [row.tag + " *" * row.few for row in rows])
    axes.set(
        xlim=(0, None), ylim=(len(rows) - 0.4, -0.6), ylabel="Part of speech of the target word"
    )
    few = f"\n* fewer than {MIN_WORDS} words" * any(row.few for row in rows)
    axes.set_xlabel(
        f"Highest gate of the sentence: times as often as by chance (95 % interval){few}"
    )
    axes.set_title(fit_text(system, 4.2), loc="left", fontsize=9)
    right = axes.twinx()
    right.grid(visible=False)
    right.set_yticks(
        places, [f"{100 * row.highest:.1f} ({100 * row.expected:.1f})" for row in rows], fontsize=8
    )
    right.set(ylim=axes.get_ylim(), ylabel="% of sentences (by chance)")
    for one in (axes, right):
        one.tick_params(axis="y", length=0, pad=8)
    return figure
