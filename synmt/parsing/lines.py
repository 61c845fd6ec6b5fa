"""The way from lines to Stanza's sentences and back: batches, long sentences, one tree for each
line."""

from __future__ import annotations

import logging
import re
from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from html import unescape
from itertools import accumulate, chain
from typing import Any, TypeVar

import numpy as np

from synmt.arrays import IntPairs, Values
from synmt.syntax.arcs import join_arcs, keep_most_probable, token_arcs
from synmt.syntax.merging import token_tree
from synmt.syntax.parse import WORD, Arcs, Parse, flat_parse, words_at

T = TypeVar("T")

_logger = logging.getLogger(__name__)

LONGEST = 400
"""Maximum words in a sentence: the scores of 400 x 400 x 50 labels take 32 MB."""

# Stanza's tokenizer reads 1,000 characters at a time; where the next ones begin depends on the rest
# of the batch
MAX_CHARACTERS = 900
# its patterns for URLs and addresses take quadratic time on ASCII without whitespace
_UNBROKEN = re.compile(r"[!-~]{1000}")

_ENTITIES = ("&amp;", "&#124;", "&lt;", "&gt;", "&apos;", "&quot;", "&#91;", "&#93;")
_CHARACTERS = {"@-@": "-", "@/@": "/"} | {name: unescape(name) for name in _ENTITIES}
"""What Moses' tokenizer writes for characters; none of these escapes is part of another one."""
_ESCAPED = re.compile("|".join(map(re.escape, _CHARACTERS)))


Parsed = tuple[Parse, str]
"""A tree, and the reason why it is flat or joined; empty if there is none."""

_Document = list[list[Values]]
"""The words of sentences, as Stanza writes them."""

_STANZAS = {"lemma": "lemma", "fine_tag": "xpos", "morphology": "feats"}
"""How Stanza calls the features of a word."""


@dataclass(frozen=True)
class Tokens:
    """The words of a sentence as the models read them, and their positions [start, end) in the
    line."""

    words: list[str]
    spans: IntPairs

    def split(self) -> list[Tokens]:
        """Split a sentence into parts of at most LONGEST words."""
        starts = range(0, len(self.words), LONGEST)
        return [
            Tokens(self.words[at : at + LONGEST], self.spans[at : at + LONGEST]) for at in starts
        ]


def warn_of_failure(line: int, reason: str) -> None:
    """Log that a line, counted from 1, has a flat or joined tree."""
    _logger.warning(
        f"line {line} could not be parsed in one piece; using a flat or joined tree: {reason}"
    )


def unreadable(line: str) -> str:
    """Return the reason why Stanza cannot parse a line; empty if it can."""
    return "1,000 or more characters without whitespace" if _UNBROKEN.search(line) else ""


def batches(lines: Sequence[str], batch_words: int) -> Iterator[list[str]]:
    """Group lines of similar length in batches of about `batch_words` words; a very long line has
    its own batch."""
    batch: list[str] = []
    words = 0
    for cost, line in sorted(((_cost(line), line) for line in lines), reverse=True):
        if len(line) > MAX_CHARACTERS:
            yield [line]
            continue
        if batch and words + cost > batch_words:
            yield batch
            batch, words = [], 0
        batch.append(line)
        words += cost
    if batch:
        yield batch


