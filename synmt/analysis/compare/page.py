"""A section of a web page with the sentences that two systems translate most differently, one card each.

Words that differ are marked by colour and underlined: solid if the reference has the word, dashed if it does not.
"""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from synmt.analysis.compare.alignment_svg import MIN_WEIGHT, AlignedTranslation, draw_alignments
from synmt.analysis.compare.sentences import ComparedSentence, ComparedSystems
from synmt.analysis.compare.word_difference import WordKind, classify_words, stretches, word_spans
from synmt.analysis.compare.words import SentenceWords, WordDetails
from synmt.analysis.html import Section, paragraph, picture, table
from synmt.analysis.trees.svg import draw_parse
from synmt.arrays import DoubleArray


def comparison_as_html(compared: ComparedSystems, details: WordDetails) -> Section:
    """Write the scores, and the sentences in which B gains and loses most, as a section of a page."""
    a, b = compared.a, compared.b
    parts = [_summary(compared), *_legend(compared, details)]
    for heading, sentences in (
        (f"{b} gains most over {a}", compared.gaining),
        (f"{b} loses most against {a}", compared.losing),
    ):
        if sentences:
            parts.append(f"<h3>{escape(heading)}</h3>\n")
            parts += [_card(one, details.by_line[one.line], compared, details) for one in sentences]
    if not compared.sentences:
        parts.append(paragraph("The two systems have equal scores in every sentence."))
    return Section(f"{a} and {b}, sentence by sentence", "".join(parts), _STYLE)


def _summary(compared: ComparedSystems) -> str:
    found, sentences = compared.difference, compared.wins + compared.ties + compared.losses
    test = f", test set {compared.test}" if compared.test else ""
    interval = f"{found.low:+.2f} to {found.high:+.2f}"
    rows = [
        ["A", compared.a, f"{compared.score_a:.2f}", "", "", ""],
        ["B", compared.b, f"{compared.score_b:.2f}", f"{found.difference:+.2f}", interval, f"{found.p_value:.3f}"],
    ]
    lower = "" if compared.metric.higher_is_better else ", lower is better"
    columns = ["", "system", compared.metric.title, "difference", "95 %", "p"]
    counts = (
        f"Sentence by sentence, by {compared.ranking.title}: {compared.b} is better in {compared.wins:,}, equal in "
        f"{compared.ties:,}, worse in {compared.losses:,} of {sentences:,}{test}."
    )
    caption = f"{compared.metric.title}{lower}; interval and p-value by paired bootstrap"
    return table(columns, rows, caption=caption) + paragraph(counts)


def _legend(compared: ComparedSystems, details: WordDetails) -> Iterator[str]:
    ranking = f"Sentences are ranked by sentence-level {compared.ranking.title}."
    if compared.ranking.title != compared.metric.title:
        ranking += f" {compared.metric.title} is uninformative for single sentences."
    yield paragraph(ranking, faint=True)
    words = [details.by_line[one.line] for one in compared.sentences]
    if details.parser and words:
        yield paragraph(f"Trees of the source: {details.parser}.", faint=True)
    if any(one.attention_a is not None or one.attention_b is not None for one in words):
        alignments = (
            "Alignments show the source between the translation of A, above, and of B, below. Lines show the attention "
            "of each translated word to the source words, averaged over the heads of the penultimate decoder layer: "
            f"the highest weight is solid, others are dashed, and those below {MIN_WEIGHT:g} are left out."
        )
        yield paragraph(alignments, faint=True)
    yield (
        '<p class="faint">Words that differ between A and B: <mark class="right">in the reference</mark> '
        f'<mark class="other">not in the reference</mark></p>\n<p class="faint">{escape(compared.metric.title)}|'
        f"{escape(compared.metric.signature)}</p>\n"
    )


def _card(one: ComparedSentence, words: SentenceWords, compared: ComparedSystems, details: WordDetails) -> str:
    title = f"Line {one.line:,}: {compared.ranking.title} {one.score_a:.1f} → {one.score_b:.1f} ({one.gain:+.1f})"
    kinds_a, kinds_b = classify_words(one.a, one.b, one.reference), classify_words(one.b, one.a, one.reference)
    texts = [
        ("Source", _plain(one.source), details.source),
        ("Reference", _plain(one.reference), details.target),
        ("A", _marked(one.a, kinds_a), details.target),
        ("B", _marked(one.b, kinds_b), details.target),
    ]
    items = "".join(_item(*text) for text in texts if one.source or text[0] != "Source")
    pictures = ""
    if words.tree is not None and len(words.tree):
        pictures += picture(draw_parse(words.tree), caption=f"Line {one.line:,}: tree of the source")
    above = _alignment(compared.a, one.a, kinds_a, words.attention_a)
    below = _alignment(compared.b, one.b, kinds_b, words.attention_b)
    if above or below:
        source = [one.source[start:end] for start, end in words.source_words.tolist()]
        caption = f"Line {one.line:,}: attention of the translations to the source"
        pictures += picture(draw_alignments(source, above, below), caption=caption)
    return f'<article class="pair">\n<h4>{escape(title)}</h4>\n<dl>{items}</dl>\n{pictures}</article>\n'


def _item(name: str, text: str, language: str) -> str:
    lang = f' lang="{escape(language)}"' if language else ""
    return f'<dt>{escape(name)}</dt><dd{lang} dir="auto">{text}</dd>\n'


def _plain(line: str) -> str:
    return escape(line) or "–"


def _marked(line: str, kinds: list[WordKind]) -> str:
    parts = [
        escape(one.text) if one.kind == "same" else f'<mark class="{one.kind}">{escape(one.text)}</mark>'
        for one in stretches(line, kinds)
    ]
    return "".join(parts) or "–"


def _alignment(name: str, line: str, kinds: list[WordKind], attention: DoubleArray | None) -> AlignedTranslation | None:
    if attention is None or not attention.size:
        return None
    words = [line[start:end] for start, end in word_spans(line).tolist()]
    return AlignedTranslation(name, words, [kind != "same" for kind in kinds], attention)


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
