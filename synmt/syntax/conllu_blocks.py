"""The sentences of a CoNLL-U file, read with checks."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain

import numpy as np

from synmt.arrays import IntArray
from synmt.errors import SynmtError
from synmt.syntax.align import MisplacedWordError, place_words, unseen_difference
from synmt.syntax.arcs import Entry, arcs_from_entries, keep_most_probable, read_arcs, token_arcs
from synmt.syntax.constituents import constituents_of_tokens
from synmt.syntax.feature_signals import join_scenes, scenes_in
from synmt.syntax.merging import Token, token_tree
from synmt.syntax.parse import FEATURES, SCENES, Arcs, Parse
from synmt.syntax.trees import ancestors, depths

_COMMENT = re.compile(r"#\s*(text|raw|line|constituency)\s*=\s?(.*)", re.DOTALL)
_ID = re.compile(r"([1-9][0-9]{0,8})(?:-([1-9][0-9]{0,8}))?")
_EMPTY_NODE = re.compile(r"[0-9]+\.[0-9]+")


@dataclass(frozen=True)
class _Row:
    where: str
    form: str
    tag: str
    head: int
    relation: str
    misc: str
    features: tuple[str, ...]


@dataclass(frozen=True)
class Paragraph:
    """The lines of a sentence, which are not read yet.

    number: of the sentence, from 1.
    first: number of its first line, from 1.
    text: its lines, with a line end between two.
    """

    number: int
    first: int
    text: str

    def has_words(self) -> bool:
        """Check whether the sentence has words."""
        rows = (line for line in self.text.split("\n") if not line.startswith("#"))
        return any(not _EMPTY_NODE.fullmatch(row.partition("\t")[0]) for row in rows)

    def parse(
        self, line: str | None = None, *, where: str, what: str = "the text of the sentence"
    ) -> tuple[str, Parse]:
        """Read the sentence: its text and its tree.

        line: the text; by default that of the comments, or else the one that the words make.
        where: names the file in messages; what: names the text.
        """
        lines = self.text.split("\n")
        comments, where = _comments(lines), f"{where}, sentence {self.number}"
        numbered = enumerate(lines, start=self.first)
        rows, named = _rows(where, [row for row in numbered if not row[1].startswith("#")])
        tokens = [token for token, _ in named]
        here = f"{where}, line {self.first}"
        above = _parents(here, rows)
        leading, parents, relations = token_tree(above, [row.relation for row in rows], tokens)
        arcs = _arcs(rows)
        # the arcs of a sentence whose words are its tokens remain as they were written
        if arcs is not None and len(rows) != len(tokens):
            arcs = keep_most_probable(token_arcs(arcs, tokens, leading, parents, relations))
        stated = _text(where, comments)
        if line is None:
            line = _joined([row for _, row in named]) if stated is None else stated
        spans = _spans(line, [row for _, row in named], here, what)
        brackets = comments.get("constituency")
        return line, Parse(
            words=[line[start:end] for start, end in spans.tolist()],
            spans=spans,
            parents=np.array(parents, dtype=np.int64),
            relations=relations,
            tags=[rows[word].tag for word in leading],
            arcs=arcs,
            constituents=None if brackets is None else constituents_of_tokens(brackets, tokens),
            features=_features([rows[word] for word in leading]) | _scenes(rows, named),
        )


def paragraphs_of(lines: Iterable[str]) -> Iterator[Paragraph]:
    """Split lines of CoNLL-U into sentences; a paragraph of other comments is not a sentence."""
    number = 0
    for first, paragraph in _paragraphs(lines):
        if not all(line.startswith("#") for line in paragraph) or _comments(paragraph).keys() - {
            "constituency"
        }:
            number += 1
            yield Paragraph(number, first, "\n".join(paragraph))


def _comments(lines: list[str]) -> dict[str, str]:
    return {match[1]: match[2] for line in lines if (match := _COMMENT.fullmatch(line))}


def _paragraphs(lines: Iterable[str]) -> Iterator[tuple[int, list[str]]]:
    """Group the lines between empty lines, with the number of the first one."""
    paragraph: list[str] = []
    for number, line in enumerate(chain(lines, [""]), start=1):
        line = line.removesuffix("\r")
        if line.strip():
            paragraph.append(line)
        elif paragraph:
            yield number - len(paragraph), paragraph
            paragraph = []


def _joined(rows: list[_Row]) -> str:
    """Join the forms of tokens into a text."""
    texts = [row.form + " " * ("SpaceAfter=No" not in row.misc.split("|")) for row in rows]
    return "".join(texts).rstrip(" ")


def _spans(line: str, rows: list[_Row], where: str, what: str) -> IntArray:
    """Find the tokens in a line: (W, 2); raises SynmtError where they differ from it."""
    words = [row.form for row in rows]
    try:
        return place_words(line, words, [row.misc for row in rows])
    except MisplacedWordError as error:
        word, token, found = (*words, "")[error.word], "after its last token", "has ended"
        if word:
            token = f"at token {error.word + 1} ('{word}')"
        if error.found:
            found = f"continues with '{error.found}'{unseen_difference(word, error.found)}"
        raise SynmtError(
            f"the sentence does not match {what} {token}, where the text {found}",
            where=where,
            allowed="Only whitespace may differ",
            do="Check that file and text belong together, line by line, or parse the text again",
        ) from None


def _features(rows: list[_Row]) -> dict[str, list[str]]:
    columns = zip(FEATURES, zip(*(row.features for row in rows), strict=True), strict=False)
    return {name: list(values) for name, values in columns if set(values) != {"_"}}


def _scenes(rows: list[_Row], named: list[tuple[Token, _Row]]) -> dict[str, list[str]]:
    """Find the scenes of every token: its own and those of all its words."""
    miscs = ((own.misc, *(rows[word].misc for word in token)) for token, own in named)
    values = [join_scenes(map(scenes_in, each)) for each in miscs]
    return {SCENES: values} if set(values) - {"_"} else {}


def _text(where: str, comments: dict[str, str]) -> str | None:
    if "raw" not in comments:
        return comments.get("text")
    try:
        text = json.loads(comments["raw"])
        if isinstance(text, str):
            return text
    except (ValueError, RecursionError):
        pass
    raise SynmtError(
        "the comment `# raw` is not a JSON string", where=where, do="Parse the text again"
    )


def _rows(
    where: str, numbered: list[tuple[int, str]]
) -> tuple[list[_Row], list[tuple[Token, _Row]]]:
    """Read the words of a sentence, and the tokens of its text (their words, and the row with their
    form)."""
    words: list[_Row] = []
    tokens: list[tuple[Token, _Row]] = []
    covered = 0
    for number, line in numbered:
        here = f"{where}, line {number}"
        columns = _columns(here, line)
        if _EMPTY_NODE.fullmatch(columns[0]):
            continue
        match = _ID.fullmatch(columns[0])
        first = int(match[1]) if match else 0
        if first != len(words) + 1:
            raise _malformed(
                here, f"the ID '{columns[0]}' is not the next number", f"Expected {len(words) + 1}"
            )
        if match and match[2]:
            if int(match[2]) <= first or first <= covered:
                raise _malformed(here, f"the range '{columns[0]}' is empty or overlaps another")
            covered = int(match[2])
            tokens.append(
                (range(first - 1, covered), _Row(here, columns[1], "_", 0, "_", columns[9], ()))
            )
            continue
        words.append(_word(here, columns))
        if first > covered:
            tokens.append((range(first - 1, first), words[-1]))
    if covered > len(words):
        raise _malformed(
            where, f"a range ends at word {covered}", f"The sentence has {len(words)} words"
        )
    return words, tokens


def _columns(where: str, line: str) -> list[str]:
    columns = line.split("\t")
    if len(columns) != 10:
        raise _malformed(
            where, f"columns: {len(columns)}, not 10: '{line[:40]}'", "They are separated by tabs"
        )
    if not all((columns[0], columns[1], columns[6], columns[7])):
        raise _malformed(
            where, f"token {columns[0]} has an empty column", "An unknown value is written `_`"
        )
    return columns


def _word(where: str, columns: list[str]) -> _Row:
    head = columns[6]
    if not (head.isascii() and head.isdigit() and len(head) < 10):
        raise _malformed(
            where,
            f"token {columns[0]} ('{columns[1]}') has the head '{head}'",
            "A head is a number",
        )
    features = (columns[2] or "_", columns[4] or "_", columns[5] or "_")
    return _Row(where, columns[1], columns[3] or "_", int(head), columns[7], columns[9], features)


def _parents(where: str, rows: list[_Row]) -> list[int]:
    for index, row in enumerate(rows, start=1):
        if row.head > len(rows) or row.head == index:
            what = f"token {index} ('{row.form}') has the head {row.head}"
            raise _malformed(row.where, what, f"A head is another word's number, 0 to {len(rows)}")
    parents = [index if row.head == 0 else row.head - 1 for index, row in enumerate(rows)]
    roots = [index for index, parent in enumerate(parents) if index == parent]
    if len(roots) > 1:
        second = roots[1]
        what = (
            f"token {second + 1} ('{rows[second].form}') is a second root after token "
            f"{roots[0] + 1}"
        )
        raise _malformed(rows[second].where, what, "A sentence has one")
    if rows and depths(parents) is None:
        above = ancestors(np.array(parents))
        token = next(
            word for word, parent in enumerate(parents) if parent != word and above[parent, word]
        )
        what = f"token {token + 1} ('{rows[token].form}') is in a cycle: its heads lead back to it"
        raise _malformed(rows[token].where, what)
    assert roots or not rows, where
    return parents


def _arcs(rows: list[_Row]) -> Arcs | None:
    """Read the arc probabilities from MISC; None if no word has any."""
    per_word: list[list[Entry] | None] = []
    for number, row in enumerate(rows, start=1):
        try:
            per_word.append(read_arcs(row.misc, number, len(rows)))
        except ValueError as error:
            raise _bad_arcs(row, number, f"has an invalid MISC: {error}") from None
    entries = [each for each in per_word if each is not None]
    if entries and len(entries) < len(rows):
        missing = per_word.index(None)
        raise _bad_arcs(
            rows[missing],
            missing + 1,
            "has no `Arcs=` in MISC, but other tokens of the sentence have",
        )
    return arcs_from_entries(entries) if entries else None


def _bad_arcs(row: _Row, number: int, what: str) -> SynmtError:
    return SynmtError(
        f"token {number} ('{row.form}') {what}",
        where=row.where,
        allowed="A token's arcs look like `Arcs=2:nsubj:0.97,0:root:0.02`: head, relation, "
        "probability",
        do="Fix the file or parse the text again with `synmt parse --arcs`",
    )


def _malformed(where: str, what: str, allowed: str = "") -> SynmtError:
    return SynmtError(what, where=where, allowed=allowed, do="Fix the file or parse the text again")
