"""Between lines and Stanza's sentences: batches of lines, long sentences, sentences back to lines."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import numpy as np

from synmt.syntax.arcs import joined_arcs, sparse, token_arcs
from synmt.syntax.multiword import join_trees, leading_words, token_parents
from synmt.syntax.parse import Arcs, Parse, flat_parse

LONGEST = 400
"""Words that are parsed as one sentence: 400 x 400 x 50 labels are 32 MB."""

# Stanza's tokenizer reads 1,000 characters at a time; where the next begin depends on the rest of the batch
_ALONE = 900
# its patterns for addresses take quadratic time on ASCII without a blank
_UNBROKEN = re.compile(r"[!-~]{1000}")


def unreadable(line: str) -> str:
    """Say why a line cannot be given to Stanza; empty where it can."""
    return "1,000 or more characters without a blank" if _UNBROKEN.search(line) else ""


def batches(lines: Sequence[str], batch_words: int) -> Iterator[list[str]]:
    """Group lines of like length; a batch has about `batch_words` words, a very long line is alone."""
    batch: list[str] = []
    words = 0
    for cost, line in sorted(((_cost(line), line) for line in lines), reverse=True):
        if len(line) > _ALONE:
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
    # languages that are written without blanks have a word in about two characters
    dense = 5 if line.isascii() else 3
    return max(line.count(" ") + 1, len(line) // dense)


def cut(sentences: list[list[dict[str, Any]]]) -> list[list[dict[str, Any]]]:
    """Cut sentences of more than LONGEST tokens into pieces of LONGEST, numbered anew."""
    pieces: list[list[dict[str, Any]]] = []
    for sentence in sentences:
        for start in range(0, len(sentence), LONGEST):
            piece = sentence[start : start + LONGEST]
            pieces.append([{**token, "id": (index,)} for index, token in enumerate(piece, start=1)])
    return pieces


def parses_of(
    lines: Sequence[str], sentences: Sequence[Any], arcs: Sequence[Arcs] | None = None
) -> list[tuple[Parse, str]]:
    """Sort Stanza's sentences back to the lines that were joined by two line ends: tree and failure.

    arcs: of the words of each sentence, where they were asked for.
    """
    starts = [0, *accumulate(len(line) + 2 for line in lines)]
    of_line: list[list[_Sentence]] = [[] for _ in lines]
    for sentence, table in zip(sentences, [None] * len(sentences) if arcs is None else arcs, strict=True):
        of_line[bisect_right(starts, sentence.tokens[0].start_char) - 1].append(_read(sentence, table))
    return [_one(*args) for args in zip(lines, of_line, starts[:-1], strict=True)]


@dataclass(frozen=True)
class _Sentence:
    """What Stanza says of a sentence, by its surface tokens."""

    spans: list[tuple[int, int]]
    parents: list[int]
    relations: list[str]
    tags: list[str]
    arcs: Arcs | None


def _read(sentence: Any, table: Arcs | None) -> _Sentence:
    words = sentence.words
    above = [index if word.head == 0 else word.head - 1 for index, word in enumerate(words)]
    ends = list(accumulate(len(token.words) for token in sentence.tokens))
    tokens = [range(start, end) for start, end in zip([0, *ends], ends, strict=False)]
    leading = leading_words(above, tokens)
    parents = token_parents(above, tokens, leading)
    relations = ["root" if above[word] == word else words[word].deprel for word in leading]
    return _Sentence(
        spans=[(token.start_char, token.end_char) for token in sentence.tokens],
        parents=parents,
        relations=relations,
        tags=[words[word].upos or "_" for word in leading],
        arcs=None if table is None else token_arcs(table, tokens, leading, parents, relations),
    )


def _one(line: str, sentences: list[_Sentence], offset: int) -> tuple[Parse, str]:
    if not sentences:
        return flat_parse(line), "the parser sees no word in the line"
    spans = np.array([span for sentence in sentences for span in sentence.spans], dtype=np.int64) - offset
    parents = join_trees([sentence.parents for sentence in sentences])
    parse = Parse(
        words=[line[start:end] for start, end in spans.tolist()],
        spans=spans,
        parents=np.array(parents, dtype=np.int64),
        relations=_joined_relations(sentences),
        tags=[tag for sentence in sentences for tag in sentence.tags],
        arcs=_joined_arcs(sentences, parents),
    )
    # a word in a wrong place is a failure of the line, never a tree
    assert spans.min() >= 0, line
    assert spans.max() <= len(line), line
    assert all(parse.words), line
    too_long = any(len(sentence.spans) >= LONGEST for sentence in sentences) and len(sentences) > 1
    return parse, f"cut into {len(sentences)} pieces of at most {LONGEST} words" if too_long else ""


def _joined_relations(sentences: list[_Sentence]) -> list[str]:
    relations = list(sentences[0].relations)
    for sentence in sentences[1:]:
        # the root of a later sentence hangs on the first root
        relations += [
            "parataxis" if parent == word else relation
            for word, (parent, relation) in enumerate(zip(sentence.parents, sentence.relations, strict=True))
        ]
    return relations


def _joined_arcs(sentences: list[_Sentence], parents: list[int]) -> Arcs | None:
    tables = [sentence.arcs for sentence in sentences if sentence.arcs is not None]
    if not tables:
        return None
    root = next(word for word, parent in enumerate(parents) if word == parent)
    arcs = sparse(joined_arcs(tables, [len(sentence.parents) for sentence in sentences], root))
    # NaN in the parser's scores would leave a word without
    assert len(np.unique(arcs.words)) == len(parents), "a word has no arcs"
    return arcs
