r"""Trees as CoNLL-U, which other tools read, too.

A block looks like this:

    # line = 7
    # text = The monkey eats
    1   The   _   DET   _   _   2   det   _   TokenRange=0:3
    ...

A comment `# constituency = (ROOT (S (NP The monkey) (VP eats)))`, as Stanza writes it, has the
constituents. Where trees of given lines are read, a file whose name ends in `.brackets` has
constituents only: the brackets of each line.

MISC may name the scenes of a word: `Scenes=1,2` (see synmt/syntax/feature_signals.py).

With arc probabilities, MISC begins with `Arcs=2:det:0.998,3:det:0.001|` (see synmt/syntax/arcs.py).

An empty line gives a block that has comments only, so that each line has one block. `TokenRange`
counts the characters of the line. Some characters end a line or a column in other tools (tabs,
control characters, U+2028, U+2029, \x85). In `# text` and FORM they are replaced by spaces, so that
positions do not change. If a line has such characters, or begins or ends with whitespace, the
comment `# raw = "..."` contains the exact line as a JSON string in ASCII.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path

import numpy as np

from synmt.errors import SynmtError
from synmt.files.reading import read_lines
from synmt.syntax.arcs import format_arcs
from synmt.syntax.conllu_blocks import Paragraph, paragraphs_of
from synmt.syntax.constituents import parse_brackets, without_dependencies
from synmt.syntax.parse import FEATURES, SCENES, Parse, without_breaks, without_whitespace


def read_conllu(path: str | Path) -> Iterator[tuple[str, Parse]]:
    """Yield the text and the tree of each sentence; without `# text`, FORM and `SpaceAfter` give
    the text."""
    for sentence in paragraphs_of(read_lines(path, allowed=["CoNLL-U"])):
        yield sentence.parse(where=str(path))


def read_parses(
    path: str | Path, lines: Iterable[str], *, brackets: bool = False
) -> Iterator[Parse]:
    """Yield one tree for each line; the spans of its words refer to this line.

    The file has a block for each line, in the same order; a line of whitespace may have none, since
    many parsers drop such lines.

    brackets: whether it may be a file of brackets, whose trees have no dependencies.
    """
    if is_brackets(path) and not brackets:
        raise without_dependencies("each tree", str(path))
    return (unread.parse(where=str(path)) for unread in read_unparsed(path, lines))


@dataclass(frozen=True)
class UnreadParse:
    """A line, and the text of its tree.

    line: its number, from 1.
    block: None if the line has none.
    brackets: in place of a block.
    """

    text: str
    line: int
    block: Paragraph | None
    brackets: str | None = None

    def parse(self, *, where: str) -> Parse:
        """Read the tree; `where` names the file."""
        if self.brackets is not None:
            return parse_brackets(self.brackets, self.text, where=f"{where}, line {self.line}")
        if self.block is None:
            return _EMPTY
        what = f"line {self.line} of the text"
        return self.block.parse(self.text, where=where, what=what)[1]


def read_unparsed(path: str | Path, lines: Iterable[str]) -> Iterator[UnreadParse]:
    """Find the tree of each line as `read_parses` does, without reading it, which takes most of the
    time."""
    if is_brackets(path):
        yield from _unread_brackets(path, lines)
        return
    blocks = paragraphs_of(read_lines(path, allowed=["CoNLL-U"]))
    block = next(blocks, None)
    lines = iter(lines)
    number = used = skipped = 0
    for number, line in enumerate(lines, start=1):
        if not without_whitespace(line) and (block is None or block.has_words()):
            skipped += 1
            yield UnreadParse(line, number, None)
            continue
        if block is None:
            raise _count_error(path, used, number + sum(1 for _ in lines), skipped)
        yield UnreadParse(line, number, block)
        used += 1
        block = next(blocks, None)
    if block is not None:
        raise _count_error(path, used + 1 + sum(1 for _ in blocks), number, skipped)


def is_brackets(path: str | Path) -> bool:
    """Check by its name whether a file of trees has brackets in place of CoNLL-U."""
    return str(path).removesuffix(".gz").endswith(".brackets")


def _unread_brackets(path: str | Path, lines: Iterable[str]) -> Iterator[UnreadParse]:
    for number, (line, brackets) in enumerate(zip_longest(lines, read_lines(path)), start=1):
        if brackets is None:
            raise SynmtError(f"has {number - 1} lines, but the text has more", where=str(path))
        if line is None:
            what = f"has more lines than the text, which has {number - 1}"
            raise SynmtError(what, where=str(path))
        yield UnreadParse(line, number, None, brackets)


def parse_in(text: str, line: str, *, where: str) -> Parse:
    """Read the tree of a line from a CoNLL-U text; raise SynmtError unless this line is its only
    sentence."""
    sentences = list(paragraphs_of(text.split("\n")))
    if not without_whitespace(line) and not any(each.has_words() for each in sentences):
        return _EMPTY
    if len(sentences) != 1:
        raise SynmtError(
            f"has {len(sentences)} sentences in CoNLL-U",
            where=where,
            allowed="There must be one tree for each line",
        )
    return sentences[0].parse(line, where=where, what="the text of the line")[1]


def format_conllu(parse: Parse, line: str, number: int) -> str:
    """Format the block of a line: comments, a row for each word, an empty line."""
    return format_comments(line, number) + format_rows(parse)


def format_comments(line: str, number: int) -> str:
    """Format the comments of a block; `number` counts lines from 1."""
    text = without_breaks(line)
    exact = "" if text == line == line.strip() else f"# raw = {json.dumps(line)}\n"
    return f"# line = {number}\n# text = {text}\n{exact}"


def format_rows(parse: Parse) -> str:
    """Format the rows of the words, and the empty line after them."""
    unknown = ["_"] * len(parse)
    lemmas, fine, morphology, scenes = (
        parse.features.get(name) or unknown for name in (*FEATURES, SCENES)
    )
    texts = parse.words, lemmas, parse.tags or unknown, fine, morphology
    columns = zip(*texts, strict=True)
    heads = np.where(parse.parents == np.arange(len(parse)), 0, parse.parents + 1).tolist()
    miscs = zip(format_arcs(parse.arcs, len(parse)), scenes, _places(parse), strict=True)
    rows = zip(columns, heads, parse.relations, miscs, strict=True)
    lines: list[str] = []
    for number, (values, head, relation, (arcs, names, place)) in enumerate(rows, start=1):
        text = "\t".join(map(without_breaks, values))
        misc = f"{arcs}Scenes={names}|{place}" if names != "_" else arcs + place
        lines.append(f"{number}\t{text}\t{head}\t{relation}\t_\t{misc}\n")
    return "".join([*lines, "\n"])


def _places(parse: Parse) -> Iterator[str]:
    """Write the place of each word for MISC."""
    following = [*parse.spans[1:, 0].tolist(), -1]
    for (start, end), after in zip(parse.spans.tolist(), following, strict=False):
        touching = "SpaceAfter=No|" if end == after else ""
        yield f"{touching}TokenRange={start}:{end}"


def _count_error(path: str | Path, blocks: int, lines: int, skipped: int) -> SynmtError:
    kind = "non-empty lines" if skipped else "lines"
    return SynmtError(
        f"has {blocks} sentences, but the text has {lines - skipped} {kind}",
        where=str(path),
        allowed="There must be one tree for each line",
        do="Parse each line as one sentence, for example with `synmt parse`",
    )


_EMPTY = Parse([], np.zeros((0, 2), dtype=np.int64), np.zeros(0, dtype=np.int64), [], [])
