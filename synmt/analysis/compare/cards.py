"""The sentences that systems translate most differently, for a web page: one card each.

Words that differ are marked by colour and underlined: solid if the reference has the word, dashed
if it does not.

Word alignments are SVG: the source between two translations, with a line for each attention weight.
The line to the source word with the highest weight is solid, the others are dashed; thicker lines
have higher weights. The colours are those of Okabe and Ito (2008), lighter on a dark screen.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from itertools import accumulate

from synmt.analysis.compare.sentences import (
    ComparedSentence,
    ComparedSystems,
    WordKind,
    classify_all,
    stretches,
    word_spans,
)
from synmt.analysis.compare.words import SentenceWords, WordDetails
from synmt.analysis.trees.drawing import display_width, draw_parse
from synmt.arrays import DoubleArray
from synmt.reporting.page import paragraph, picture
from synmt.reporting.svg import svg_document, svg_text
from synmt.reporting.values import TextBlock

MIN_WEIGHT = 0.1
"""Lower weights are not drawn, unless they are the highest of the word."""


def make_cards(compared: ComparedSystems, details: WordDetails) -> TextBlock:
    """Write each sentence with its translations, its tree and its alignments."""
    cards = [_card(one, details.by_line[one.line], compared, details) for one in compared.sentences]
    return TextBlock(html="".join([*_legend(compared, details), *cards]), style=_STYLE)


def _legend(compared: ComparedSystems, details: WordDetails) -> Iterator[str]:
    if details.parser:
        yield paragraph(f"Trees of the source: {details.parser}.", faint=True)
    if any(own is not None for one in details.by_line.values() for own in one.attentions):
        yield paragraph(_ALIGNMENTS, faint=True)
    yield (
        f'<p class="faint">Marked: {compared.marked}. <mark class="right">in the reference</mark> '
        '<mark class="other">not in the reference</mark></p>\n'
    )


_ALIGNMENTS = (
    "Alignments show the source between the translations of two systems. Lines show the attention "
    "of each translated word to the source words, averaged over the heads of the penultimate "
    "decoder layer: "
    f"the highest weight is solid, others are dashed, and those below {MIN_WEIGHT:g} are left out."
)


def _card(
    one: ComparedSentence, words: SentenceWords, compared: ComparedSystems, details: WordDetails
) -> str:
    kinds = classify_all(one.translations, one.reference)
    scores = ", ".join(
        f"{letter} {score:.1f}" for letter, score in zip(compared.letters, one.scores, strict=True)
    )
    title = f"Line {one.line:,}: {compared.ranking.title} {scores} ({one.gain:+.1f})"
    items = _item("Source", escape(one.source), details.source) if one.source else ""
    items += _item("Reference", escape(one.reference), details.target)
    for letter, line, own in zip(compared.letters, one.translations, kinds, strict=True):
        items += _item(letter, _marked(line, own), details.target)
    pictures = ""
    if words.tree is not None and len(words.tree):
        pictures = picture(draw_parse(words.tree), caption=f"Line {one.line:,}: tree of the source")
    pictures += "".join(
        _alignments(one, words, [system.name for system in compared.systems], kinds)
    )
    return f'<article class="pair">\n<h4>{escape(title)}</h4>\n<dl>{items}</dl>\n{pictures}</article>\n'


def _item(name: str, text: str, language: str) -> str:
    lang = f' lang="{escape(language)}"' if language else ""
    return f'<dt>{name}</dt><dd{lang} dir="auto">{text or "–"}</dd>\n'


def _marked(line: str, kinds: list[WordKind]) -> str:
    return "".join(
        escape(text) if kind == "same" else f'<mark class="{kind}">{escape(text)}</mark>'
        for text, kind in stretches(line, kinds)
    )


def _alignments(
    one: ComparedSentence,
    words: SentenceWords,
    names: Sequence[str],
    kinds: Sequence[list[WordKind]],
) -> Iterator[str]:
    """Draw the source between the translations of every two systems that have alignments."""
    aligned = []
    for name, line, of_words, attention in zip(
        names, one.translations, kinds, words.attentions, strict=False
    ):
        drawn = None
        if attention is not None and attention.size:
            texts = [line[start:end] for start, end in word_spans(line).tolist()]
            drawn = AlignedTranslation(
                name, texts, [kind != "same" for kind in of_words], attention
            )
        aligned.append(drawn)
    source = [one.source[start:end] for start, end in words.source_words.tolist()]
    caption = f"Line {one.line:,}: attention of the translations to the source"
    for first in range(0, len(aligned), 2):
        above, below = [*aligned[first : first + 2], None][:2]
        if above or below:
            yield picture(draw_alignments(source, above, below), caption=caption)


_STYLE = """
.pair { border-top: 1px solid var(--rule); padding: .4rem 0 .8rem; }
.pair h4 { font-size: .9375rem; margin: .5rem 0; font-variant-numeric: tabular-nums; }
.pair dl { display: grid; grid-template-columns: max-content 1fr; gap: .25rem .9rem; margin: .3rem 0; }
.pair dt { color: var(--faint); font-size: .875rem; padding-top: .1rem; }
.pair dd { margin: 0; overflow-wrap: anywhere; }
.pair figure { margin: .5rem 0; }
.pair figure img { background: none; }
mark { color: inherit; padding: 0 .12em; border-radius: .15em; text-decoration-line: underline;
  text-decoration-thickness: 2px; text-underline-offset: .2em; print-color-adjust: exact; }