def _cost(line: str) -> int:
    # in languages that are written without spaces, a word has about two characters
    dense = 5 if line.isascii() else 3
    return max(line.count(" ") + 1, len(line) // dense)


def split_long(sentences: _Document) -> _Document:
    """Split sentences of more than LONGEST tokens into parts of LONGEST, with new word numbers."""
    parts: _Document = []
    for sentence in sentences:
        for start in range(0, len(sentence), LONGEST):
            part = sentence[start : start + LONGEST]
            parts.append([{**token, "id": (number,)} for number, token in enumerate(part, start=1)])
    return parts


def given_words(lines: Sequence[str]) -> _Document:
    """Write the words of lines, which have a space between two, as Stanza's tokenizer would."""
    sentences: _Document = []
    for tokens, start in zip(given_tokens(lines), _starts(lines), strict=False):
        places = enumerate(zip(tokens.words, tokens.spans, strict=True), start=1)
        sentences.append(
            [
                {"id": (id,), "text": word, "start_char": start + first, "end_char": start + end}
                for id, (word, (first, end)) in places
            ]
        )
    return sentences


def given_tokens(lines: Sequence[str]) -> list[Tokens]:
    """Split lines at their spaces; the parser sees the characters that an escaping tokenizer has
    replaced."""
    matches = [list(WORD.finditer(line)) for line in lines]
    return [
        Tokens([unescaped(match[0]) for match in words], [match.span() for match in words])
        for words in matches
    ]


def unescaped(word: str) -> str:
    """Return a word of Moses' tokenizer as it is in the text: `&amp;` is &, `@-@` is a hyphen."""
    return _ESCAPED.sub(lambda match: _CHARACTERS[match[0]], word)


def tokens_of(lines: Sequence[str], sentences: Sequence[Any]) -> list[list[str]]:
    """Group the surface tokens of Stanza's sentences by line."""
    starts = _starts(lines)
    of_line: list[list[str]] = [[] for _ in lines]
    for token in (token for sentence in sentences for token in sentence.tokens):
        index = bisect_right(starts, token.start_char) - 1
        first, end = token.start_char - starts[index], token.end_char - starts[index]
        of_line[index].append(lines[index][first:end])
    return of_line


def _starts(lines: Sequence[str]) -> list[int]:
    """Find where each line starts in Stanza's text, in which two newlines join them; the end comes
    last."""
    return [0, *accumulate(len(line) + 2 for line in lines)]


def parses_of(
    lines: Sequence[str],
    sentences: Sequence[Any],
    arcs: Sequence[Arcs] | None = None,
    features: Collection[str] = (),
) -> list[Parsed]:
    """Make one tree for each line from Stanza's sentences: tree and failure ("" if none).

    lines: in Stanza's text, they were joined by two newlines.
    arcs: those of each sentence's words; None for trees without probabilities.
    features: those of FEATURES that are read.
    """
    starts = _starts(lines)
    of_line: list[list[Analysis]] = [[] for _ in lines]
    tables = [None] * len(sentences) if arcs is None else arcs
    for sentence, table in zip(sentences, tables, strict=True):
        index = bisect_right(starts, sentence.tokens[0].start_char) - 1
        of_line[index].append(_read(sentence, table, starts[index], features))
    return list(map(join_analyses, lines, of_line))


@dataclass(frozen=True)
class Analysis:
    """Stanza's analysis of a sentence, by its surface tokens; spans are positions [start, end) in
    the line."""

    spans: IntPairs
    parents: list[int]
    relations: list[str]
    tags: list[str]
    arcs: Arcs | None
    features: Mapping[str, list[str]] = field(default_factory=dict)


def _read(sentence: Any, table: Arcs | None, offset: int, features: Collection[str]) -> Analysis:
    words = sentence.words
    above = [index if word.head == 0 else word.head - 1 for index, word in enumerate(words)]
    ends = list(accumulate(len(token.words) for token in sentence.tokens))
    tokens = [range(start, end) for start, end in zip([0, *ends], ends, strict=False)]
    leading, parents, relations = token_tree(above, [word.deprel for word in words], tokens)
    return Analysis(
        spans=[(token.start_char - offset, token.end_char - offset) for token in sentence.tokens],
        parents=parents,
        relations=relations,
        tags=[words[word].upos or "_" for word in leading],
        arcs=None if table is None else token_arcs(table, tokens, leading, parents, relations),
        features={
            name: [getattr(words[word], _STANZAS[name]) or "_" for word in leading]
            for name in features
        },
    )


def join_analyses(line: str, sentences: list[Analysis]) -> Parsed:
    """Make the tree of a line from its sentences: tree and failure ("" if none)."""
    if not sentences:
        return flat_parse(line), "the parser finds no word in the line"
    spans = np.array(_joined(sentence.spans for sentence in sentences), dtype=np.int64)
    parents: list[int] = []
    relations = _joined(sentence.relations for sentence in sentences)
    for sentence in sentences:
        first = len(parents)
        parents += [parent + first for parent in sentence.parents]
    # later roots are attached to the first one
    root, *later = (word for word, parent in enumerate(parents) if word == parent)
    for other in later:
        parents[other], relations[other] = root, "parataxis"
    parse = Parse(
        words=words_at(line, spans),
        spans=spans,
        parents=np.array(parents, dtype=np.int64),
        relations=relations,
        tags=_joined(sentence.tags for sentence in sentences),
        arcs=_joined_arcs(sentences, root),
        features={
            name: _joined(sentence.features[name] for sentence in sentences)
            for name in sentences[0].features
        },
    )
    # a word in a wrong place fails the line; it must never become a tree
    assert spans.min() >= 0, line
    assert all(parse.words), line
    if later and any(len(sentence.spans) >= LONGEST for sentence in sentences):
        return parse, f"split into {len(sentences)} parts of at most {LONGEST} words"
    return parse, ""


def _joined(lists: Iterable[Iterable[T]]) -> list[T]:
    return list(chain.from_iterable(lists))


def _joined_arcs(sentences: list[Analysis], root: int) -> Arcs | None:
    tables = [sentence.arcs for sentence in sentences if sentence.arcs is not None]
    if not tables:
        return None
    lengths = [len(sentence.parents) for sentence in sentences]
    arcs = keep_most_probable(join_arcs(tables, lengths, root))
    # NaN in the parser's scores would leave a word without arcs
    assert len(np.unique(arcs.words)) == sum(lengths), "a word has no arcs"
    return arcs
