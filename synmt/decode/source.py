"""What happens to a line before it is translated: it is parsed where the model reads trees, and cut into pieces."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from synmt.arrays import IntArray
from synmt.data.corpus import Example, Tree
from synmt.data.tasks import tagged
from synmt.data.vocabulary import UNK, Vocabulary, cut_short, word_of
from synmt.errors import SynmtError
from synmt.parsing.parser import StanzaParser
from synmt.syntax.arcs import without_arcs
from synmt.syntax.merging import merge_unowned
from synmt.syntax.parse import Parse

Remark = Callable[[str], None]
"""Takes a sentence that a person should read."""


@dataclass(frozen=True)
class Source:
    """A line that has been cut into pieces.

    index: its place among its neighbours.
    spans: (T, 2) which characters of the line each piece stands for; a task tag stands for none.
    dropped: pieces that were too many.
    unknown: the characters of each piece that the vocabulary does not have; the model reads the unknown piece.
    """

    index: int
    example: Example
    spans: IntArray
    dropped: int
    unknown: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.example.source)


def cut(
    index: int, line: str, tree: Parse | None, vocabulary: Vocabulary, max_pieces: int, *, task: str = ""
) -> Source:
    """Cut a line into pieces, and keep no more of them than the model takes.

    task: the tag to put before and after the line.
    """
    pieces = vocabulary.encode(tagged(line, task))
    kept = cut_short(list(range(len(pieces.ids))), max_pieces, tail=1 if task else 0)
    ids, spans = pieces.ids[kept], pieces.spans[kept]
    trees = {}
    if tree is not None:
        trees["source"] = Tree(*merge_unowned(tree, spans, word_of(spans, tree.spans)))
    example = Example(line=index, source=ids, target=np.zeros_like(ids, shape=0), trees=trees)
    before = len(tagged("", task)) // 2
    spans = np.clip(spans - before, 0, len(line))
    unknown = tuple(line[start:end].strip() for start, end in spans[ids == UNK].tolist())
    return Source(index, example, spans, len(pieces.ids) - len(ids), unknown)


def recorded_parser(identity: dict[str, Any] | None, device: str, remark: Remark, *, arcs: bool) -> StanzaParser:
    """Find the parser that made the trees of the training text, and say so where it has become another one.

    arcs: whether the model reads probabilities of arcs.
    """
    if identity is None:
        raise SynmtError(
            "the model reads dependency trees, and its run does not say which parser makes them",
            do="Hand over a tree for each line with `--parses FILE.conllu`",
        )
    try:
        parser = StanzaParser.from_identity(identity, device=device, arcs=arcs)
    except SynmtError as error:
        do = "`synmt translate` takes it by `--parser FOLDER`, or a tree for each line by `--parses FILE.conllu`"
        raise type(error)(error.what, where=error.where, allowed=error.allowed, do=f"{error.do}; {do}") from None
    if difference := parser_difference(identity, parser.identity):
        remark(f"the parser is not the one that the model was trained with: {difference}")
    return parser


def check_arcs(trees: Sequence[Parse | None], number: int) -> None:
    """Refuse given trees without probabilities of arcs; `number` is the line of the first."""
    for line, parse in enumerate(trees, start=number):
        if parse is not None and parse.arcs is None and len(parse):
            raise without_arcs("the tree", f"line {line}")


def parser_difference(recorded: dict[str, Any], present: dict[str, Any]) -> str:
    """Say in what the trees of two parsers may differ, wherever their files lie; empty where they are the same."""
    names = sorted((recorded.keys() | present.keys()) - {"model", "arcs"})
    return ", ".join(
        "other model files" if name == "files" else f"{name} {present.get(name)} instead of {recorded.get(name)}"
        for name in names
        if recorded.get(name) != present.get(name)
    )
