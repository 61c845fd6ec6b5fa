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
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from synmt.arrays import int_array, int_pairs
from synmt.errors import SynmtError
from synmt.files.json_files import parse_json
from synmt.files.reading import read_lines
from synmt.syntax.align import place_words
from synmt.syntax.arcs import format_arcs, keep_most_probable, read_arcs, token_arcs
from synmt.syntax.constituents import constituents_of_tokens, parse_brackets, without_dependencies
from synmt.syntax.feature_signals import join_scenes, scenes_in
from synmt.syntax.merging import Token, token_tree
from synmt.syntax.parse import FEATURES, SCENES, Parse, without_breaks, without_whitespace, words_at
from synmt.syntax.trees import is_tree

_COMMENT = re.compile(r"#\s*(text|raw|line|constituency)\s*=\s?(.*)", re.DOTALL)
_ID = re.compile(r"([1-9][0-9]{0,8})(?:-([1-9][0-9]{0,8}))?")
_EMPTY_NODE = re.compile(r"[0-9]+\.[0-9]+\t")
_ID_COLUMN, _FORM, _LEMMA, _TAG, _FINE_TAG, _MORPHOLOGY, _HEAD, _RELATION, _, _MISC = range(10)
_FEATURE_COLUMNS = dict(zip(FEATURES, (_LEMMA, _FINE_TAG, _MORPHOLOGY), strict=True))

_Row = list[str]
"""The columns of a word or of a token."""


def read_conllu(path: str | Path) -> Iterator[tuple[str, Parse]]:
    """Yield the text and the tree of each sentence; without `# text`, FORM and `SpaceAfter` give
    the text."""
    for block in _blocks(read_lines(path, allowed=["CoNLL-U"])):
        yield block.parse(where=str(path))


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


def parse_in(text: str, line: str, *, where: str) -> Parse:
    """Read the tree of a line from a CoNLL-U text; raise SynmtError unless this line is its only
    sentence."""
    [unread] = _trees_of_lines(_blocks(text.split("\n")), [line], where)
    return unread.parse(where=where)


def is_brackets(path: str | Path) -> bool:
    """Check by its name whether a file of trees has brackets in place of CoNLL-U."""
    return str(path).removesuffix(".gz").endswith(".brackets")


@dataclass(frozen=True)
class UnreadParse:
    """A line, and the text of its tree.

    line: its number, from 1.
    tree: a block of CoNLL-U or a line of brackets; None if the line has none.
    """

    text: str
    line: int
    tree: _Block | str | None

    def parse(self, *, where: str) -> Parse:
        """Read the tree; `where` names the file."""
        if self.tree is None:
            return Parse([], int_pairs([]), int_array([]), [])
        if isinstance(self.tree, str):
            return parse_brackets(self.tree, self.text, where=f"{where}, line {self.line}")
        return self.tree.parse(self.text, where=where)[1]


def read_unparsed(path: str | Path, lines: Iterable[str]) -> Iterator[UnreadParse]:
    """Find the tree of each line as `read_parses` does, without reading it, which takes most of the
    time."""
    trees = (
        read_lines(path) if is_brackets(path) else _blocks(read_lines(path, allowed=["CoNLL-U"]))
    )
    return _trees_of_lines(trees, lines, str(path))


def _trees_of_lines(
    trees: Iterator[_Block] | Iterator[str], lines: Iterable[str], where: str
) -> Iterator[UnreadParse]:
    tree = next(trees, None)
    number = 0
    for number, line in enumerate(lines, start=1):
        has_words = isinstance(tree, _Block) and not all(
            row.startswith("#") for row in tree.text.split("\n")
        )
        if (tree is None or has_words) and not without_whitespace(line):
            yield UnreadParse(line, number, None)
            continue
        if tree is None:
            raise _unequal(where, f"ends before line {number} of the text")
        yield UnreadParse(line, number, tree)
        tree = next(trees, None)
    if tree is not None:
        raise _unequal(where, f"has more trees than the text, which has {number} lines")


def _unequal(where: str, what: str) -> SynmtError:
    return SynmtError(
        what,
        where=where,
        allowed="There must be one tree for each line",
        do="Parse each line as one sentence, for example with `synmt parse`",
    )


def _blocks(lines: Iterable[str]) -> Iterator[_Block]:
    """Split lines of CoNLL-U into sentences; a paragraph of other comments is not a sentence."""
    number, block = 0, list[str]()
    for place, line in enumerate(chain(lines, [""])):
        line = line.removesuffix("\r")
        if line.strip():
            block.append(line)
        elif block:
            only_comments = all(row.startswith("#") for row in block)
            if not only_comments or _comments(block).keys() - {"constituency"}:
                number += 1
                yield _Block(number, place - len(block) + 1, "\n".join(block))
            block = []


def _comments(lines: Iterable[str]) -> dict[str, str]:
    return {match[1]: match[2] for line in lines if (match := _COMMENT.fullmatch(line))}


