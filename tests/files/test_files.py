"""Reading files that are not what their names say."""

import gzip
import os
import sys
import tracemalloc
from collections import deque
from pathlib import Path

import pytest
from refusing import assert_fails, assert_refused
from tiny import write_lines

from synmt.corpora.archives import Packed
from synmt.corpora.formats import read_side
from synmt.corpora.resolve import resolve
from synmt.errors import SynmtError, UsageError
from synmt.files.reading import (
    cache_folder,
    count_lines,
    open_binary,
    read_available_lines,
    read_lines,
)
from synmt.files.writing import (
    locked,
    without_link,
    write_atomically,
    write_folder_atomically,
    write_output,
)
from synmt.recipe.corpus import CorpusRecipe


def names_in(folder):
    return {path.name for path in folder.iterdir()}


TEXT = "".join(f"line {number} of a text\n" for number in range(2000)).encode()
PACKED = gzip.compress(TEXT)
SPOILT = [PACKED[:-20], PACKED[:40] + b"#" + PACKED[41:], b"no gzip at all"]


@pytest.mark.parametrize("content", SPOILT, ids=["cut off", "changed", "another format"])
def test_a_spoilt_gzip_file_is_named(tmp_path, content):
    (tmp_path / "text.gz").write_bytes(content)
    message = r"text\.gz: not a complete gzip file .* take \.gz off its name"
    assert_fails(message, list, read_lines(tmp_path / "text.gz"))


def test_a_text_that_is_not_utf8_comes_with_advice(tmp_path):
    (tmp_path / "text").write_bytes("ä\n".encode("latin1"))
    message = r"text: line 1 is not UTF-8.* with `iconv -f latin1 -t utf-8`"
    assert_fails(message, list, read_lines(tmp_path / "text"))


MARKED = r"""
\x1f\x8b\x08\0 | a compressed file
BZh91AY&SY | a compressed file
\x28\xb5\x2f\xfd\x04\x00 | a compressed file
PK\x03\x04\x14\x00 | a compressed file
\xff\xfe\xe4\0\n\0 | UTF-16
<?xml version="1.0"?>\n<!DOCTYPE tmx SYSTEM "tmx14.dtd">\n<tmx version="1.4"> | XML or HTML
<tmx version="1.4"><header/></tmx> | XML or HTML
<srcset setid="newstest2015" srclang="any">\n<doc docid="1"> | XML or HTML
<!DOCTYPE mteval SYSTEM "x.dtd">\n<mteval>\n<refset setid="a"> | XML or HTML
<DOC docid="1" genre="news">\n<seg id="1">The monkey.</seg> | XML or HTML
<!doctype html>\n<html lang="en">\n<head> | XML or HTML
<html><body> | XML or HTML
<url>http://ted.com/1</url>\n<keywords>talks</keywords> | XML or HTML
# sent_id = 1\n# text = The monkey.\n1\tThe@2\tmonkey@ | CoNLL-U
1-2\tdu@1\tde@ | CoNLL-U
{"text": "The monkey."}\n{"text": "A banana."} | JSON
[\n  {\n    "source": "The monkey." | JSON
\xef\xbb\xbf["The monkey.", "A banana."] | JSON
"""
"""Text with escapes, where `@` stands for the rest of a row; its name."""


@pytest.mark.parametrize("line", MARKED.strip().splitlines())
def test_what_is_not_plain_text_is_recognized_by_its_beginning(tmp_path, monkeypatch, line):
    text, name = line.replace("@", r"\t_" * 8 + r"\n").split(" | ")
    content = text.encode().decode("unicode_escape").encode("latin1")
    (tmp_path / "text").write_bytes(content)
    assert_refused(f"text: this is {name}, not one sentence", list, read_lines(tmp_path / "text"))
    with open(tmp_path / "text") as stdin:
        monkeypatch.setattr(sys, "stdin", stdin)
        assert_refused(f"standard input: this is {name}, ", list, read_lines("-"))


PLAIN = """\
<html> is the first tag of a page.
<doc> The monkey eats. </doc>|<doc> It sleeps. </doc>
<doc id="12" title="Monkey">|The monkey eats.
<2de> The monkey eats.
<url> shows a monkey.
{ The monkey } eats.
{"The monkey", he says}
[Music]|[1] The monkey eats.
# The monkey|# A banana
1\tThe monkey\tDer Affe
PK is a name, BZh another one.
<?php is not XML
XML begins with <?xml version='1.0'?>|<tmx version='1.4'>
"""


