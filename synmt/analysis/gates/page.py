"""Target words coloured by gate norm, as HTML (Tran & Bisk, 2018, figure 4).

The seven colours are of one hue and differ in lightness; they range from the lowest to the highest
norm of a sentence.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

import numpy as np

from synmt.analysis.gates.norms import GatedSentence
from synmt.arrays import DoubleArray

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


def words_as_html(
    sentences: Sequence[GatedSentence], languages: tuple[str, str], *, shown: int = SENTENCES
) -> str:
    """Write the first sentences; languages: the codes of source and target."""
    gated = [one for one in sentences if not np.isnan(one.norms).all()]
    first = gated[:shown]
    return _BODY.format(
        shown=f"{len(first):,} of {len(gated):,}",
        steps="".join(f'<span class="n{step}">{step + 1}</span>' for step in range(len(LIGHT))),
        items="\n".join(_sentence(one, *map(escape, languages)) for one in first),
    )


def levels(norms: DoubleArray) -> list[int | None]:
    """Assign norms (W,) to equal steps between the lowest and the highest of the sentence; None for
    no norm."""
    low, high = np.nanmin(norms), np.nanmax(norms)
    scaled = (norms - low) / (high - low or 1) * len(LIGHT)  # (W,)
    return [None if np.isnan(one) else min(int(one), len(LIGHT) - 1) for one in scaled.tolist()]


def _sentence(one: GatedSentence, source: str, target: str) -> str:
    """Write every word in its colour, and the text between words unchanged."""
    low, high = float(np.nanmin(one.norms)), float(np.nanmax(one.norms))
    text, end = "", 0
    columns = one.parse.spans.tolist(), one.tags, one.norms.tolist(), levels(one.norms)
    for (start, stop), tag, norm, step in zip(*columns, strict=True):
        text += escape(one.target[end:start])
        end = stop
        kind, about, below = f"n{step}", f"norm {norm:.3f}", f"{tag} {norm:.3f}"
        if step is None:
            kind, about, below = "none", "no separate piece", f"{tag} –"
        elif norm == high:
            kind, about = f"{kind} top", f"{about}, the highest of the sentence"
        # dir: the Latin letters of the tag must not change the direction of an Arabic line
        text += (
            f'<span class="word {kind}" title="{escape(TAGS.get(tag, tag))}, {about}">'
            f'{escape(one.target[start:stop])}<small dir="ltr" '
            f'lang="en">{escape(below)}</small></span>'
        )
    return (
        f'<li><p class="line">line {one.line:,}, norms {low:.3f} to {high:.3f}</p>\n'
        f'<p class="source" lang="{source}" dir="auto">{escape(one.source)}</p>\n'
        f'<p class="target" lang="{target}" dir="auto">{text}{escape(one.target[end:])}</p></li>'
    )


def style() -> str:
    """Write the CSS of the words, for light and dark screens."""
    light, dark = (
        "\n".join(
            f".n{step} {{ background: {back}; color: {text}; }}"
            for step, (back, text) in enumerate(pairs)
        )
        for pairs in (zip(LIGHT, LIGHT_TEXT, strict=True), zip(DARK, DARK_TEXT, strict=True))
    )
    return f"{_STYLE}{light}\n@media screen and (prefers-color-scheme: dark) {{\n{dark}\n}}\n"


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

_BODY = """<p>The first {shown} sentences, in the order of the test set.</p>
<p class="legend">lowest norm of the sentence {steps} highest</p>
<p class="faint">Colours compare words within a sentence, in seven equal steps; the frame marks the word with the
highest norm. Below each word: its tag and its norm, which can be compared between sentences.</p>
<ol class="sentences">
{items}
</ol>
"""