mark.right { background: #dcebfa; text-decoration-color: #0465af; }
mark.other { background: #fdebd8; text-decoration-color: #b34d00; text-decoration-style: dashed; }
@media screen and (prefers-color-scheme: dark) {
  mark.right { background: #1c3a56; text-decoration-color: #8fc6ff; }
  mark.other { background: #4a2d12; text-decoration-color: #ffb066; }
}
@media (max-width: 34rem) { .pair dl { grid-template-columns: 1fr; gap: 0; } .pair dd { margin-bottom: .45rem; } }
@media print { .pair { break-inside: avoid; } }
"""


_LETTER, _GAP, _MARGIN, _ROW = 8.6, 16, 14, 84
"""Pixels: width of a letter, space between words, margin, distance between rows of words."""

_ALIGNMENT_STYLE = """
text { text-anchor: middle }
.key { font-size: 12px; text-anchor: start; fill: #555555 }
.differs { font-weight: bold; text-decoration: underline }
line { stroke: #777777; stroke-dasharray: 4 3 }
.best { stroke: #0072b2; stroke-dasharray: none }
@media (prefers-color-scheme: dark) {
  .key { fill: #bbbbbb }
  line { stroke: #999999 }
  .best { stroke: #56b4e9 }
}
"""


@dataclass(frozen=True, eq=False)
class AlignedTranslation:
    """A translation with its alignment to the source.

    name: name of the system.
    words: V words.
    differs: for each of the V words, whether the other translation does not have it.
    weights: (V, W) attention of each word to each source word.
    """

    name: str
    words: Sequence[str]
    differs: Sequence[bool]
    weights: DoubleArray


def draw_alignments(
    source: Sequence[str], above: AlignedTranslation | None, below: AlignedTranslation | None
) -> str:
    """Draw a source between two translations, or next to a single one."""
    rows = [one.words if one else [] for one in (above, below)]
    width = (
        max(sum(map(_width, words)) + _GAP * (len(words) - 1) for words in (source, *rows))
        + 2 * _MARGIN
    )
    middle = 42 + _ROW if above else 28
    height = middle + (_ROW + 32 if below else 14)
    places = _centres(source, width)
    parts = [
        part
        for one, down in ((above, -1), (below, 1))
        if one
        for part in _system(one, places, width, middle, down)
    ]
    parts += [svg_text(x, middle, word) for x, word in zip(places, source, strict=True)]
    return svg_document(parts, width, height, style=_ALIGNMENT_STYLE)


def _system(
    one: AlignedTranslation, source: Sequence[float], width: float, middle: float, down: int
) -> Iterator[str]:
    """Draw a translation above the source, with `down` -1, or below it, with 1."""
    if one is None:
        return
    baseline = middle + down * _ROW
    near, far = (middle + 6, baseline - 16) if down > 0 else (middle - 16, baseline + 6)
    centres = _centres(one.words, width)
    for x, weights in zip(centres, one.weights.tolist(), strict=True):
        best = max(weights, default=0.0)
        for place, weight in zip(source, weights, strict=True):
            if weight >= MIN_WEIGHT or weight == best > 0:
                kind = ' class="best"' if weight == best else ""
                strength = (
                    f'stroke-width="{0.7 + 3 * weight:.1f}" '
                    f'stroke-opacity="{0.3 + 0.7 * min(weight, 1):.2f}"'
                )
                ends = f'x1="{place:.1f}" y1="{near:.1f}" x2="{x:.1f}" y2="{far:.1f}"'
                yield f"<line{kind} {ends} {strength}/>"
    for x, word, differs in zip(centres, one.words, one.differs, strict=True):
        yield svg_text(x, baseline, word, "differs" if differs else "")
    yield svg_text(_MARGIN, baseline + (22 if down > 0 else -24), one.name, "key")


def _centres(words: Sequence[str], width: float) -> list[float]:
    """Spread words over the width, and return the centre of each."""
    widths = [_width(word) for word in words]
    gap = (width - 2 * _MARGIN - sum(widths)) / max(len(words) - 1, 1)
    ends = accumulate(wide + gap for wide in widths)
    return [_MARGIN + end - gap - wide / 2 for end, wide in zip(ends, widths, strict=True)]


def _width(word: str) -> float:
    return _LETTER * display_width(word)
