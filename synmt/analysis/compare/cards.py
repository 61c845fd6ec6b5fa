"""The sentences that systems translate most differently, for a web page: one card each.

Words that differ are marked by colour and underlined: solid if the reference has the word, dashed
if it does not.
"""

from __future__ import annotations

from pathlib import Path

from synmt.analysis.compare.sentences import (
    ComparedSentence,
    ComparedSystems,
    classify_all,
    stretches,
    word_spans,
    words_at,
)
from synmt.analysis.compare.words import SentenceWords, WordDetails
from synmt.analysis.trees.drawing import draw_parse
from synmt.decode.alignment import best_pairs
from synmt.reporting.page import picture, template
from synmt.reporting.values import TextBlock


def make_cards(compared: ComparedSystems, details: WordDetails) -> TextBlock:
    """Write each sentence with its translations, its tree and its alignments."""
    cards = []
    for one in compared.sentences:
        words = details.by_line[one.line]
        caption = f"Line {one.line}: tree of the source"
        tree = picture(draw_parse(words.tree), caption=caption) if words.tree else ""
        cards.append((one, tree, _translations(one, words, compared)))
    cards_page = template(Path(__file__).parent, "cards.html")
    return TextBlock(html=cards_page.render(compared=compared, parser=details.parser, cards=cards))


def _translations(
    one: ComparedSentence, words: SentenceWords, compared: ComparedSystems
) -> list[tuple[str, float, list[tuple[str, str]], list[str]]]:
    """List the letter, the score, the stretches and the aligned words of each translation."""
    source, found = words_at(one.source, words.source_words), []
    places = zip(
        compared.letters,
        one.scores,
        one.translations,
        classify_all(one.translations, one.reference),
        words.attentions,
        strict=True,
    )
    for letter, score, line, kinds, attention in places:
        target = words_at(line, word_spans(line))
        pairs = [] if attention is None else best_pairs(attention)
        aligned = [f"{source[first]}–{target[second]}" for first, second in pairs]
        found.append((letter, score, list(stretches(line, kinds)), aligned))
    return found
