"""A part of a web page with the sentences that two systems translate most differently: a card for each.

Words that differ are told apart by colour and by the line below them: drawn through where the reference has the word,
dashed where it has not, or not so often.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from synmt.analysis.compare.alignment_svg import LEAST, Aligned, draw_alignments
from synmt.analysis.compare.sentences import Compared, ComparedSentence
from synmt.analysis.compare.word_difference import Kind, kinds, stretches, word_spans
from synmt.analysis.html import Section, paragraph, picture, table
from synmt.analysis.trees.svg import draw_parse
from synmt.arrays import DoubleArray, IntArray
from synmt.syntax.parse import Parse


@dataclass(frozen=True, eq=False)
class Shown:
    """A sentence with what is known of its words.

    tree: of the source; None without a parser.
    source_words: (W, 2) where the words of the source stand.
    attention_a, attention_b: (V, W) how strongly each word of a translation looks at the source; None without a run.
    """

    sentence: ComparedSentence
    tree: Parse | None
    source_words: IntArray
    attention_a: DoubleArray | None = None
    attention_b: DoubleArray | None = None


@dataclass(frozen=True)
class About:
    """What the page says beside the sentences.

    source, target: codes of the languages; empty where they are not known.
    parser: the name of what made the trees; empty without trees.
    """

    source: str = ""
    target: str = ""
    parser: str = ""


def make_section(compared: Compared, gaining: Sequence[Shown], losing: Sequence[Shown], about: About) -> Section:
    """Write the scores, and the sentences in which B gains and loses most, as a part of a page."""
    a, b = compared.a, compared.b
    parts = [_summary(compared), _legend(compared, about, gaining, losing)]
    for heading, some in ((f"{b} gains most over {a}", gaining), (f"{b} loses most against {a}", losing)):
        if some:
            parts.append(f"<h3>{escape(heading)}</h3>\n")
            parts += [_card(one, compared, about) for one in some]
    if not gaining and not losing:
        parts.append(paragraph("The two systems are equally good at every sentence."))
    return Section(f"{a} and {b}, sentence by sentence", "".join(parts), _STYLE)


def _summary(compared: Compared) -> str:
    found, sentences = compared.difference, compared.wins + compared.ties + compared.losses
    test = f", test set {compared.test}" if compared.test else ""
    rows = [
        ["A", compared.a, f"{compared.score_a:.2f}", "", "", ""],
        [
            *("B", compared.b, f"{compared.score_b:.2f}", f"{found.difference:+.2f}"),
            *(f"{found.low:+.2f} to {found.high:+.2f}", f"{found.p_value:.3f}"),
        ],
    ]
    lower = "" if compared.metric.higher_is_better else ", lower is better"
    columns = ["", "system", compared.metric.title, "difference", "95 %", "p"]
    counts = (
        f"Sentence by sentence, by {compared.ranking.title}: {compared.b} is better in {compared.wins:,}, equal in "
        f"{compared.ties:,}, worse in {compared.losses:,} of {sentences:,}{test}."
    )
    caption = f"{compared.metric.title}{lower}; interval and p-value by paired bootstrap"
    return table(columns, rows, caption=caption) + paragraph(counts)


def _legend(compared: Compared, about: About, *shown: Sequence[Shown]) -> str:
    notes = [f"Sentences are ranked by their own {compared.ranking.title}."]
    if compared.ranking.title != compared.metric.title:
        notes[0] += f" {compared.metric.title} says little of single sentences."
    everything = [one for some in shown for one in some]
    if about.parser and everything:
        notes.append(f"Trees of the source: {about.parser}.")
    if any(one.attention_a is not None or one.attention_b is not None for one in everything):
        notes.append(
            "Below the tree stands the source between A's translation, above, and B's: lines show how strongly each "
            "translated word looks at the source words, by the mean over the heads of the penultimate decoder layer; "
            f"the strongest is drawn through, others are dashed, those below {LEAST:g} left out."
        )
    words = (
        f'<p class="faint">Words in which A and B differ: <mark class="right">the reference has the word</mark> '
        f'<mark class="other">it has not, or not so often</mark></p>\n<p class="faint">{escape(compared.metric.title)}|'
        f"{escape(compared.metric.signature)}</p>\n"
    )
    return "".join(paragraph(note, faint=True) for note in notes) + words


def _card(shown: Shown, compared: Compared, about: About) -> str:
    one = shown.sentence
    title = f"Line {one.line:,}: {compared.ranking.title} {one.score_a:.1f} → {one.score_b:.1f} ({one.gain:+.1f})"
    kinds_a, kinds_b = kinds(one.a, one.b, one.reference), kinds(one.b, one.a, one.reference)
    texts = [
        ("Source", _plain(one.source), about.source),
        ("Reference", _plain(one.reference), about.target),
        ("A", _marked(one.a, kinds_a), about.target),
        ("B", _marked(one.b, kinds_b), about.target),
    ]
    items = "".join(_item(*text) for text in texts if one.source or text[0] != "Source")
    pictures = ""
    if shown.tree is not None and len(shown.tree):
        pictures += picture(draw_parse(shown.tree), caption=f"Line {one.line:,}: tree of the source")
    above = _aligned(compared.a, one.a, kinds_a, shown.attention_a)
    below = _aligned(compared.b, one.b, kinds_b, shown.attention_b)
    if above or below:
        source = [one.source[start:end] for start, end in shown.source_words.tolist()]
        caption = f"Line {one.line:,}: attention of the translations to the source"
        pictures += picture(draw_alignments(source, above, below), caption=caption)
    return f'<article class="pair">\n<h4>{escape(title)}</h4>\n<dl>{items}</dl>\n{pictures}</article>\n'


def _item(name: str, text: str, language: str) -> str:
    spoken = f' lang="{escape(language)}"' if language else ""
    return f'<dt>{escape(name)}</dt><dd{spoken} dir="auto">{text}</dd>\n'


def _plain(line: str) -> str:
    return escape(line) or "–"


def _marked(line: str, of_words: list[Kind]) -> str:
    found = [
        escape(one.text) if one.kind == "same" else f'<mark class="{one.kind}">{escape(one.text)}</mark>'
        for one in stretches(line, of_words)
    ]
    return "".join(found) or "–"


def _aligned(name: str, line: str, of_words: list[Kind], attention: DoubleArray | None) -> Aligned | None:
    if attention is None or not attention.size:
        return None
    words = [line[start:end] for start, end in word_spans(line).tolist()]
    return Aligned(name, words, [kind != "same" for kind in of_words], attention)


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
