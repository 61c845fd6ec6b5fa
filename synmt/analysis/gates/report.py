"""Which target words use syntax? The norm of the gate to syntactic annotations, by part of
speech."""

from __future__ import annotations

import logging
import math
from collections.abc import Sequence
from functools import partial
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from synmt.analysis import inputs
from synmt.analysis.forward_passes import ParsedText
from synmt.analysis.gates.norms import (
    MIN_WORDS,
    PUNCTUATION,
    GatedSentence,
    TagRow,
    check_gates,
    gated_words,
    read_gates,
    tag_rows,
)
from synmt.analysis.options import GateOptions
from synmt.decode.translator import Translator
from synmt.errors import UsageError
from synmt.evaluation.bootstrap import SAMPLES, SEED
from synmt.evaluation.outputs import the_test_set
from synmt.reporting.figures import INK, ONE, OTHER, check_plot, fit_text
from synmt.reporting.values import (
    Column,
    Figure,
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

SENTENCES = 50
"""Number of sentences on a page."""


def analyze_gates(options: GateOptions) -> Report:
    """Measure how far the gate to syntax is open at each target word, as in Tran & Bisk (2018)."""
    if options.plot:
        check_plot(options.plot)
    run = find_run(options.run)
    outputs, recipe = inputs.read_test(run.folder, options.test).as_read(), run.recipe()
    translator = Translator.load(run)
    check_gates(translator, str(run.folder))
    inputs.check_recorded(translator, run.folder)
    parser = inputs.find_parser(recipe, "target", options.parser, to="tag")
    tagger = inputs.name_parser(parser)
    _logger.info(
        "gates are read while the model is forced to produce the references; tags: %s", tagger
    )
    parses = inputs.parse_lines(parser, outputs.reference)
    if not any(tag != "_" for parse in parses for tag in parse.tags):
        raise UsageError(
            "the parser gives no parts of speech to group words by",
            where=tagger,
            do="Use a Stanza model with the processor `pos`",
        )
    text = ParsedText("target", outputs.source, outputs.reference, parses)
    sentences, left_out = read_gates(translator, text)
    rows = tag_rows(sentences)
    draw = partial(draw_gates, rows, system=outputs.system)
    if options.plot:
        inputs.save_plot(options.plot, draw)
    facts = gate_facts(rows, sentences)
    of = f"{facts['words']:,} words in {facts['sentences']:,} sentences"
    caption = "How often a part of speech has the highest norm of a sentence, relative to chance"
    notes = [
        "a word of several pieces has their mean; the target is the reference, which the model is "
        "forced to produce",
        f"all words: norm {facts['norm']['mean']:.3f} ± {facts['norm']['deviation']:.3f}",
        f"tags: {tagger}",
    ]
    if without := facts["words_without_pieces"]:
        notes.append(f"left out: {without:,} words that share all their pieces with other words")
    origin = {"system": outputs.system, "test": outputs.test, "tagger": tagger}
    html = words_as_html(sentences, recipe.source, recipe.target)
    return Report(
        title=f"{outputs.system} on {the_test_set(outputs.test)}: gates of {of}",
        parts=[
            gate_table(rows, notes),
            Figure(draw=draw, caption=caption),
            TextBlock(title="Gates word by word", html=html, style=_STYLE),
        ],
        facts={**origin, "left_out": left_out, **facts},
        system=outputs.system,
        runs=(run.folder,),
    )


def gate_facts(rows: Sequence[TagRow], sentences: Sequence[GatedSentence]) -> dict[str, Any]:
    """Return what the table does not have, and every word."""
    words = gated_words(sentences)
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
        means = [row.norm, row.highest, row.expected, row.ratio]
        cells.append([tag, row.words, row.share, *means, row.interval, row.unpunctuated])
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
    ratios = [row.ratio for row in rows]
    for place, row in enumerate(rows):
        if row.interval:
            axes.hlines(place, row.interval.low, row.interval.high, color=ONE, linewidth=1.6)
    # clip_on would cut a mark at 0 in half
    axes.plot(ratios, places, "o", color=ONE, markersize=5.5, clip_on=False, label="all words")
    if any(row.tag == PUNCTUATION for row in rows):
        others = [math.nan if row.unpunctuated is None else row.unpunctuated for row in rows]
        mark = axes.plot(others, places, "D", color=OTHER, fillstyle="none", clip_on=False)
        mark[0].set_label("without punctuation")
        axes.legend(fontsize=8)
    few = any(row.few for row in rows)
    labels = []
    for row in rows:
        shares = f"{100 * row.highest:.1f} ({100 * row.expected:.1f})"
        labels.append(f"{row.tag}{' *' * row.few}   {shares}")
    axes.set_yticks(places, labels)
    axes.tick_params(axis="y", length=0)
    axes.set(xlim=(0, None), ylim=(len(rows) - 0.4, -0.6))
    axes.set_ylabel("Part of speech,\n% of sentences (by chance)")
    note = f"\n* fewer than {MIN_WORDS} words" if few else ""
    axes.set_xlabel(f"Highest gate: times as often as by chance (95 % interval){note}")
    axes.set_title(fit_text(system, 4.2), loc="left", fontsize=9)
    return figure


def words_as_html(
    sentences: Sequence[GatedSentence], source: str, target: str, *, shown: int = SENTENCES
) -> str:
    """Write the first sentences, with target words coloured by gate norm (Tran & Bisk, 2018,
    figure 4); source, target: the codes of the languages."""
    gated = [one for one in sentences if not np.isnan(one.norms).all()]
    first = gated[:shown]
    items = "\n".join(_sentence(one, escape(source), escape(target)) for one in first)
    return _BODY.format(shown=f"{len(first):,} of {len(gated):,}", items=items)


def _sentence(one: GatedSentence, source: str, target: str) -> str:
    """Write every word in its colour, and the text between words unchanged."""
    low, high = float(np.nanmin(one.norms)), float(np.nanmax(one.norms))
    text, end = "", 0
    columns = one.parse.spans.tolist(), one.tags, one.norms.tolist()
    for (start, stop), tag, norm in zip(*columns, strict=True):
        style, below = 'class="word none"', f"{tag} –"
        if not np.isnan(norm):
            kind = "word top" if norm == high else "word"
            share = (norm - low) / (high - low or 1)
            style = f'class="{kind}" style="background: rgb(4 101 175 / {share / 2:.0%})"'
            below = f"{tag} {norm:.3f}"
        # dir: the Latin letters of the tag must not change the direction of an Arabic line
        small = f'<small dir="ltr" lang="en">{escape(below)}</small>'
        word = f"<span {style}>{escape(one.target[start:stop])}{small}</span>"
        text += escape(one.target[end:start]) + word
        end = stop
    return (
        f'<li><p class="line">line {one.line:,}, norms {low:.3f} to {high:.3f}</p>\n'
        f'<p class="source" lang="{source}" dir="auto">{escape(one.source)}</p>\n'
        f'<p class="target" lang="{target}" dir="auto">{text}{escape(one.target[end:])}</p></li>'
    )


_STYLE = """
.sentences { list-style: none; margin: 0; padding: 0; }
.sentences li { border-top: 1px solid var(--rule); padding: .7rem 0; overflow-wrap: anywhere; }
.line { color: var(--faint); font-size: .875rem; }
.target { line-height: 1.2; margin-top: .5rem; }
.word { display: inline-block; padding: .25rem .4rem .2rem; margin: .1rem .05rem;
  border-radius: .25rem; text-align: center; vertical-align: top; max-width: 100%;
  box-sizing: border-box; print-color-adjust: exact; }
.word small { display: block; font-size: .6875rem; font-variant-numeric: tabular-nums; }
.top { font-weight: 700; outline: 2px solid var(--ink); outline-offset: 1px;
  margin: .2rem .25rem; }
.none { border: 1px dashed var(--rule); }
"""

_BODY = """<p>The first {shown} sentences, in the order of the test set.</p>
<p class="faint">Colours compare words within a sentence, from the lowest norm to the highest, which
has a frame. Below each word: its tag and its norm, which can be compared between sentences; words
with a dash have no separate piece.</p>
<ol class="sentences">
{items}
</ol>
"""
