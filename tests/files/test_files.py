"""Reading files that are not what their names say."""

import bz2
import errno
import fcntl
import gzip
import lzma
import os
import shlex
import subprocess
import sys
import tracemalloc
from collections import deque
from pathlib import Path
from unittest.mock import Mock

import pytest
from forked import Forked, wait_for
from tiny import environment, write_lines

from synmt.corpora.archives import Packed
from synmt.corpora.formats import read_side
from synmt.errors import SynmtError, UsageError
from synmt.files.reading import (
    cache_folder,
    count_lines,
    open_binary,
    read_available_lines,
    read_lines,
)
from synmt.files.writing import write_atomically, write_folder_atomically, write_output


def names_in(folder):
    return {path.name for path in folder.iterdir()}


TEXT = "".join(f"line {number} of a text\n" for number in range(2000)).encode()
PACKED = gzip.compress(TEXT)
SPOILT = [PACKED[:-20], PACKED[:40] + b"#" + PACKED[41:], b"no gzip at all"]


@pytest.mark.parametrize("content", SPOILT, ids=["cut off", "changed", "another format"])
def test_a_spoilt_gzip_file_is_named(tmp_path, content):
    (tmp_path / "text.gz").write_bytes(content)
    message = r"text\.gz: not a complete gzip file .* take \.gz off its name"
    with pytest.raises(SynmtError, match=message):
        list(read_lines(tmp_path / "text.gz"))


def test_a_text_that_is_not_utf8_comes_with_advice(tmp_path):
    (tmp_path / "text").write_bytes("ä\n".encode("latin1"))
    message = r"text: line 1 is not UTF-8.* with `iconv -f latin1 -t utf-8`"
    with pytest.raises(SynmtError, match=message):
        list(read_lines(tmp_path / "text"))


MARKED = r"""
\x28\xb5\x2f\xfd\x04\x00 | zstd | zstd -dk
PK\x03\x04\x14\x00 | a zip archive | unzip
\xff\xfe\xe4\0\n\0 | UTF-16 | iconv
\0T\0h\0e\0 \0m\0o\0n\0k\0e\0y\0\n | UTF-16 | utf-16be
<?xml version="1.0"?>\n<!DOCTYPE tmx SYSTEM "tmx14.dtd">\n<tmx version="1.4"> | TMX | corpus.test:
<tmx version="1.4"><header/></tmx> | TMX | mtdata.tmx
<srcset setid="newstest2015" srclang="any">\n<doc docid="1"> | SGM | <seg
<!DOCTYPE mteval SYSTEM "x.dtd">\n<mteval>\n<refset setid="a"> | SGM | <seg
<DOC docid="1" genre="news">\n<seg id="1">The monkey.</seg> | SGM | <seg
<?xml version="1.0"?>\n<dataset id="wmt21"><doc origlang="en"> | XML | corpus.test
<!doctype html>\n<html lang="en">\n<head> | HTML | one per line
<html><body> | HTML | one per line
<url>http://ted.com/1</url>\n<keywords>talks</keywords> | text with tags of IWSLT | --docs corpora
# sent_id = 1\n# text = The monkey.\n1\tThe@2\tmonkey@ | CoNLL-U | --parses
1-2\tdu@1\tde@ | CoNLL-U | source_parses
{"text": "The monkey."}\n{"text": "A banana."} | JSON | --jsonl
[\n  {\n    "source": "The monkey." | JSON | --jsonl
\xef\xbb\xbf["The monkey.", "A banana."] | JSON | --jsonl
"""
"""Text with escapes, where `@` stands for the rest of a row; its name, and a part of the advice."""
PACKED_TEXTS = [
    (gzip.compress(b"a\n", mtime=0), "gzip", "end in .gz"),
    (lzma.compress(b"a\n"), "xz", "xz -dk"),
    (bz2.compress(b"a\n"), "bzip2", "bzip2 -dk"),
]


def case_of(line):
    text, *said = line.split(" | ")
    escaped = text.replace("@", r"\t_" * 8 + r"\n")
    return escaped.encode().decode("unicode_escape").encode("latin1"), *said


@pytest.mark.parametrize(
    ("text", "name", "advice"), [*PACKED_TEXTS, *map(case_of, MARKED.strip().splitlines())]
)
def test_what_is_not_plain_text_is_recognized_by_its_beginning(
    tmp_path, monkeypatch, text, name, advice
):
    (tmp_path / "text").write_bytes(text)
    with pytest.raises(UsageError, match=f"text: this is {name}, not one sentence") as raised:
        list(read_lines(tmp_path / "text"))
    assert advice in str(raised.value)
    with open(tmp_path / "text") as stdin:
        monkeypatch.setattr(sys, "stdin", stdin)
        with pytest.raises(UsageError, match=f"standard input: this is {name}, "):
            list(read_lines("-"))


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


