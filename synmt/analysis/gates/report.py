"""Which target words use syntax? The norm of the gate to syntactic annotations, by part of
speech."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from synmt.analysis import inputs
from synmt.analysis.answers import range_in_words
from synmt.analysis.gates.norms import (
    GatedSentence,
    check_gates,
    gated_words,
    read_gates,
    tag_table,
)
from synmt.analysis.options import GateOptions
from synmt.arrays import Values
from synmt.decode.translator import Translator
from synmt.evaluation.outputs import from_run, the_test_set
from synmt.reporting.figures import INK, ONE, OTHER, check_plot, new_figure, save_figure
from synmt.reporting.values import Figure, Report, TextBlock
from synmt.run_folder import find_run

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing

SENTENCES = 50
"""Number of sentences on a page."""


def analyze_gates(options: GateOptions) -> Report:
    """Measure how far the gate to syntax is open at each target word, as in Tran & Bisk (2018)."""
    check_plot(options.plot)
    run = find_run(options.run)
    outputs, recipe = from_run(run.folder, options.test).as_read(), run.recipe()
    translator = Translator.load(run)
    check_gates(translator, str(run.folder))
    inputs.check_recorded(translator, run.folder)
    text = inputs.parse_text(
        translator, run, "target", outputs.source, outputs.reference, options.parser
    )
    sentences, left_out = read_gates(translator, text)
    notes = [
        "a word of several pieces has their mean; the target is the reference, which the model is "
        "forced to produce",
        f"tags: {text.made_by}",
    ]
    table = tag_table(sentences, notes)
    draw = partial(draw_gates, table.rows, system=outputs.system)
    save_figure(draw, options.plot)
    caption = "How often a part of speech has the highest norm of a sentence, relative to chance"
    return Report(
        title=f"{outputs.system} on {the_test_set(outputs.test)}: gates of target words",
        parts=[
            range_in_words(
                table, "ratio", "How often the gate is open widest, as a multiple of chance,"
            ),
            table,
            Figure(draw=draw, caption=caption),
            TextBlock(
                title="Gates word by word",
                html=words_as_html(sentences, recipe.source, recipe.target),
                style=_STYLE,
            ),
        ],
        facts={"left_out": left_out, **gate_facts(sentences)},
        runs=(run.folder,),
    )


def gate_facts(sentences: Sequence[GatedSentence]) -> Values:
    """Return the norms of all words, their mean and their standard deviation."""
    words = gated_words(sentences)
    lines = [
        {
            "line": sentence.line,
            "source": sentence.source,
            "target": sentence.target,
            "words": sentence.parse.words,
            "tags": sentence.tags,
            "norms": [None if np.isnan(norm) else norm for norm in sentence.norms.tolist()],
        }
        for sentence in sentences
    ]
    return {
        "sentences": int(words.sentences[-1]) + 1,
        "words": len(words.norms),
        "norm": float(words.norms.mean()),
        "deviation": float(words.norms.std()),
        "lines": lines,
    }


def draw_gates(rows: Sequence[Sequence[Any]], *, system: str) -> Drawing:
    """Draw the ratio of each part of speech with its interval: the rows of `tag_table`."""
    figure = new_figure(6.2, 0.27 * len(rows) + 1.5)
    axes = figure.subplots()
    axes.axvline(1, color=INK, linewidth=1)
    for place, (*_, ratio, interval, unpunctuated) in enumerate(rows):
        axes.hlines(place, interval.low, interval.high, color=ONE)
        axes.plot(ratio, place, "o", color=ONE)
        if unpunctuated is not None:
            axes.plot(unpunctuated, place, "D", color=OTHER, fillstyle="none")
    axes.set_yticks(range(len(rows)), [row[0] for row in rows])
    axes.invert_yaxis()
    axes.set(
        xlabel="Highest gate: times as often as by chance (95 % interval; ◇: no punctuation)",
        ylabel="Part of speech",
    )
    axes.set_title(system, loc="left", wrap=True)
    return figure


def words_as_html(
    sentences: Sequence[GatedSentence], source: str, target: str, *, shown: int = SENTENCES
) -> str:
    """Write the first sentences, with target words coloured by gate norm (Tran & Bisk, 2018,
    figure 4); source, target: the codes of the languages."""
    from jinja2 import Template

    return Template(_BODY, autoescape=True).render(
        sentences=[(sentence, list(_words(sentence))) for sentence in sentences[:shown]],
        source=source,
        target=target,
    )


def _words(sentence: GatedSentence) -> Iterator[tuple[str, str, float, str]]:
    """Yield the text before each word, the word, its colour in percent, and its tag with its norm;
    at the end, the rest of the line."""
    low, high = np.nanmin([1, *sentence.norms]), np.nanmax([0, *sentence.norms])
    end = 0
    columns = sentence.parse.spans.tolist(), sentence.tags, sentence.norms.tolist()
    for (start, stop), tag, norm in zip(*columns, strict=True):
        colour = 50 * np.nan_to_num((norm - low) / (high - low or 1))
        yield sentence.target[end:start], sentence.target[start:stop], colour, f"{tag} {norm:.3f}"
        end = stop
    yield sentence.target[end:], "", 0, ""


_STYLE = """
.sentences { list-style: none; margin: 0; padding: 0; }
.sentences li { border-top: 1px solid var(--rule); padding: .7rem 0; overflow-wrap: anywhere; }
.target { line-height: 1.2; margin-top: .5rem; }
.word { display: inline-block; padding: .25rem .4rem .2rem; margin: .1rem .05rem;
  border-radius: .25rem; text-align: center; vertical-align: top; max-width: 100%;
  box-sizing: border-box; print-color-adjust: exact; }
.word small { display: block; font-size: .6875rem; font-variant-numeric: tabular-nums; }
"""

# dir: the Latin letters of a tag must not change the direction of an Arabic line
_BODY = """<p>The first {{ sentences | length }} sentences, in the order of the test set.</p>
<p class="faint">Colours compare words within a sentence, from the lowest norm to the highest. Below
each word: its tag and its norm, which can be compared between sentences; a word without a separate
piece has none (nan).</p>
<ol class="sentences">
{% for one, words in sentences %}
<li><p class="faint">line {{ one.line }}</p>
<p class="source" lang="{{ source }}" dir="auto">{{ one.source }}</p>
<p class="target" lang="{{ target }}" dir="auto">
{%- for before, word, colour, below in words %}{{ before }}
{%- if word %}<span class="word" style="background: rgb(4 101 175 / {{ colour | round }}%)">
{{- word }}<small dir="ltr" lang="en">{{ below }}</small></span>{% endif %}{% endfor %}</p></li>
{% endfor %}
</ol>
"""
