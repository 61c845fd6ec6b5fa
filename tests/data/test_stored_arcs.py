"""Probabilities of arcs in a prepared corpus: what is read is what was written, within a 65,535th,
in few bytes."""

from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pytest

from synmt.data.annotate import COUNTS, ShardAnnotator, ShardRows
from synmt.data.arrow import ArrowTable, lists, write_table
from synmt.data.stored_trees import StoredTrees, shares
from synmt.data.vocabulary import Words
from synmt.syntax.parse import Arcs, Parse

NAMES = [f"w{number}" for number in range(40)]
WORDS = Words(NAMES)


def arcs_of(words, entries, seed=0):
    """Draw distributions over `entries` arcs for each word, with a sum between 0.999 and 1."""
    random = np.random.default_rng(seed)
    values = random.dirichlet(np.full(entries, 0.1), words) * random.uniform(
        0.999, 1, (words, 1)
    )  # (W, entries)
    owners = np.repeat(np.arange(words), entries)
    parents, relations = random.integers(0, words, (2, words * entries))
    return Arcs(
        owners,
        parents,
        relations % 40,
        values.flatten().astype(np.float32),
        tuple(map(str, range(40))),
    )


def chain_of(arcs):
    """Make a tree of words for arcs, whose parents are neighbours."""
    words = NAMES[: int(arcs.words.max()) + 1]
    ends = np.cumsum([len(word) + 1 for word in words]) - 1
    spans = np.stack((ends - [len(word) for word in words], ends), 1)
    parents = np.maximum(np.arange(len(words)) - 1, 0)
    return Parse(words, spans, parents, ["dep"] * len(words), ["X"] * len(words), arcs=arcs)


@dataclass
class ReadLine:
    """A line whose tree has been read already."""

    text: str
    tree: Parse

    def parse(self, *, where):
        return self.tree


def text_columns(text):
    ids = [WORDS.encode_ids(line) for line in text]
    return {"line": pa.array(range(len(text)), type=pa.int64()), "source": lists(ids, np.int32)}


@pytest.mark.parametrize("entries", [1, 5, 300])
@pytest.mark.parametrize("words", [1, 30])
def test_rounded_probabilities_are_close_and_sum_to_the_rounded_sum(words, entries):
    arcs = arcs_of(words, entries)
    parts = shares(arcs)
    assert parts.min() >= 0
    assert np.abs(parts - 65_535 * arcs.probabilities.astype(np.float64)).max() < 1
    sums = np.bincount(arcs.words, weights=arcs.probabilities)
    kept = np.bincount(arcs.words, weights=parts) / 65_535
    assert np.abs(kept - sums).max() < 0.51 / 65_535
    assert kept.max() <= 1


def test_no_arcs_have_no_shares():
    assert shares(arcs_of(3, 0)).tolist() == []


def test_words_without_arcs_stay_without():
    arcs = arcs_of(6, 4)
    some = arcs[np.isin(arcs.words, [1, 4])]
    assert np.abs(shares(some) - 65_535 * some.probabilities).max() < 1


def stored_chains(path, rows, arcs):
    """Store trees without relations, whose words have no pieces, with columns of arcs."""
    words = [range(int(row.words.max()) + 1) for row in rows]
    columns = {name: lists(words, np.int16) for name in ("parents", "relations", "tags", "word_of")}
    names = ["_"] * 9
    facts = {
        "relations": names,
        "relation_counts": [],
        "tags": names,
        "arcs": rows[0].names if arcs else None,
    }
    counts = dict.fromkeys(COUNTS, 0)
    write_table(path, columns | arcs, {**facts, "counts": counts})
    return StoredTrees(path, len(rows))


def test_arcs_of_an_older_corpus_are_read(tmp_path):
    rows = [arcs_of(4, 3), arcs_of(2, 5, seed=1)]
    names = ("words", "parents", "relations", "probabilities")
    arcs = {f"arc_{name}": pa.array([getattr(row, name) for row in rows]) for name in names}
    stored = stored_chains(tmp_path / "old.arrow", rows, arcs)
    assert [stored.tree(number).parse.arcs for number in (0, 1)] == rows


def test_a_shard_without_arcs_has_none(tmp_path):
    assert stored_chains(tmp_path / "none.arrow", [arcs_of(4, 3)], {}).tree(0).parse.arcs is None


def test_an_annotation_with_arcs_takes_at_most_six_bytes_an_arc_more(tmp_path):
    rows = [arcs_of(words, 4, seed=words) for words in range(5, 40)]
    trees = [chain_of(row) for row in rows]
    text = [" ".join(tree.words) for tree in trees]
    write_table(tmp_path / "train-00000.arrow", text_columns(text), {})
    sizes = {}
    for name, own in (("with", trees), ("without", [replace(tree, arcs=None) for tree in trees])):
        shard = tmp_path / "train-00000.arrow"
        lines = [ReadLine(line, tree) for line, tree in zip(text, own, strict=True)]
        numbers = np.arange(len(text))
        rows_of_shard = ShardRows(
            shard, numbers, ArrowTable(shard).lists("source"), 0 * numbers, lines
        )
        (tmp_path / name).write_bytes(ShardAnnotator(WORDS, tmp_path).shard(rows_of_shard))
        sizes[name] = (tmp_path / name).stat().st_size
    arcs = sum(len(row.words) for row in rows)
    # names, counts and padding of the file are not for each arc
    assert sizes["with"] - sizes["without"] < 6 * arcs + 4_000
    stored = StoredTrees(tmp_path / "with", len(rows))
    for number, row in enumerate(rows):
        read = stored.tree(number).parse.arcs
        assert replace(read, probabilities=row.probabilities) == row
        assert np.abs(read.probabilities - row.probabilities).max() < 1.01 / 65_535
