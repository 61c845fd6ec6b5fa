"""Compressing in threads: what comes out again, the same bytes with any number of threads, and
errors."""

import gzip
import io
import random
import subprocess

import pytest

from synmt.files.reading import read_lines
from synmt.files.writing import write_atomically
from synmt.parallel.gzip_blocks import packed_in_blocks

BLOCK = 1 << 20


def packed(text, *, each):
    raw = io.BytesIO()
    with packed_in_blocks(raw) as stream:
        for start in range(0, len(text), each):
            stream.write(text[start : start + each])
    return raw.getvalue()


def some_text(size):
    return bytes(random.Random(size).choices(b"abc \n", k=size))


@pytest.mark.parametrize("size", [0, 1, 5_000, BLOCK - 1, BLOCK, BLOCK + 1, 3 * BLOCK + 7])
def test_what_is_packed_comes_out_again(size):
    text = some_text(size)
    content = packed(text, each=70_000)
    assert gzip.decompress(content) == text
    assert subprocess.run(["gzip", "-dc"], input=content, capture_output=True).stdout == text


def test_the_bytes_depend_on_the_text_only(monkeypatch):
    text, found = some_text(5 * BLOCK + 3), set()
    for threads, each in (("1", 8192), ("2", 1_000_003), ("7", 10 * BLOCK)):
        monkeypatch.setenv("SYNMT_THREADS", threads)
        found.add(packed(text, each=each))
    assert len(found) == 1


def test_a_file_is_written_with_it(tmp_path):
    lines = [f"ä line {number}" for number in range(200_000)]
    with write_atomically(tmp_path / "text.gz", pack=packed_in_blocks) as stream:
        stream.writelines(f"{line}\n" for line in lines)
    assert list(read_lines(tmp_path / "text.gz")) == lines
