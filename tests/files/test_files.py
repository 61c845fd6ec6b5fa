"""Reading files that are not what their names say."""

import bz2
import errno
import fcntl
import gzip
import lzma
import os
import shlex
import stat
import subprocess
import sys
import tracemalloc
from collections import deque
from pathlib import Path

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

TEXT = "".join(f"line {number} of a text\n" for number in range(2000)).encode()


SPOILT = {
    "cut off": gzip.compress(TEXT)[:-20],
    "changed": gzip.compress(TEXT)[:40] + b"#" + gzip.compress(TEXT)[41:],
    "another format": b"no gzip at all",
}


@pytest.mark.parametrize("content", SPOILT.values(), ids=SPOILT)
def test_a_spoilt_gzip_file_is_named(tmp_path, content):
    (tmp_path / "text.gz").write_bytes(content)
    message = (
        r"text\.gz: not a complete gzip file .* if it isn't compressed, take \.gz off its name"
    )
    with pytest.raises(SynmtError, match=message):
        list(read_lines(tmp_path / "text.gz"))


def test_a_text_that_is_not_utf8_comes_with_advice(tmp_path):
    (tmp_path / "text").write_bytes("ä\n".encode("latin1"))
    message = r"text: line 1 is not UTF-8.* with `iconv -f latin1 -t utf-8`"
    with pytest.raises(SynmtError, match=message):
        list(read_lines(tmp_path / "text"))


_ROW = "\t_" * 8 + "\n"
_XML = '<?xml version="1.0" encoding="UTF-8"?>\n'


@pytest.mark.parametrize(
    ("text", "name", "advice"),
    [
        (gzip.compress(b"a\n", mtime=0), "gzip", "end in .gz"),
        (lzma.compress(b"a\n"), "xz", "xz -dk"),
        (bz2.compress(b"a\n"), "bzip2", "bzip2 -dk"),
        (b"\x28\xb5\x2f\xfd\x04\x00", "zstd", "zstd -dk"),
        (b"PK\x03\x04\x14\x00", "a zip archive", "unzip"),
        ("ä\n".encode("utf-16"), "UTF-16", "iconv"),
        ("The monkey\n".encode("utf-16-be"), "UTF-16", "utf-16be"),
        (f'{_XML}<!DOCTYPE tmx SYSTEM "tmx14.dtd">\n<tmx version="1.4">\n', "TMX", "corpus.test: "),
        ('<tmx version="1.4"><header/></tmx>', "TMX", "mtdata.tmx"),
        ('<srcset setid="newstest2015" srclang="any">\n<doc docid="1">\n', "SGM", "<seg"),
        ('<!DOCTYPE mteval SYSTEM "x.dtd">\n<mteval>\n<refset setid="a">\n', "SGM", "<seg"),
        ('<DOC docid="1" genre="news">\n<seg id="1">The monkey.</seg>\n', "SGM", "<seg"),
        (f'{_XML}<dataset id="wmt21"><doc origlang="en">\n', "XML", "corpus.test"),
        ('<!doctype html>\n<html lang="en">\n<head>', "HTML", "one per line"),
        ("<html><body>", "HTML", "one per line"),
        (
            "<url>http://ted.com/1</url>\n<keywords>talks</keywords>\n",
            "text with tags of IWSLT",
            "--docs corpora",
        ),
        (
            f"# sent_id = 1\n# text = The monkey.\n1\tThe{_ROW}2\tmonkey{_ROW}",
            "CoNLL-U",
            "--parses",
        ),
        (f"1-2\tdu{_ROW}1\tde{_ROW}", "CoNLL-U", "source_parses"),
        ('{"text": "The monkey."}\n{"text": "A banana."}\n', "JSON", "--jsonl"),
        ('[\n  {\n    "source": "The monkey."', "JSON", "--jsonl"),
        ('\ufeff["The monkey.", "A banana."]', "JSON", "--jsonl"),
    ],
)
def test_what_is_not_plain_text_is_recognized_by_its_beginning(
    tmp_path, monkeypatch, text, name, advice
):
    text = text if isinstance(text, bytes) else text.encode()
    (tmp_path / "text").write_bytes(text)
    with pytest.raises(
        UsageError, match=f"text: this is {name}, not one sentence per line"
    ) as raised:
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
    monkeypatch.setattr(
        "platformdirs.user_cache_dir", lambda name, appauthor: f"C:/Caches/{name}/{appauthor}"
    )
    monkeypatch.setenv("SYNMT_CACHE", "~/own")
    assert cache_folder() == Path.home() / "own"
    monkeypatch.delenv("SYNMT_CACHE")
    assert cache_folder() == Path("C:/Caches/synmt/False")


