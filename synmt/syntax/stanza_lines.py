"""Between lines and Stanza's sentences: batches of lines, long sentences, sentences back to lines."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import Any

import numpy as np

from synmt.syntax.flat import flat_parse
from synmt.syntax.parse import Parse
from synmt.syntax.surface import join_trees, leading_words, token_parents

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


def parses_of(lines: Sequence[str], sentences: Sequence[Any]) -> list[tuple[Parse, str]]:
    """Sort Stanza's sentences back to the lines that were joined by two line ends: tree and failure."""
    starts = [0, *accumulate(len(line) + 2 for line in lines)]
    of_line: list[list[Any]] = [[] for _ in lines]
    for sentence in sentences:
        of_line[bisect_right(starts, sentence.tokens[0].start_char) - 1].append(sentence)
    return [_one(*args) for args in zip(lines, of_line, starts[:-1], strict=True)]


def _one(line: str, sentences: list[Any], offset: int) -> tuple[Parse, str]:
    if not sentences:
        return flat_parse(line), "the parser sees no word in the line"
    tokens = [token for sentence in sentences for token in sentence.tokens]
    spans = np.array([(token.start_char, token.end_char) for token in tokens], dtype=np.int64) - offset
    parents, relations, tags = _tree(sentences)
    parse = Parse(
        words=[line[start:end] for start, end in spans.tolist()],
        spans=spans,
        parents=np.array(parents, dtype=np.int64),
        relations=relations,
        tags=tags,
    )
    # a word in a wrong place is a failure of the line, never a tree
    assert spans.min() >= 0, line
    assert spans.max() <= len(line), line
    assert all(parse.words), line
    too_long = any(len(sentence.tokens) >= LONGEST for sentence in sentences) and len(sentences) > 1
    return parse, f"cut into {len(sentences)} pieces of at most {LONGEST} words" if too_long else ""


def _tree(sentences: list[Any]) -> tuple[list[int], list[str], list[str]]:
    trees, relations, tags = [], [], []
    for sentence in sentences:
        above, labels, parts = _sentence(sentence)
        # the root of a later sentence hangs on the first root
        if trees:
            labels = [
                "parataxis" if parent == word else label
                for word, (parent, label) in enumerate(zip(above, labels, strict=True))
            ]
        trees.append(above)
        relations += labels
        tags += parts
    return join_trees(trees), relations, tags


def _sentence(sentence: Any) -> tuple[list[int], list[str], list[str]]:
    """Read parents, relations and tags of a sentence's surface tokens."""
    words = sentence.words
    parents = [index if word.head == 0 else word.head - 1 for index, word in enumerate(words)]
    ends = list(accumulate(len(token.words) for token in sentence.tokens))
    tokens = [range(start, end) for start, end in zip([0, *ends], ends, strict=False)]
    leading = leading_words(parents, tokens)
    relations = ["root" if parents[word] == word else words[word].deprel for word in leading]
    return token_parents(parents, tokens, leading), relations, [words[word].upos or "_" for word in leading]
