"""What goes into a translator: requests, windows of lines, and lines segmented into pieces and
grouped into batches."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import islice, repeat
from typing import TypeVar

import numpy as np
import torch

from synmt.arrays import IntArray, Pair, Side
from synmt.data.corpus import Example, Tree
from synmt.data.vocabulary import UNK, Vocabulary, word_of
from synmt.errors import SynmtError
from synmt.syntax.controls import Control
from synmt.syntax.merging import merge_unowned
from synmt.syntax.parse import Parse
from synmt.syntax.trees import linearise_with_words

T = TypeVar("T")
U = TypeVar("U")

SWITCH_INTERVAL = 1e-4
"""Seconds until a thread that waits for the interpreter gets it."""

Trees = Sequence[Parse | None]
"""A tree for each line; None where there is none, or where a model reads none."""


@dataclass(frozen=True)
class Request:
    """A line to translate: its words if the run tokenizes its text.

    line: its number, from 1.
    prefix: the translation has to begin with this text. It is segmented separately, so it should
        end with a whole word.
    tree: used instead of the parser's tree.
    other_tree: the line is translated a second time with this tree.
    fields: of its JSON object, names and values as they are written; empty for plain text.
    """

    text: str
    line: int = 1
    prefix: str = ""
    tree: Parse | None = None
    other_tree: Parse | None = None
    fields: Sequence[Pair] = ()


@dataclass(frozen=True)
class Source:
    """A line in pieces.

    index: position of the line in its window.
    spans: (T, 2) characters of the line that each piece covers; a task tag covers none.
    dropped: number of pieces beyond the model's maximum.
    unknown: number of pieces that the vocabulary does not have; the model reads <unk> instead.
    """

    index: int
    example: Example
    spans: IntArray
    dropped: int
    unknown: int = 0

    def __len__(self) -> int:
        return len(self.example.source)


def segment(
    index: int,
    line: str,
    tree: Parse | None,
    vocabulary: Vocabulary,
    max_pieces: int,
    *,
    tags: Pair = ("", ""),
) -> Source:
    """Segment a line into pieces, at most `max_pieces` of them.

    tags: what to put before and after the line; the one after it survives when the line is too
        long.
    """
    before, after = tags
    opening = f"{before} " if before else ""
    pieces = vocabulary.encode(opening + line + (f" {after}" if after else ""))
    end = len(pieces.ids) - bool(after)
    dropped = max(0, len(pieces.ids) - max_pieces)
    ids, spans = pieces.ids, pieces.spans
    # the functions below take as long as the segmentation
    if dropped:
        too_many = slice(end - dropped, end)
        ids, spans = np.delete(ids, too_many), np.delete(spans, too_many, axis=0)
    trees: dict[Side, Tree] = {}
    if tree is not None:
        trees["source"] = Tree(*merge_unowned(tree, spans, word_of(spans, tree.spans)))
    example = Example(line=index, source=ids, target=np.zeros_like(ids, shape=0), trees=trees)
    if any(tags):
        spans = np.clip(spans - len(opening), 0, len(line))  # (T, 2)
    return Source(index, example, spans, dropped, int((ids == UNK).sum()))


def piece_owners(spans: IntArray, words: IntArray, length: int, *, tagged: bool) -> IntArray:
    """Find the word of each piece from the characters of both: (T, 2), (W, 2) -> (T,), -1 for a
    tag.

    length: of the line.
    tagged: whether there are pieces before or after the line.
    """
    owners = word_of(spans, words)  # (T,)
    if tagged:
        owners[(spans[:, 1] <= 0) | (spans[:, 0] >= length)] = -1
    return owners


def segment_tree(
    index: int,
    line: str,
    tree: Parse | None,
    vocabulary: Vocabulary,
    max_pieces: int,
    control: Control,
) -> Source:
    """Segment the linearised tree of a line into pieces, at most `max_pieces`; brackets cover
    nothing of the line.

    A line without a tree is segmented as it is.
    """
    if tree is None or not len(tree):
        return segment(index, line, None, vocabulary, max_pieces)
    # the key is that of the training text
    linear = linearise_with_words(control.apply(tree, line.encode()))
    source = segment(index, linear.text, None, vocabulary, max_pieces)
    return replace(source, spans=linear.cover(source.spans))


def windows(lines: Iterable[T], size: int) -> Iterator[list[T]]:
    """Group lines into windows of `size`; the last one may be shorter."""
    lines = iter(lines)
    while window := list(islice(lines, size)):
        yield window


def zip_windows(
    windows: Iterable[list[T]], others: Iterable[U] | None, what: str = "trees"
) -> Iterator[tuple[list[T], Sequence[U | None]]]:
    """Pair each window of lines with as many of the others, or with None if there are none; raises
    SynmtError unless there are equally many.

    what: the name of the others in that message.
    """
    rest = repeat(None) if others is None else iter(others)
    count = 0
    for window in windows:
        others_of_window = list(islice(rest, len(window)))
        count += len(others_of_window)
        if len(others_of_window) < len(window):
            raise SynmtError(f"there are {count:,} {what}, and more lines of text")
        yield window, others_of_window
    # reading one more also lets a reader of trees report what is left in its file
    if next(rest, None) is not None:
        raise SynmtError(f"there are {count:,} lines of text, and more {what}")


def batches(
    items: Sequence[T], length: Callable[[T], int], *, sentences: int, pieces: int
) -> Iterator[list[T]]:
    """Group items of similar length, longest first; a batch has at most `sentences`, and `pieces`
    with padding."""
    ordered = sorted(items, key=length, reverse=True)
    while ordered:
        count = max(1, min(sentences, pieces // max(1, length(ordered[0]))))
        yield ordered[:count]
        ordered = ordered[count:]


def workers(device: torch.device) -> int:
    """Count the batches to translate at once: as many as torch uses threads, and one on a GPU."""
    return torch.get_num_threads() if device.type == "cpu" else 1


def in_workers(function: Callable[[T], U], items: Sequence[T], count: int) -> list[U]:
    """Apply a function to each item, up to `count` at once; the results have the order of the
    items.

    Operators of torch are short: a thread that has finished one must not wait 5 ms, Python's
    default, for its turn.
    """
    at_once = min(count, len(items))
    if at_once <= 1:
        return list(map(function, items))
    before, interval = torch.get_num_threads(), sys.getswitchinterval()
    share = max(1, before // at_once)
    sys.setswitchinterval(SWITCH_INTERVAL)
    try:
        # the number of threads is that of the thread which sets it, except for MKL's
        with ThreadPoolExecutor(at_once, "synmt", torch.set_num_threads, (share,)) as pool:
            return list(pool.map(function, items))
    finally:
        torch.set_num_threads(before)
        sys.setswitchinterval(interval)
