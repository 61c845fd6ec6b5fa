"""Probabilities of arcs in a prepared corpus: what is read is what was written, within a 65,535th,
in few bytes."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from synmt.data.annotate import COUNTS
from synmt.data.arrow import lists, table_bytes
from synmt.data.stored_trees import StoredTrees, TreeColumns, shares
from synmt.syntax.parse import Arcs, flat_parse


def arcs_of(words, entries, seed=0):
    """Draw distributions over `entries` arcs for each word, with a sum between 0.999 and 1."""
    random = np.random.default_rng(seed)
    values = random.dirichlet(np.full(entries, 0.1), words)  # (W, entries)
    values = (values * random.uniform(0.999, 1, (words, 1))).ravel().astype(np.float32)
    parents, relations = random.integers(0, words, (2, words * entries))
    names = tuple(map(str, range(40)))
    return Arcs(np.repeat(np.arange(words), entries), parents, relations % 40, values, names)


@pytest.mark.parametrize("entries", [1, 5, 300])
@pytest.mark.parametrize("words", [1, 30])
def test_rounded_probabilities_are_close_and_sum_to_the_rounded_sum(words, entries):
    arcs = arcs_of(words, entries)
    parts, exact = shares(arcs), 65_535 * arcs.probabilities.astype(np.float64)
    assert parts.min() >= 0
    assert np.abs(parts - exact).max() < 1
    kept, sums = (np.bincount(arcs.words, weights=values) for values in (parts, exact))
    assert np.abs(kept - sums).max() < 0.51
    assert kept.max() <= 65_535


def test_words_without_arcs_stay_without():
    some = arcs_of(6, 4)[np.repeat(np.arange(6) % 3 == 1, 4)]
    assert np.abs(shares(some) - 65_535 * some.probabilities).max() < 1


def stored_chains(path, rows, arcs):
    """Store trees without relations, whose words have no pieces, with columns of arcs."""
    words = [range(int(row.words.max()) + 1) for row in rows]
    columns = {name: lists(words, np.int16) for name in ("parents", "relations", "tags", "word_of")}
    facts = {"relations": ["_"] * 9, "tags": ["_"] * 9, "relation_counts": []}
    facts |= {"arcs": rows[0].names if arcs else None, "counts": dict.fromkeys(COUNTS, 0)}
    path.write_bytes(table_bytes(columns | arcs, facts))
    return StoredTrees(path)


def test_arcs_of_an_older_corpus_are_read(tmp_path):
    rows = [arcs_of(4, 3), arcs_of(2, 5, seed=1)]
    names = ("words", "parents", "relations", "probabilities")
    arcs = {f"arc_{name}": pa.array([getattr(row, name) for row in rows]) for name in names}
    stored = stored_chains(tmp_path / "old.arrow", rows, arcs)
    assert [stored.tree(number).parse.arcs for number in (0, 1)] == rows


def test_a_shard_without_arcs_has_none(tmp_path):
    assert stored_chains(tmp_path / "none.arrow", [arcs_of(4, 3)], {}).tree(0).parse.arcs is None


def test_arcs_come_back_and_take_at_most_six_bytes_each(tmp_path):
    rows, sizes = [arcs_of(words, 4, seed=words) for words in range(5, 40)], []
    for given in (False, True):
        columns = TreeColumns(whole=False, constituents=False, features=())
        for words, row in enumerate(rows, start=5):
            parse = replace(flat_parse("w " * words), arcs=row if given else None)
            columns.add(parse, {"word_of": np.arange(words)})
        sizes.append((tmp_path / "trees").write_bytes(columns.to_bytes(dict.fromkeys(COUNTS, 0))))
    # names, counts and padding of the file are not for each arc
    assert sizes[1] - sizes[0] < 6 * sum(len(row.words) for row in rows) + 4_000
    stored = StoredTrees(tmp_path / "trees")
    for number, row in enumerate(rows):
        read = stored.tree(number).parse.arcs
        assert replace(read, probabilities=row.probabilities) == row
        assert np.abs(read.probabilities - row.probabilities).max() < 1.01 / 65_535
