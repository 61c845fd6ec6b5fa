"""Cached trees: equal bit by bit, for one parser, and never a reason to fail."""

import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from dataclasses import fields, replace
from functools import partial

import numpy as np
import pytest
from flat_parser import FlatParser
from places import IMPORTABLE
from small import random_tree
from tiny import write_lines

from synmt.analysis.inputs import parse_lines
from synmt.parsing import cache as parse_cache
from synmt.parsing.cache import CachedParser, decode_parse, encode_parse
from synmt.parsing.parser import StanzaParser
from synmt.syntax.parse import flat_parse

pytestmark = pytest.mark.journey

LINES = [
    "The monkey eats a banana.",
    "",
    "A dog \u2028 sees 🙈 שלום. It can't.",
    "\t",
    "The monkey eats a banana.",
]


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch, show_remarks):
    monkeypatch.setenv("SYNMT_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def assert_same(one, other):
    """Compare two trees field by field, types and bits."""
    assert one == other
    for part, another in ((one, other), (one.arcs, other.arcs)):
        for field in fields(part) if part is not None else ():
            value, expected = getattr(part, field.name), getattr(another, field.name)
            assert type(value) is type(expected), field.name
            if isinstance(value, np.ndarray):
                assert (value.dtype, value.shape) == (expected.dtype, expected.shape)
                assert value.tobytes() == expected.tobytes()
                assert value.flags.writeable


@pytest.mark.parametrize("arcs", [False, True])
def test_a_cached_tree_equals_the_new_one_field_by_field(arcs, monkeypatch):
    parser = StanzaParser("en", arcs=arcs)
    fresh = CachedParser(parser).parse(LINES)
    for one, other in zip(fresh, parser.parse(LINES), strict=True):
        assert_same(one, other)
    monkeypatch.setattr(StanzaParser, "_run", None)
    for one, other in zip(CachedParser(parser).parse(LINES[::-1]), fresh[::-1], strict=True):
        assert_same(one, other)
    assert (fresh[0].arcs is not None) == arcs


def test_a_cached_line_is_not_parsed_again_except_by_another_parser():
    parser = FlatParser()
    assert CachedParser(parser).parse(["a b", "c", "a b"]) == [
        flat_parse(line) for line in ("a b", "c", "a b")
    ]
    CachedParser(parser).parse(["c", "d", "a b"])
    assert parser.asked == ["a b", "c", "a b", "d"]
    other = FlatParser("other")
    CachedParser(other).parse(["c"])
    assert other.asked == ["c"]


def test_a_failed_line_is_parsed_and_reported_again():
    parser, reported = FlatParser(), []
    for _ in range(2):
        CachedParser(parser).parse(
            ["x", "poison", "y"], on_failure=lambda *args: reported.append(args)
        )
    assert reported == [(1, "poisoned")] * 2
    assert parser.asked == ["x", "poison", "y", "poison"]


def test_the_file_holds_no_text():
    cached = CachedParser(FlatParser())
    cached.parse(["unmistakable words"])
    assert all(b"unmistakable" not in path.read_bytes() for path in cached.path.parent.iterdir())


def drawn(seed):
    """Draw a line and its tree with arcs, and more numbers."""
    random = np.random.default_rng(seed)
    words = int(random.integers(1, 9))
    tree = random_tree(words, random)
    line = " ".join(tree.words)
    arcs = replace(tree.arcs, names=(*tree.arcs.names[:-1], "ü"))
    return line, replace(flat_parse(line), parents=tree.parents, arcs=arcs), random


@pytest.mark.parametrize("seed", range(10))
def test_a_tree_is_read_as_it_was_serialised_and_damaged_bytes_are_none(seed):
    line, parse, random = drawn(seed)
    tree = encode_parse(parse)
    assert_same(decode_parse(tree, line), parse)
    place, damaged = int(random.integers(len(tree))), bytearray(tree)
    damaged[place] ^= 1 << int(random.integers(8))
    assert decode_parse(bytes(damaged), line) in (None, parse)
    assert decode_parse(tree[:place], line) is None


def test_a_damaged_entry_is_parsed_again():
    parser = FlatParser()
    cached = CachedParser(parser)
    cached.parse(["a", "b"])
    with closing(sqlite3.connect(cached.path)) as database, database:
        database.execute("UPDATE parses SET tree = x'0102' WHERE number = 1")
    for _ in range(2):
        assert cached.parse(["a", "b"]) == [flat_parse("a"), flat_parse("b")]
        assert parser.asked == ["a", "b", "a"]


def test_the_oldest_trees_are_deleted_first(monkeypatch):
    monkeypatch.setattr(parse_cache, "MOST_TREES", 3)
    parser = FlatParser()
    for line in "abcd":
        CachedParser(parser).parse([line])
    parser.asked.clear()
    CachedParser(parser).parse(list("dcba"))
    assert parser.asked == ["a"]


BLOCKED = {
    "broken": lambda path: write_lines(path, ["no database, and long enough to be detected"] * 30),
    "folder": lambda path: path.mkdir(parents=True),
    "a file above": lambda path: write_lines(path.parent, ["a file, where a folder was expected"]),
}


@pytest.mark.parametrize("kind", BLOCKED)
def test_a_cache_that_cannot_be_used_is_logged_once_and_changes_nothing(kind, caplog):
    parser = FlatParser()
    cached = CachedParser(parser)
    BLOCKED[kind](cached.path)
    for _ in range(2):
        assert cached.parse(["a", "b"]) == [flat_parse("a"), flat_parse("b")]
    assert parser.asked == ["a", "b"] * 2
    [message] = caplog.messages
    assert f"the cache of trees cannot be used: {cached.path}: " in message


def test_a_cache_that_another_process_keeps_locked_is_no_error(monkeypatch, caplog):
    monkeypatch.setattr("synmt.parsing.cache._TIMEOUT", 0.01)
    parser = FlatParser()
    cached = CachedParser(parser)
    cached.parse(["a"])
    other = sqlite3.connect(cached.path)
    other.execute("BEGIN EXCLUSIVE")
    assert cached.parse(["a", "b"]) == [flat_parse("a"), flat_parse("b")]
    other.close()
    assert parser.asked == ["a", "b"]
    assert "locked" in caplog.messages[0]


def python(code):
    """Start Python with code that imports from this file."""
    environment = {**os.environ, "PYTHONPATH": IMPORTABLE}
    return subprocess.Popen([sys.executable, "-c", code], env=environment, stdout=subprocess.PIPE)


WRITER = """
import logging, sys
from flat_parser import FlatParser
from synmt.parsing.cache import CachedParser
from synmt.syntax.parse import flat_parse
logging.basicConfig(level=logging.INFO, stream=sys.stdout)
for first in range(0, 60, 3):
    lines = [f"line {number}" for number in range(first, first + 10)]
    assert CachedParser(FlatParser()).parse(lines) == [flat_parse(line) for line in lines]
"""


def test_processes_write_at_once():
    running = [python(WRITER) for _ in range(3)]
    assert [(process.communicate(timeout=60)[0], process.returncode) for process in running] == [
        (b"", 0)
    ] * 3
    parser = FlatParser()
    CachedParser(parser).parse([f"line {number}" for number in range(60)])
    assert parser.asked == []


def test_two_processes_may_create_the_file_at_once(monkeypatch, caplog):

    class Second(sqlite3.Connection):
        def execute(self, statement, *values):
            if "journal_mode" in statement:
                raise sqlite3.OperationalError("database is locked")
            return super().execute(statement, *values)

    monkeypatch.setattr(sqlite3, "connect", partial(sqlite3.connect, factory=Second))
    parser = FlatParser()
    for _ in range(2):
        assert CachedParser(parser).parse(["a"]) == [flat_parse("a")]
    assert (parser.asked, caplog.messages) == (["a"], [])


KILLED = """
import os, signal
from flat_parser import FlatParser
from synmt.parsing.cache import CachedParser
import synmt.parsing.cache as module
CachedParser(FlatParser()).parse(["safe"])
class Rows(list):
    def __iter__(self):
        yield from list.__iter__(self)
        os.kill(os.getpid(), signal.SIGKILL)
insert = module._insert
module._insert = lambda database, rows: insert(database, Rows(rows))
CachedParser(FlatParser()).parse(["killed", "with it"])
"""


def test_a_kill_while_trees_are_written_loses_those_at_most(caplog):
    with python(KILLED) as killed:
        assert killed.wait() == -9
    parser = FlatParser()
    lines = ["safe", "killed", "with it"]
    assert CachedParser(parser).parse(lines) == [flat_parse(line) for line in lines]
    assert (parser.asked, caplog.messages) == (["killed", "with it"], [])
    CachedParser(parser).parse(lines)
    assert len(parser.asked) == 2


def test_the_trees_of_an_analysis_are_cached_too_and_failures_are_reported_by_line(caplog):
    parser, lines = FlatParser(), [*"ab" * 150, "poison"]
    for _ in range(2):
        assert parse_lines(parser, lines) == list(map(flat_parse, lines))
    assert parser.asked[-2:] == ["poison"] * 2
    what = "could not be parsed in one piece; using a flat or joined tree: poisoned"
    assert caplog.messages == [f"line 301 {what}"] * 2
