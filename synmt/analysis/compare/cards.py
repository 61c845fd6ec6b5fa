"""The sentences that systems translate most differently, for a web page: one card each.

Words that differ are marked by colour and underlined: solid if the reference has the word, dashed
if it does not.

Word alignments are SVG: the source above a translation, with a line for each attention weight. The
line to the source word with the highest weight is solid, the others are dashed; thicker lines have
higher weights. The colours are those of Okabe and Ito (2008), lighter on a dark screen.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape

from synmt.analysis.compare.sentences import (
    ComparedSentence,
    ComparedSystems,
    WordKind,
    classify_all,
    stretches,
    word_spans,
)
from synmt.analysis.compare.words import SentenceWords, WordDetails
from synmt.analysis.trees.drawing import display_width, draw_parse, svg_document, svg_text
from synmt.arrays import DoubleArray, IntArray
from synmt.reporting.page import paragraph, picture
from synmt.reporting.values import TextBlock

MIN_WEIGHT = 0.1
"""Lower weights are not drawn, unless they are the highest of the word."""


def make_cards(compared: ComparedSystems, details: WordDetails) -> TextBlock:
    """Write each sentence with its translations, its tree and its alignments."""
    legend = ""
    if details.parser:
        legend += paragraph(f"Trees of the source: {details.parser}.", faint=True)
    if any(own is not None for one in details.by_line.values() for own in one.attentions):
        legend += paragraph(_ALIGNMENTS, faint=True)
    legend += (
        f'<p class="faint">Marked: {compared.marked}. <mark class="right">in the reference</mark> '
        '<mark class="other">not in the reference</mark></p>\n'
    )
    cards = [_card(one, details.by_line[one.line], compared, details) for one in compared.sentences]
    return TextBlock(html="".join([legend, *cards]), style=_STYLE)


_ALIGNMENTS = (
    "Alignments show the source above the translation of a system. Lines show the attention of "
    "each translated word to the source words, averaged over the heads of the penultimate decoder "
    "layer: the highest weight is solid, others are dashed, and those below "
    f"{MIN_WEIGHT:g} are left out."
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
    if words.tree:
        pictures = picture(draw_parse(words.tree), caption=f"Line {one.line:,}: tree of the source")
    source = _words(one.source, words.source_words)
    for system, line, own, attention in zip(
        compared.systems, one.translations, kinds, words.attentions, strict=True
    ):
        if attention is not None and attention.size:
            caption = f"Line {one.line:,}: attention of {system.name} to the source"
            translation = _words(line, word_spans(line))
            drawn = draw_alignment(source, translation, own, attention)
            pictures += picture(drawn, caption=caption)
    body = f"<h4>{escape(title)}</h4>\n<dl>{items}</dl>\n{pictures}"
    return f'<article class="pair">\n{body}</article>\n'


def _item(name: str, text: str, language: str) -> str:
    lang = f' lang="{escape(language)}"' if language else ""
    return f'<dt>{name}</dt><dd{lang} dir="auto">{text or "–"}</dd>\n'


def _marked(line: str, kinds: list[WordKind]) -> str:
    return "".join(
        escape(text) if kind == "same" else f'<mark class="{kind}">{escape(text)}</mark>'
        for text, kind in stretches(line, kinds)
    )


def _words(line: str, spans: IntArray) -> list[str]:
    return [line[start:end] for start, end in spans.tolist()]


_STYLE = """
.pair { border-top: 1px solid var(--rule); padding: .4rem 0 .8rem; }
.pair h4 { font-size: .9375rem; margin: .5rem 0; font-variant-numeric: tabular-nums; }
.pair dl { display: grid; grid-template-columns: max-content 1fr; gap: .25rem .9rem;
  margin: .3rem 0; }
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
@media (max-width: 34rem) {
  .pair dl { grid-template-columns: 1fr; gap: 0; }
  .pair dd { margin-bottom: .45rem; }
}
@media print { .pair { break-inside: avoid; } }
"""


_LETTER, _GAP, _MARGIN = 8.6, 16, 14
"""Pixels: width of a letter, space between words, margin."""

_SOURCE, _TARGET, _HEIGHT = 28, 112, 126
"""Pixels: the baselines of the words, and the height of a picture."""

_ALIGNMENT_STYLE = """
text { text-anchor: middle }
.differs { font-weight: bold; text-decoration: underline }
line { stroke: #777777; stroke-dasharray: 4 3 }
.best { stroke: #0072b2; stroke-dasharray: none }
@media (prefers-color-scheme: dark) {
  line { stroke: #999999 }
  .best { stroke: #56b4e9 }
}
"""


def draw_alignment(
    source: Sequence[str],
    translation: Sequence[str],
    kinds: Sequence[WordKind],
    attention: DoubleArray,
) -> str:
    """Draw a source above a translation of V words, with their attention to the W source words:
    (V, W)."""
    rows = source, translation
    width = 2 * _MARGIN + max(sum(map(_width, row)) + _GAP * (len(row) - 1) for row in rows)
    above, below = (_centres(row, width) for row in rows)
    parts = [
        line
        for x, own in zip(below, attention.tolist(), strict=True)
        for line in _lines(x, own, above)
    ]
    parts += [svg_text(x, _SOURCE, word) for x, word in zip(above, source, strict=True)]
    for x, word, kind in zip(below, translation, kinds, strict=True):
        parts.append(svg_text(x, _TARGET, word, "" if kind == "same" else "differs"))
    return svg_document(parts, width, _HEIGHT, style=_ALIGNMENT_STYLE)


def _lines(x: float, weights: Sequence[float], places: Sequence[float]) -> Iterator[str]:
    """Draw the lines from a translated word to the source words."""
    best = max(weights)
    for place, weight in zip(places, weights, strict=True):
        if weight >= MIN_WEIGHT or weight == best > 0:
            kind = ' class="best"' if weight == best else ""
            ends = f'x1="{place:.1f}" y1="{_SOURCE + 6}" x2="{x:.1f}" y2="{_TARGET - 16}"'
            width, opacity = 0.7 + 3 * weight, 0.3 + 0.7 * min(weight, 1)
            yield f'<line{kind} {ends} stroke-width="{width:.1f}" stroke-opacity="{opacity:.2f}"/>'


def _centres(words: Sequence[str], width: float) -> list[float]:
    """Spread words over the width, and return the centre of each."""
    widths = list(map(_width, words))
    gap = (width - 2 * _MARGIN - sum(widths)) / max(len(words) - 1, 1)
    return [
        _MARGIN + sum(widths[:place]) + gap * place + wide / 2 for place, wide in enumerate(widths)
    ]


def _width(word: str) -> float:
    return _LETTER * display_width(word)