def test_a_link_to_a_folder_stays_one_and_the_folder_is_replaced(tmp_path):
    old = write_lines(tmp_path / "disk" / "real" / "old", [])
    (tmp_path / "link").symlink_to("disk/real")
    with write_folder_atomically(tmp_path / "link") as unfinished:
        (unfinished / "new").touch()
    assert (tmp_path / "link").is_symlink()
    assert names_in(old.parent) == {"new"}
    assert names_in(tmp_path) == {"disk", "link"}


@pytest.mark.parametrize(("name", "real"), [("link.gz", "one"), ("link", "two.gz")])
def test_a_link_stays_one_and_its_name_says_whether_what_it_leads_to_is_compressed(
    tmp_path, name, real
):
    (tmp_path / real).write_text("old")
    (tmp_path / name).symlink_to(real)
    with write_atomically(tmp_path / name) as out:
        out.write("a line\n")
    assert (tmp_path / name).is_symlink()
    assert list(read_lines(tmp_path / name)) == ["a line"]


WRITE = """
import sys
from synmt.files.writing import write_atomically
with write_atomically(sys.argv[1]) as out:
    out.write('new')
"""


@pytest.mark.journey
@pytest.mark.parametrize(
    ("number", "name"), [(1, "/dev/stdout"), (3, "/dev/fd/3"), (2, "/dev/stderr")]
)
def test_a_stream_of_a_shell_keeps_its_place_for_what_other_commands_write(tmp_path, number, name):
    write = shlex.join([sys.executable, "-c", WRITE, name])
    script = f"{{ echo before >&{number}; {write}; echo after >&{number}; }} {number}> log"
    subprocess.run(["bash", "-c", script], cwd=tmp_path, env=environment(), check=True)
    assert (tmp_path / "log").read_text() == "before\nnewafter\n"


@pytest.mark.parametrize(
    ("number", "why"), [(987, "Bad file descriptor"), (10**20, "No such file or directory")]
)
def test_a_stream_that_is_not_open_is_named(number, why):
    message = f"/dev/fd/{number}: cannot write: {why}. Choose another output"
    with pytest.raises(SynmtError, match=message), write_atomically(f"/dev/fd/{number}"):
        pass


def write_slowly(path, begun):
    with write_output(path) as out:
        out.write("slow")
        begun.touch()
        # until it is killed, or until the other file is there
        wait_for(lambda: path.with_name("go").exists())


@pytest.fixture
def begun(tmp_path):
    """Let another process begin to write `out`; gives the process."""
    process = Forked(write_slowly, tmp_path / "out", tmp_path / "begun", log=tmp_path / "log")
    wait_for((tmp_path / "begun").exists)
    return process


def write_new(path):
    with write_output(path) as out:
        out.write("new")
    assert path.read_text() == "new"


@pytest.mark.journey
def test_an_output_takes_away_what_killed_commands_left_of_it_and_nothing_else(tmp_path, begun):
    others = {".out.settings", ".outer.abcdefgh.unfinished", "begun", "log"}
    begun.kill()
    begun.wait()
    [left] = tmp_path.glob(".*")
    assert left.name.startswith(".out.")
    for name in others:
        (tmp_path / name).touch()
    write_new(tmp_path / "out")
    assert names_in(tmp_path) == {"out", *others}


@pytest.mark.journey
def test_an_output_that_another_process_is_writing_is_left_to_it(tmp_path, begun):
    write_new(tmp_path / "out")
    (tmp_path / "go").touch()
    assert begun.wait() == 0
    assert (tmp_path / "out").read_text() == "slow"
    assert names_in(tmp_path) == {"out", "begun", "go", "log"}


def test_a_file_that_another_process_removes_before_it_is_locked_is_made_again(
    tmp_path, monkeypatch
):
    plain, taken = fcntl.flock, []

    def take_the_first(handle, how):
        if not taken:
            taken.extend(tmp_path.iterdir())
            taken[0].unlink()
        plain(handle, how)

    monkeypatch.setattr(fcntl, "flock", take_the_first)
    write_new(tmp_path / "out")
    assert len(taken) == 1
    assert names_in(tmp_path) == {"out"}


def test_a_disk_without_locks_is_written_and_loses_nothing(tmp_path, monkeypatch):
    (tmp_path / ".out.abcdefgh.unfinished").touch()
    refuse = Mock(side_effect=OSError(errno.ENOLCK, "No locks available"))
    monkeypatch.setattr(fcntl, "flock", refuse)
    write_new(tmp_path / "out")
    assert names_in(tmp_path) == {"out", ".out.abcdefgh.unfinished"}


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
        with pytest.raises(SynmtError, match=r"text\.gz: line 2 is longer than 10 MB\. Check that"):
            deque(read(path), maxlen=0)
        assert tracemalloc.get_traced_memory()[1] < 90_000_000
    finally:
        tracemalloc.stop()


def test_the_longest_line_is_read(tmp_path, monkeypatch):
    monkeypatch.setattr("synmt.files.reading.LONGEST", 9)
    (tmp_path / "text").write_bytes(b"12345678\n123456789\n")
    lines = read_lines(tmp_path / "text")
    assert next(lines) == "12345678"
    with pytest.raises(SynmtError, match="line 2 is longer"):
        next(lines)
