"""A section of a web page with target words coloured by gate norm (Tran & Bisk, 2018, figure 4).

The seven colours are of one hue and differ in lightness; they range from the lowest to the highest norm of a sentence.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

import numpy as np

from synmt.analysis.gates.table import COLUMNS, MIN_WORDS
from synmt.arrays import DoubleArray
from synmt.evaluation.outputs import the_test_set
from synmt.reporting.page import Section

if TYPE_CHECKING:
    from synmt.analysis.gates.norms import GatedSentence
    from synmt.analysis.gates.table import GateTable, TagRow

SENTENCES = 50
"""Number of sentences on the page."""

LIGHT = ("#f2f7fd", "#d9eafc", "#bddbfb", "#9dc9f7", "#79b3ee", "#0465af", "#004383")
DARK = ("#1f2730", "#233a51", "#254d74", "#286096", "#67aaed", "#8fc6ff", "#bbe2ff")
"""Background colours of the seven steps, for light and dark screens."""

LIGHT_TEXT = ("#101010",) * 5 + ("#ffffff",) * 2
DARK_TEXT = ("#ffffff",) * 4 + ("#101010",) * 3
"""Text colours, with a contrast of at least 4.5 to 1."""

TAGS = {
    "ADJ": "adjective",
    "ADP": "adposition",
    "ADV": "adverb",
    "AUX": "auxiliary",
    "CCONJ": "coordinating conjunction",
    "DET": "determiner",
    "INTJ": "interjection",
    "NOUN": "noun",
    "NUM": "numeral",
    "PART": "particle",
    "PRON": "pronoun",
    "PROPN": "proper noun",
    "PUNCT": "punctuation",
    "SCONJ": "subordinating conjunction",
    "SYM": "symbol",
    "VERB": "verb",
    "X": "other",
    "_": "unknown",
}


@dataclass(frozen=True)
class GateContext:
    """The run whose gates were read.

    system, test: names of the run and of its test set.
    source, target: language codes.
    tagger: name of the parser that assigned the parts of speech.
    """

    system: str
    test: str
    source: str
    target: str
    tagger: str


def gates_as_html(
    table: GateTable, sentences: Iterable[GatedSentence], context: GateContext, *, shown: int = SENTENCES
) -> Section:
    """Write the table and the first sentences as a section of a page."""
    ordered = sorted(sentences, key=lambda one: one.line)
    first = [one for one in ordered if not np.isnan(one.norms).all()][:shown]
    body = _BODY.format(
        system=escape(context.system),
        test=escape(the_test_set(context.test)),
        sentences=f"{table.sentences:,}",
        words=f"{table.words:,}",
        tagger=escape(context.tagger),
        norm=f"{table.norm:.3f}",
        deviation=f"{table.deviation:.3f}",
        columns="".join(f'<th scope="col">{name}</th>' for name in COLUMNS),
        rows="\n".join(map(_row, table.rows)),
        marked=f" * Fewer than {MIN_WORDS} words." if any(row.few for row in table.rows) else "",
        steps="".join(f'<span class="n{step}">{step + 1}</span>' for step in range(len(LIGHT))),
        shown=f"The first {len(first):,} of {table.sentences:,} sentences, in the order of the test set.",
        items="\n".join(_sentence(one, context) for one in first),
    )
    return Section("Gates to syntax by target word", body, _STYLE + _colours())


def levels(norms: DoubleArray) -> list[int | None]:
    """Assign norms (W,) to equal steps between the lowest and the highest of the sentence; None for no norm."""
    low, high = np.nanmin(norms), np.nanmax(norms)
    scaled = (norms - low) / (high - low) if high > low else np.where(np.isnan(norms), np.nan, 0.0)  # (W,)
    steps = len(LIGHT)
    return [None if np.isnan(one) else min(int(one * steps), steps - 1) for one in scaled.tolist()]


def _row(row: TagRow) -> str:
    label, *cells = map(escape, row.cells())
    name = f'<abbr title="{escape(TAGS.get(row.tag, "not universal"))}">{label}</abbr>'
    return f'<tr><th scope="row">{name}</th>' + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>"


def _sentence(one: GatedSentence, context: GateContext) -> str:
    low, high = np.nanmin(one.norms), np.nanmax(one.norms)
    return (
        f'<li><p class="line">line {one.line:,}, norms {low:.3f} to {high:.3f}</p>\n'
        f'<p class="source" lang="{escape(context.source)}" dir="auto">{escape(one.source)}</p>\n'
        f'<p class="target" lang="{escape(context.target)}" dir="auto">{_words(one)}</p></li>'
    )


def _words(one: GatedSentence) -> str:
    """Write every word in its colour, and the text between words unchanged."""
    highest = np.nanmax(one.norms)
    steps = levels(one.norms)
    ends = [0, *(end for _, end in one.parse.spans.tolist())]
    parts = []
    for index, (start, _) in enumerate(one.parse.spans.tolist()):
        parts.append(escape(one.target[ends[index] : start]))
        parts.append(_word(one, index, steps[index], top=bool(one.norms[index] == highest)))
    return "".join(parts) + escape(one.target[ends[-1] :])


def _word(one: GatedSentence, index: int, step: int | None, *, top: bool) -> str:
    start, end = one.parse.spans[index].tolist()
    tag = escape(one.tags[index])
    norm = "–" if step is None else f"{one.norms[index]:.3f}"
    title = "no separate piece" if step is None else f"norm {norm}" + ", the highest of the sentence" * top
    kind = ("none" if step is None else f"n{step}") + (" top" if top else "")
    # dir: the Latin letters of the tag must not change the direction of an Arabic line
    return (
        f'<span class="word {kind}" title="{tag}, {title}">{escape(one.target[start:end])}'
        f'<small dir="ltr" lang="en">{tag} {norm}</small></span>'
    )


def _colours() -> str:
    def of(backgrounds: tuple[str, ...], texts: tuple[str, ...]) -> str:
        pairs = enumerate(zip(backgrounds, texts, strict=True))
        return "\n".join(f".n{step} {{ background: {back}; color: {text}; }}" for step, (back, text) in pairs)

    dark = f"@media screen and (prefers-color-scheme: dark) {{\n{of(DARK, DARK_TEXT)}\n}}"
    return f"{of(LIGHT, LIGHT_TEXT)}\n{dark}\n"


_STYLE = """
.legend span { display: inline-block; min-width: 2rem; text-align: center; padding: .15rem 0; font-size: .8125rem; }
.sentences { list-style: none; margin: 0; padding: 0; }
.sentences li { border-top: 1px solid var(--rule); padding: .7rem 0; overflow-wrap: anywhere; }
.line { color: var(--faint); font-size: .875rem; }
.target { line-height: 1.2; margin-top: .5rem; }
.word { display: inline-block; padding: .25rem .4rem .2rem; margin: .1rem .05rem; border-radius: .25rem;
  text-align: center; vertical-align: top; max-width: 100%; box-sizing: border-box; print-color-adjust: exact; }