def test_a_link_stays_one_and_what_it_leads_to_is_replaced(tmp_path):
    (tmp_path / "real").write_text("old")
    (tmp_path / "link").symlink_to("real")
    with write_atomically(tmp_path / "link") as out:
        out.write("new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_text() == "new"


def test_a_link_to_a_folder_stays_one_and_the_folder_is_replaced(tmp_path):
    (tmp_path / "disk" / "real").mkdir(parents=True)
    (tmp_path / "disk" / "real" / "old").touch()
    (tmp_path / "link").symlink_to("disk/real")
    with write_folder_atomically(tmp_path / "link") as unfinished:
        (unfinished / "new").touch()
    assert (tmp_path / "link").is_symlink()
    assert [path.name for path in (tmp_path / "disk" / "real").iterdir()] == ["new"]
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


def test_the_name_of_a_link_says_whether_the_file_is_compressed(tmp_path):
    for name, target in (("link.gz", "one"), ("link", "two.gz")):
        (tmp_path / name).symlink_to(target)
        with write_atomically(tmp_path / name) as out:
            out.write("a line\n")
        assert list(read_lines(tmp_path / name)) == ["a line"]


WRITE = """
import sys
from synmt.files.writing import write_atomically
with write_atomically(sys.argv[1]) as out:
    out.write('new')
"""


@pytest.mark.journey
@pytest.mark.parametrize(
    ("redirected", "name"),
    [("> log", "/dev/stdout"), ("3> log", "/dev/fd/3"), ("2> log", "/dev/stderr")],
)
def test_a_stream_of_a_shell_keeps_its_place_for_what_other_commands_write(
    tmp_path, redirected, name
):
    stream = {"/dev/stdout": "1", "/dev/stderr": "2"}.get(name, "3")
    write = shlex.join([sys.executable, "-c", WRITE, name])
    script = f"{{ echo before >&{stream}; {write}; echo after >&{stream}; }} {redirected}"
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


@pytest.mark.journey
def test_an_output_takes_away_what_killed_commands_left_of_it_and_nothing_else(tmp_path):
    out, begun, others = (
        tmp_path / "out",
        tmp_path / "begun",
        {".out.settings", ".outer.abcdefgh.unfinished", "begun"},
    )
    killed = Forked(write_slowly, out, begun, log=tmp_path / "log")
    wait_for(begun.exists)
    killed.kill()
    killed.wait()
    (tmp_path / "log").unlink()
    [left] = tmp_path.glob(".*")
    assert left.name.startswith(".out.")
    for name in others:
        (tmp_path / name).touch()
    with write_output(out) as stream:
        stream.write("new")
    assert {path.name for path in tmp_path.iterdir()} == {"out", *others}
    assert out.read_text() == "new"


@pytest.mark.journey
def test_an_output_that_another_process_is_writing_is_left_to_it(tmp_path):
    out, begun = tmp_path / "out", tmp_path / "begun"
    slow = Forked(write_slowly, out, begun, log=tmp_path / "log")
    wait_for(begun.exists)
    with write_output(out) as stream:
        stream.write("new")
    assert out.read_text() == "new"
    (tmp_path / "go").touch()
    assert slow.wait() == 0
    assert out.read_text() == "slow"
    assert {path.name for path in tmp_path.iterdir()} == {"out", "begun", "go", "log"}


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
    with write_atomically(tmp_path / "out") as out:
        out.write("text")
    assert len(taken) == 1
    assert [path.read_text() for path in tmp_path.iterdir()] == ["text"]


def test_a_disk_without_locks_is_written_and_loses_nothing(tmp_path, monkeypatch):
    def refuse(handle, how):
        raise OSError(errno.ENOLCK, "No locks available")

    (tmp_path / ".out.abcdefgh.unfinished").touch()
    monkeypatch.setattr(fcntl, "flock", refuse)
    with write_output(tmp_path / "out") as out:
        out.write("text")
    assert {path.name for path in tmp_path.iterdir()} == {"out", ".out.abcdefgh.unfinished"}


def test_a_pipe_is_written_and_stays_one(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    with write_atomically(pipe) as out:
        out.write("one line\n")
    assert os.read(reader, 100) == b"one line\n"
    os.close(reader)
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    assert os.listdir(tmp_path) == ["pipe"]


def _lines_of_a_pipe(path):
    with open_binary(path) as stream:
        yield from read_available_lines(stream, 10, where=str(path))


@pytest.mark.parametrize(
    "read",
    [read_lines, count_lines, _lines_of_a_pipe, lambda path: read_side(Packed((path,)), "txt")],
)
def test_a_line_that_would_fill_the_memory_is_named(tmp_path, read):
    path = tmp_path / "text.gz"
    with gzip.open(path, "wb", 1) as out:
        out.write(b"A dog.\n")
        for _ in range(200):
            out.write(b" " * 1_000_000)
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