@pytest.mark.parametrize("text", PLAIN.splitlines())
def test_plain_text_with_marks_at_its_beginning_is_read(tmp_path, text):
    lines = text.split("|")
    assert list(read_lines(write_lines(tmp_path / "text", lines))) == lines


def test_the_cache_is_where_the_platform_keeps_caches_unless_the_user_says_otherwise(monkeypatch):
    monkeypatch.setattr("platformdirs.user_cache_dir", "C:/Caches/{}/{appauthor}".format)
    monkeypatch.setenv("SYNMT_CACHE", "~/own")
    assert cache_folder() == Path.home() / "own"
    monkeypatch.delenv("SYNMT_CACHE")
    assert cache_folder() == Path("C:/Caches/synmt/False")


def test_a_link_is_replaced_and_what_it_leads_to_stays(tmp_path):
    old = write_lines(tmp_path / "disk" / "old", ["mine"])
    for name in ("folder", "file", "lock", "log"):
        (tmp_path / name).symlink_to(old.parent if name == "folder" else old)
    with write_folder_atomically(tmp_path / "folder") as unfinished:
        (unfinished / "new").touch()
    with write_atomically(tmp_path / "file") as out:
        out.write("new\n")
    with locked(tmp_path, "this"), without_link(tmp_path / "log").open("a") as log:
        log.write("new\n")
    assert list(read_lines(old)) == ["mine"]
    assert names_in(old.parent) == {"old"}
    assert names_in(tmp_path / "folder") == {"new"}
    assert not any((tmp_path / name).is_symlink() for name in ("folder", "file", "lock", "log"))


@pytest.mark.parametrize(("name", "real"), [("link.gz", "one"), ("link", "two.gz")])
def test_an_output_behind_a_link_is_compressed_if_its_own_name_says_so(tmp_path, name, real):
    (tmp_path / real).write_text("old")
    (tmp_path / name).symlink_to(real)
    with write_output(tmp_path / name) as out:
        out.write("a line\n")
    assert (tmp_path / name).is_symlink()
    assert list(read_lines(tmp_path / name)) == ["a line"]


def test_a_stream_that_is_not_open_is_named():
    with (
        pytest.raises(SynmtError, match="/dev/fd/987: cannot write: No such file"),
        write_atomically("/dev/fd/987"),
    ):
        pass


def test_a_pipe_is_written_and_stays_one(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    with write_atomically(pipe) as out:
        out.write("one line\n")
    assert os.read(reader, 100) == b"one line\n"
    os.close(reader)
    assert pipe.is_fifo()
    assert names_in(tmp_path) == {"pipe"}


def _lines_of_a_pipe(path):
    with open_binary(path) as stream:
        yield from read_available_lines(stream, 10, where=str(path))


@pytest.mark.parametrize(
    "read",
    [read_lines, count_lines, _lines_of_a_pipe, lambda path: read_side(Packed((path,)), "txt")],
)
def test_a_line_that_would_fill_the_memory_is_named(tmp_path, read):
    path = tmp_path / "text.gz"
    path.write_bytes(gzip.compress(b"A dog.\n") + gzip.compress(b" " * 1_000_000, 1) * 200)
    tracemalloc.start()
    try:
        message = r"text\.gz: line 2 is longer than 10 MB\. Check that"
        assert_fails(message, lambda: deque(read(path), maxlen=0))
        assert tracemalloc.get_traced_memory()[1] < 90_000_000
    finally:
        tracemalloc.stop()


def test_the_longest_line_is_read(tmp_path, monkeypatch):
    monkeypatch.setattr("synmt.files.reading.LONGEST", 9)
    (tmp_path / "text").write_bytes(b"12345678\n123456789\n")
    lines = read_lines(tmp_path / "text")
    assert next(lines) == "12345678"
    assert_fails("line 2 is longer", next, lines)


def test_mark_up_and_one_file_for_both_sides_are_refused_together(tmp_path):
    tmx = write_lines(tmp_path / "m.tmx", ['<?xml version="1.0"?>', '<tmx version="1.4">'])
    text, link = write_lines(tmp_path / "text", ["The monkey eats."]), tmp_path / "link"
    link.symlink_to(text)
    train, valid = {"source": tmx, "target": tmx}, {"source": text, "target": link}
    recipe = CorpusRecipe.model_validate({"train": [train], "valid": valid}, strict=False)
    with pytest.raises(UsageError) as raised:
        resolve(recipe, "en", "de")
    first, second, third = str(raised.value).splitlines()
    assert first.startswith(f"{tmx}: corpus.train: source and target are the same file")
    assert second.startswith(f"{tmx}: this is XML or HTML")
    assert third.startswith(f"{link}: corpus.valid: source and target are the same file")
