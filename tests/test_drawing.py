"""Pairs in chunks of bytes, and the lines that are drawn from them for a vocabulary."""

import gzip
import random

import numpy as np
import pytest

from synmt.data.drawing import LineSample, draw_numbers, lines_of
from synmt.data.pairs import read_chunks, read_pairs
from synmt.errors import SynmtError
from synmt.recipe.corpus import SplitFiles

LINES = ["a", "", "b \u2028 c", "\x85", "\ufeffd", "e\r", "😀", "g"]


def files_of(folder, source, target):
    files = SplitFiles(source=folder / "text.en", target=folder / "text.de.gz")
    files.source.write_bytes(source)
    files.target.write_bytes(gzip.compress(target))
    return files


@pytest.mark.parametrize("size", [1, 3, 8, 100])
@pytest.mark.parametrize("end", ["", "\n"])
@pytest.mark.parametrize("start", ["", "\ufeff"])
def test_chunks_have_the_lines_of_the_files(tmp_path, size, end, start):
    text = start + "\n".join(LINES) + end
    files = files_of(tmp_path, text.encode(), "\n".join(LINES[::-1]).encode())
    chunks = list(read_chunks(files, size))
    assert [chunk.first for chunk in chunks] == list(range(0, len(LINES), size))
    assert [pair for chunk in chunks for pair in chunk.pairs()] == list(read_pairs(files))


def test_a_file_that_only_has_a_byte_order_mark_has_one_line(tmp_path):
    [chunk] = read_chunks(files_of(tmp_path, "\ufeff".encode(), b"\n"), 5)
    assert chunk.pairs() == [("", "")]


def test_a_line_that_is_not_utf8_is_named_whatever_its_chunk(tmp_path):
    chunks = read_chunks(files_of(tmp_path, b"x\n" * 6, b"y\n" * 4 + b"caf\xe9\ny\n"), 2)
    with pytest.raises(SynmtError, match=r"text\.de\.gz: line 5 is not UTF-8 \(byte 4 "):
        [chunk.pairs() for chunk in chunks]


def reservoir(lines, count, seed=1):
    """LineSample as every vocabulary so far was drawn."""
    generator, sample = random.Random(seed), []
    for number, line in enumerate(lines):
        if number < count:
            sample.append(line)
        elif (place := generator.randrange(number + 1)) < count:
            sample[place] = line
    return sample


@pytest.mark.parametrize("count", [1, 2, 7, 8, 63, 64, 300])
@pytest.mark.parametrize("total", [0, 1, 2, 8, 64, 127, 128, 1000])
def test_numbers_are_drawn_as_they_always_were(total, count):
    for seed in (1, 2):
        assert draw_numbers(total, count, seed=seed).tolist() == reservoir(range(total), count, seed)


def test_numbers_are_drawn_with_equal_chance():
    hits = np.zeros(20)
    for seed in range(4000):
        hits[draw_numbers(20, 5, seed=seed)] += 1
    # 1000 each, with a standard deviation of √(4000 · 0.25 · 0.75) = 27
    assert (abs(hits - 1000) < 5 * 27).all()


@pytest.mark.parametrize("count", [1, 5, 50, 1000])
@pytest.mark.parametrize("sides", [[0], [1], [0, 1]])
@pytest.mark.parametrize("size", [7, 1000])
def test_lines_are_drawn_from_kept_pairs_and_it_is_said(tmp_path, caplog, count, sides, size):
    caplog.set_level("INFO", logger="synmt")
    texts = ["".join(f"{side}{number}\n" for number in range(100)).encode() for side in "sz"]
    files, kept = files_of(tmp_path, *texts), np.random.default_rng(1).random(100) < 0.6
    pairs = [pair for pair, keep in zip(read_pairs(files), kept, strict=True) if keep]
    lines = [pair[side] for pair in pairs for side in sides]
    drawn = reservoir(lines, count)
    assert LineSample(read_chunks(files, size), kept, sides, count).lines() == drawn
    said = f"vocabulary: learned from {count:,} of {len(lines):,} lines, drawn at random (vocabulary.training_lines)"
    assert caplog.messages == [said] * (count < len(lines))
    blocks = LineSample(read_chunks(files, size), kept, sides, count).blocks()
    assert [line for block in blocks for line in lines_of(block)] == sorted(drawn, key=lines.index)


def test_drawn_lines_have_no_byte_order_mark_and_all_odd_line_ends(tmp_path):
    text = ("\ufeff" + "\n".join(LINES)).encode()
    sample = LineSample(read_chunks(files_of(tmp_path, text, text), 3), np.ones(len(LINES), dtype=bool), [0], 100)
    assert sample.lines() == LINES