@dataclass(frozen=True)
class _Block:
    """A sentence that is not read yet.

    number: of the sentence, from 1.
    first: number of its first line, from 1.
    text: its lines, with a line end between two.
    """

    number: int
    first: int
    text: str

    def parse(self, line: str | None = None, *, where: str) -> tuple[str, Parse]:
        """Read the sentence: its text and its tree.

        line: the text; by default that of the comments, or else the one that the words make.
        where: names the file in messages.
        """
        where = f"{where}, sentence {self.number} (line {self.first})"
        lines = self.text.split("\n")
        comments = _comments(lines)
        words, tokens, forms = _rows(lines, where)
        above = _parents(words, where)
        leading, parents, relations = token_tree(above, [row[_RELATION] for row in words], tokens)
        arcs = read_arcs([row[_MISC] for row in words], where)
        # the arcs of a sentence whose words are its tokens remain as they were written
        if arcs is not None and len(words) != len(tokens):
            arcs = keep_most_probable(token_arcs(arcs, tokens, leading, parents, relations))
        if line is None:
            line = _text(comments, forms, where)
        spans = place_words(line, [row[_FORM] for row in forms], where=where)
        brackets = comments.get("constituency")
        return line, Parse(
            words=words_at(line, spans),
            spans=spans,
            parents=int_array(parents),
            relations=relations,
            tags=[words[word][_TAG] or "_" for word in leading],
            arcs=arcs,
            constituents=None if brackets is None else constituents_of_tokens(brackets, tokens),
            features=_features(words, tokens, leading, forms),
        )


def _rows(lines: Iterable[str], where: str) -> tuple[list[_Row], list[Token], list[_Row]]:
    """Read the words of a sentence, and the tokens of its text: their words, and the row with their
    form."""
    words, tokens, forms = list[_Row](), list[Token](), list[_Row]()
    covered = 0
    for line in lines:
        if line.startswith("#") or _EMPTY_NODE.match(line):
            continue
        columns = line.split("\t")
        match = _ID.fullmatch(columns[_ID_COLUMN])
        first, last = (int(match[1]), int(match[2] or 0)) if match else (0, 0)
        is_next = first == len(words) + 1 and not (last and (last <= first or first <= covered))
        whole = len(columns) == 10 and all(columns[at] for at in (_FORM, _HEAD, _RELATION))
        if not is_next or not whole:
            what = f"'{line[:40]}' is not the row of word {len(words) + 1}, or of a range from it"
            allowed = "Ten columns are separated by tabs, and an unknown value is written `_`"
            raise _malformed(where, what, allowed)
        if not last:
            words.append(columns)
        if last or first > covered:
            covered = last or first
            tokens.append(range(first - 1, covered))
            forms.append(columns)
    if covered > len(words):
        raise _malformed(where, f"a range ends at word {covered} of {len(words)}")
    return words, tokens, forms


def _parents(words: list[_Row], where: str) -> list[int]:
    heads = {str(number): number - 1 for number in range(len(words) + 1)}
    listed_heads = [heads.get(row[_HEAD], word) for word, row in enumerate(words)]
    parents = [word if head < 0 else head for word, head in enumerate(listed_heads)]
    wrong = any(word == head for word, head in enumerate(listed_heads))
    if wrong or not is_tree(int_array(parents)):
        written = " ".join(row[_HEAD] for row in words)
        what = f"the heads are not a tree with one root: {written[:80]}"
        allowed = f"One token has the head 0, and the others that of another one, 1 to {len(words)}"
        raise _malformed(where, what, allowed)
    return parents


def _text(comments: dict[str, str], forms: list[_Row], where: str) -> str:
    if "raw" in comments:
        return parse_json(comments["raw"], str, where=f"{where}, # raw", do="Parse the text again")
    if "text" in comments:
        return comments["text"]
    texts = [row[_FORM] + " " * ("SpaceAfter=No" not in row[_MISC].split("|")) for row in forms]
    return "".join(texts).rstrip(" ")


def _features(
    words: list[_Row], tokens: list[Token], leading: list[int], forms: list[_Row]
) -> dict[str, list[str]]:
    """Find what is known of every token: its leading word's, and the scenes of itself and all its
    words."""
    features = {
        name: [words[word][column] or "_" for word in leading]
        for name, column in _FEATURE_COLUMNS.items()
    }
    features[SCENES] = []
    for token, form in zip(tokens, forms, strict=True):
        rows = form, *words[token.start : token.stop]
        features[SCENES].append(join_scenes(scenes_in(row[_MISC]) for row in rows))
    return {name: values for name, values in features.items() if set(values) - {"_"}}


def _malformed(where: str, what: str, allowed: str = "") -> SynmtError:
    return SynmtError(what, where=where, allowed=allowed, do="Fix the file or parse the text again")


def format_conllu(parse: Parse, line: str, number: int) -> str:
    """Format the block of a line: comments, a row for each word, an empty line; `number` counts
    lines from 1."""
    shown = without_breaks(line)
    exact = "" if shown == line == line.strip() else f"# raw = {json.dumps(line)}\n"
    rows = [f"# line = {number}\n# text = {shown}\n{exact}"]
    lemmas, fine, morphology, scenes = (
        parse.or_unknown(parse.features.get(name)) for name in (*FEATURES, SCENES)
    )
    texts = zip(parse.words, lemmas, parse.or_unknown(parse.tags), fine, morphology, strict=True)
    parents, spans = parse.parents.tolist(), parse.spans.tolist()
    arcs = format_arcs(parse.arcs, len(parse))
    for word, (values, relation) in enumerate(zip(texts, parse.relations, strict=True)):
        start, end = spans[word]
        misc = arcs[word] + (f"Scenes={scenes[word]}|" if scenes[word] != "_" else "")
        if word + 1 < len(spans) and spans[word + 1][0] == end:
            misc += "SpaceAfter=No|"
        head = 0 if parents[word] == word else parents[word] + 1
        text = "\t".join(map(without_breaks, values))
        place = f"TokenRange={start}:{end}"
        rows.append(f"{word + 1}\t{text}\t{head}\t{relation}\t_\t{misc}{place}\n")
    return "".join([*rows, "\n"])
