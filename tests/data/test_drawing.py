"""Pairs in chunks of bytes, and the lines that are drawn from them for a vocabulary."""

import gzip

import numpy as np
import pytest

from synmt.data.text_pairs import read_chunks, read_pairs
from synmt.data.vocabulary_training import draw_lines
from synmt.errors import SynmtError
from synmt.recipe.corpus import SplitFiles

LINES = ["a", "", "b \u2028 c", "\x85", "\ufeffd", "\re\r\rf\r", "😀", "g"]


def drawn_from(*sample):
    return [line for block in draw_lines(*sample) for line in block.split("\n")]


def files_of(folder, source, target):
    files = SplitFiles(source=folder / "text.en", target=folder / "text.de.gz")
    files.source.write_bytes(source)
    files.target.write_bytes(gzip.compress(target))
    return files


def numbers(count, *sides):
    """Write the numbers of lines after the name of each side."""
    return ["".join(f"{side}{number}\n" for number in range(count)).encode() for side in sides]


@pytest.mark.parametrize("size", [1, 3, 8, 100])
@pytest.mark.parametrize("last", [True, False])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("start", ["", "\ufeff"])
def test_chunks_have_the_lines_of_the_files(tmp_path, size, last, end, start):
    source, target = (start + end.join(lines) + end * last for lines in (LINES, LINES[::-1]))
    files = files_of(tmp_path, source.encode(), target.encode())
    chunks = list(read_chunks(files, size))
    assert [chunk.first for chunk in chunks] == list(range(0, len(LINES), size))
    expected = [line if end == "\r\n" else line.removesuffix("\r") for line in LINES]
    pairs = [pair for chunk in chunks for pair in chunk.pairs()]
    assert pairs == list(read_pairs(files)) == list(zip(expected, expected[::-1], strict=True))


def test_a_file_that_only_has_a_byte_order_mark_has_one_line(tmp_path):
    [chunk] = read_chunks(files_of(tmp_path, "\ufeff".encode(), b"\n"), 5)
    assert chunk.pairs() == [("", "")]


def test_a_line_that_is_not_utf8_is_named_whatever_its_chunk(tmp_path):
    chunks = read_chunks(files_of(tmp_path, b"x\n" * 6, b"y\n" * 4 + b"caf\xe9\ny\n"), 2)
    with pytest.raises(SynmtError, match=r"text\.de\.gz: line 5 is not UTF-8"):
        [chunk.pairs() for chunk in chunks]


@pytest.mark.parametrize("count", [5, 1000])
@pytest.mark.parametrize("sides", [[0], [0, 1]])
@pytest.mark.parametrize("size", [7, 1000])
def test_lines_are_drawn_from_kept_pairs_in_their_order(tmp_path, count, sides, size):
    files, kept = files_of(tmp_path, *numbers(100, "s", "z")), np.arange(100) % 3 > 0
    lines = [f"{'sz'[side]}{number}" for number in np.flatnonzero(kept) for side in sides]
    drawn, again = (drawn_from(read_chunks(files, size), kept, sides, count) for _ in range(2))
    assert len(drawn) == min(count, len(lines))
    assert drawn == again == sorted(set(drawn), key=lines.index)


def test_lines_are_drawn_with_equal_chance_alone_and_in_pairs(tmp_path, monkeypatch):
    chunks = list(read_chunks(files_of(tmp_path, *numbers(10, "", "1")), 3))
    hits, states, kept = np.zeros((20, 20)), np.random.RandomState, np.ones(10, dtype=bool)
    for seed in range(4000):
        monkeypatch.setattr(np.random, "RandomState", lambda _, seed=seed: states(seed))
        drawn = [int(line) for line in drawn_from(chunks, kept, [0, 1], 5)]
        hits[np.ix_(drawn, drawn)] += 1
    alone, together = np.diag(hits), hits[np.triu_indices(20, 1)]
    # expected are 4000 · 5/20 and 4000 · 5/20 · 4/19, with standard deviations of 27 and 14
    assert (abs(alone - 1000) < 5 * 27).all()
    assert (abs(together - 210.5) < 5 * 14).all()
