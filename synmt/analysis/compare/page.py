"""A section of a web page with the sentences that systems translate most differently, one card each.

Words that differ are marked by colour and underlined: solid if the reference has the word, dashed if it does not.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape

from synmt.analysis.compare.alignment_svg import MIN_WEIGHT, AlignedTranslation, draw_alignments
from synmt.analysis.compare.boxes_svg import draw_boxes
from synmt.analysis.compare.sentences import ComparedSentence, ComparedSystems
from synmt.analysis.compare.text import headings, marks, systems_table
from synmt.analysis.compare.word_difference import WordKind, classify_all, stretches, word_spans
from synmt.analysis.compare.words import SentenceWords, WordDetails
from synmt.analysis.trees.svg import draw_parse
from synmt.arrays import DoubleArray
from synmt.errors import listed
from synmt.evaluation.outputs import the_test_set
from synmt.reporting.page import Section, paragraph, picture, table


def comparison_as_html(compared: ComparedSystems, details: WordDetails) -> Section:
    """Write the scores, and the sentences with the largest gains and losses, as a section of a page."""
    names = [one.name for one in compared.systems]
    parts = [_summary(compared), *_legend(compared, details)]
    for heading, sentences in zip(headings(names), (compared.gaining, compared.losing), strict=True):
        if sentences:
            parts.append(f"<h3>{escape(heading)}</h3>\n")
            parts += [_card(one, details.by_line[one.line], compared, details) for one in sentences]
    if not compared.sentences:
        count = "two" if len(names) == 2 else str(len(names))
        parts.append(paragraph(f"The {count} systems have equal scores in every sentence."))
    return Section(f"{listed(names)}, sentence by sentence", "".join(parts), _STYLE)


def boxes_of(compared: ComparedSystems) -> str:
    """Draw the sentence scores of all systems as SVG."""
    lower = "" if compared.ranking.higher_is_better else ", lower is better"
    scores = [(one.name, one.sentences) for one in compared.systems]
    return draw_boxes(scores, f"{compared.ranking.title} of single sentences (points{lower})")


def _summary(compared: ComparedSystems) -> str:
    lower = "" if compared.metric.higher_is_better else ", lower is better"
    test = f" of {the_test_set(compared.test)}" if compared.test else ""
    caption = (
        f"{compared.ranking.title} of single sentences{test}: a box has the middle half of a system's sentences, with "
        "a line at the median and a diamond at the mean; whiskers reach up to 1.5 widths of the box."
    )
    box = picture(boxes_of(compared), caption=caption)
    if len(compared.systems) > 2:
        text = systems_table(compared)
        how = "intervals by paired bootstrap, p corrected for the number of systems (Holm)"
        caption = f"{compared.metric.title}{lower}; {how}"
        sentences = f"{len(compared.systems[0].sentences):,} sentences{test}"
        counts = f"Better, equal, worse: how many of the {sentences}, by {compared.ranking.title}."
        return table(text.columns, text.rows, caption=caption) + paragraph(counts) + box
    a, b = compared.systems
    found = b.difference
    assert found is not None
    rows = [
        ["A", a.name, f"{a.score:.2f}", "", "", ""],
        ["B", b.name, f"{b.score:.2f}", f"{found.difference:+.2f}", found.interval, f"{found.p_value:.3f}"],
    ]
    columns = ["", "system", compared.metric.title, "difference", "95 %", "p"]
    counts = (
        f"Sentence by sentence, by {compared.ranking.title}: {b.name} is better in {b.wins:,}, equal in "
        f"{b.ties:,}, worse in {b.losses:,} of {len(b.sentences):,}{test}."
    )
    caption = f"{compared.metric.title}{lower}; interval and p-value by paired bootstrap"
    return table(columns, rows, caption=caption) + paragraph(counts) + box


def _legend(compared: ComparedSystems, details: WordDetails) -> Iterator[str]:
    ranking = f"Sentences are ranked by sentence-level {compared.ranking.title}."
    if compared.ranking.title != compared.metric.title:
        ranking += f" {compared.metric.title} is uninformative for single sentences."
    yield paragraph(ranking, faint=True)
    words = [details.by_line[one.line] for one in compared.sentences]
    if details.parser and words:
        yield paragraph(f"Trees of the source: {details.parser}.", faint=True)
    if any(own is not None for one in words for own in one.attentions):
        pair = len(compared.systems) == 2
        between = "the translation of A, above, and of B, below" if pair else "the translations of two systems"
        alignments = (
            f"Alignments show the source between {between}. Lines show the attention "
            "of each translated word to the source words, averaged over the heads of the penultimate decoder layer: "
            f"the highest weight is solid, others are dashed, and those below {MIN_WEIGHT:g} are left out."
        )
        yield paragraph(alignments, faint=True)
    which = "Words that differ between A and B:" if len(compared.systems) == 2 else f"Marked: {marks(compared)}."
    yield (
        f'<p class="faint">{which} <mark class="right">in the reference</mark> '
        f'<mark class="other">not in the reference</mark></p>\n<p class="faint">{escape(compared.metric.title)}|'
        f"{escape(compared.metric.signature)}</p>\n"
    )


def _card(one: ComparedSentence, words: SentenceWords, compared: ComparedSystems, details: WordDetails) -> str:
    kinds = classify_all(one.translations, one.reference)
    texts = [("Source", _plain(one.source), details.source), ("Reference", _plain(one.reference), details.target)]
    texts += [
        (letter, _marked(line, own), details.target)
        for letter, line, own in zip(compared.letters, one.translations, kinds, strict=True)
    ]
    items = "".join(_item(*text) for text in texts if one.source or text[0] != "Source")
    pictures = ""
    if words.tree is not None and len(words.tree):
        pictures += picture(draw_parse(words.tree), caption=f"Line {one.line:,}: tree of the source")
    pictures += "".join(_alignments(one, words, compared, kinds))
    return f'<article class="pair">\n<h4>{escape(_title(one, compared))}</h4>\n<dl>{items}</dl>\n{pictures}</article>\n'


def _title(one: ComparedSentence, compared: ComparedSystems) -> str:
    if len(one.scores) == 2:
        scores = " → ".join(f"{score:.1f}" for score in one.scores)
    else:
        scores = ", ".join(f"{letter} {score:.1f}" for letter, score in zip(compared.letters, one.scores, strict=True))
    return f"Line {one.line:,}: {compared.ranking.title} {scores} ({one.gain:+.1f})"


def _alignments(
    one: ComparedSentence, words: SentenceWords, compared: ComparedSystems, kinds: Sequence[list[WordKind]]
) -> Iterator[str]:
    """Draw the source between the translations of every two systems that have alignments."""
    names = [system.name for system in compared.systems]
    aligned = [_alignment(*each) for each in zip(names, one.translations, kinds, words.attentions, strict=False)]
    source = [one.source[start:end] for start, end in words.source_words.tolist()]
    caption = f"Line {one.line:,}: attention of the translations to the source"
    for first in range(0, len(aligned), 2):
        above, below = [*aligned[first : first + 2], None][:2]
        if above or below:
            yield picture(draw_alignments(source, above, below), caption=caption)


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