.word small { display: block; font-size: .6875rem; font-variant-numeric: tabular-nums; }
.top { font-weight: 700; outline: 2px solid var(--ink); outline-offset: 1px; margin: .2rem .25rem; }
.none { border: 1px dashed var(--rule); }
"""

_BODY = """<p>{system} on {test}: {words} words in {sentences} sentences.</p>
<p>The decoder reads the syntactic annotations of the source through a gate. The norm of the gate shows how far it is
open at a word: 0 = closed, 1 = open; a word of several pieces has their mean. The target is the reference, which the
model is forced to produce. Parts of speech: {tagger}.</p>
<h3>By part of speech</h3>
<div class="scroll" role="region" aria-label="Parts of speech" tabindex="0">
<table>
<thead><tr>{columns}</tr></thead>
<tbody>
{rows}
</tbody>
</table>
</div>
<p class="faint">Norm: mean over words; over all words {norm}, with a standard deviation of {deviation}. Highest: share
of sentences in which a word with the tag has the highest norm. Chance: the share expected if all words of a sentence
were equally likely. Ratio: highest / chance; 95 %: its bootstrap interval over sentences; no PUNCT: the ratio without
punctuation.{marked}</p>
<h3>Word by word</h3>
<p>{shown}</p>
<p class="legend">lowest norm of the sentence {steps} highest</p>
<p class="faint">Colours compare words within a sentence, in seven equal steps; the frame marks the word with the
highest norm. Below each word: its tag and its norm, which can be compared between sentences.</p>
<ol class="sentences">
{items}
</ol>
"""
