"""The parts of a training text: what an epoch reads by their weights, and the tags before their
sources."""

import re
from collections import Counter
from dataclasses import replace
from functools import partial
from itertools import count, islice

import numpy as np
import pytest
from preparing import CHAIN, corpus_of, prepared, recipe_of, rows_of, trees_for
from refusing import assert_fails

from synmt.corpora.corpus import CorpusPart, part_tags, rows_of_parts, tags_of_lines
from synmt.data.annotate import annotate, annotation_name
from synmt.data.epoch import epoch_rows
from synmt.data.prepare import prepared_folder
from synmt.data.stream import Position, Reader
from synmt.data.vocabulary_training import train_vocabulary
from synmt.recipe.data import VocabularyRecipe
from synmt.recipe.schema import TrainingRecipe

NAMES = re.findall(r"\w+", "monkey banana apple tree girl boy river stone bird house")
NEWS = [(f"The {a} sees a {b}.", f"{a} sieht {b}.") for a in NAMES for b in NAMES if a < b]
TALKS = [(f"A {a} took the {b}.", f"{a} nahm {b}.") for a in NAMES for b in NAMES if a > b]
BACK = [(f"{b} and {a}", f"{b} und {a}") for a in NAMES for b in NAMES if a < b]
BACK += [NEWS[0], NEWS[0], ("one two three four five six", "eins"), ("\u200b", "leer")]
PARTS = (
    CorpusPart("news", len(NEWS)),
    CorpusPart("talks", len(TALKS), 2.5),
    CorpusPart("back", len(BACK), 0.5, "<BT>"),
)
TRAINING = TrainingRecipe(batch_tokens=80)


SECTIONS = {
    "vocabulary": {"size": 90, "byte_fallback": False},
    "filters": {"max_words": 5, "duplicates": True},
}


@pytest.fixture
def corpus(tmp_path):
    corpus = corpus_of(tmp_path / "text", NEWS + TALKS + BACK, NEWS[:3])
    return replace(corpus, parts=PARTS)


@pytest.fixture
def data(tmp_path, corpus):
    return prepared(tmp_path, corpus, **SECTIONS)


@pytest.fixture
def reader(data):
    """Make a reader of the training text by the weights of parts."""
    return partial(Reader, data.split("train"), TRAINING)


def reweighted(*weights):
    """Give the parts other weights."""
    return [replace(part, weight=weight) for part, weight in zip(PARTS, weights, strict=True)]


def epochs(reader, wanted):
    """Read whole epochs; gives the lines of their batches."""
    read: list[list[tuple[int, ...]]] = [[] for _ in range(wanted)]
    for batch, position in reader.forever(Position()):
        if position.epoch == wanted:
            return read
        read[position.epoch].append(batch.lines)
    raise AssertionError


# weights


@pytest.mark.parametrize("weight", [0.0, 0.1, 0.5, 1.0, 2.0, 2.5, 3.29])
@pytest.mark.parametrize("rows", [1, 7, 100])
def test_the_rows_of_many_epochs_are_as_many_as_the_weight_says(weight, rows):
    part, whole = range(5, 5 + rows), 0
    for number in range(100):
        epoch = epoch_rows([part], [weight], seed=1, epoch=number)
        assert abs(len(epoch.rows) - weight * rows) < 1
        copies = {row: count() for row in part}
        assert epoch.copies.tolist() == [next(copies[row]) for row in epoch.rows.tolist()]
        # none more often than the others by two
        assert {next(of_row) for of_row in copies.values()} <= {int(weight), int(weight) + 1}
        whole += len(epoch.rows)
    # a hundred epochs of a weight with two digits: a whole number
    assert whole == round(100 * weight * rows)


def test_each_epoch_draws_other_rows_and_each_row_equally_often():
    def drawn(epoch, seed=1):
        return epoch_rows([range(20)], [0.5], seed=seed, epoch=epoch).rows.tolist()

    assert drawn(3) == drawn(3) != drawn(4)
    assert drawn(3) != drawn(3, seed=2)
    counts = np.bincount([row for epoch in range(1000) for row in drawn(epoch)], minlength=20)
    # five standard errors of a thousand draws
    assert (abs(counts - 500) < 5 * (1000 / 4) ** 0.5).all()


def test_an_epoch_reads_each_part_by_its_weight(data, reader):
    kept = data.split("train").lines
    rows = rows_of_parts(PARTS, kept)
    # the pair of news that comes back, its copy, the long one and the one without pieces are gone
    assert [len(part) for part in rows] == [45, 45, 45]
    for lines in epochs(reader(parts=PARTS), 3):
        counts = Counter(line for batch in lines for line in batch)
        read = [[counts[int(kept[row])] for row in part] for part in rows]
        assert [sorted(set(part)) for part in read] == [[1], [2, 3], [0, 1]]
        assert sum(read[1]) in (112, 113)
        assert sum(read[2]) in (22, 23)


def test_weights_of_one_change_nothing(reader):
    assert epochs(reader(parts=reweighted(1, 1, 1)), 2) == epochs(reader(), 2)


def test_a_stream_with_weights_can_be_taken_up_anywhere(reader):
    def read(batches, position=Position()):
        stream = reader(parts=PARTS).forever(position)
        return [(batch.lines, position) for batch, position in islice(stream, batches)]

    whole = read(150)
    assert whole[-1][1].epoch > 1
    for at in (5, 77, 120):
        assert read(10, whole[at][1]) == whole[at + 1 : at + 11]


def test_processes_share_the_rows_of_an_epoch(reader):
    [alone] = epochs(reader(parts=PARTS), 1)
    shared = (epochs(reader(rank=rank, processes=2, parts=PARTS), 1)[0] for rank in range(2))
    together = [batch for pair in zip(*shared, strict=True) for batch in pair]
    assert together == alone[: len(alone) // 2 * 2]


def test_an_epoch_without_rows_is_left_out(reader):
    batches = islice(reader(parts=reweighted(0.01, 0, 0)).forever(Position()), 3)
    assert [position.epoch for _, position in batches] == [2, 4, 6]


def test_weights_of_zero_only_are_refused(reader):
    assert_fails(
        "no pair of the training text has a weight above 0",
        next,
        reader(parts=reweighted(0, 0, 0)).forever(Position()),
    )


def test_weights_do_not_prepare_the_text_again_but_tags_do(tmp_path, corpus):
    def name(*parts):
        return prepared_folder(tmp_path, recipe_of(**SECTIONS), replace(corpus, parts=parts)).name

    untagged = [replace(part, tag="") for part in PARTS]
    assert name() == name(*untagged)
    assert name(*PARTS) == name(*reweighted(3, 3, 3))
    assert len({name(), name(*PARTS), name(replace(PARTS[0], tag="<A>"), *PARTS[1:])}) == 3


# tags


@pytest.mark.parametrize("kind", ["bpe", "unigram", "word"])
@pytest.mark.parametrize("joint", [True, False])
def test_the_sources_of_a_part_begin_with_its_tag(tmp_path, corpus, kind, joint):
    vocabulary = {"size": 60, "kind": kind, "joint": joint, "byte_fallback": False}
    data = prepared(tmp_path, corpus, **SECTIONS | {"vocabulary": vocabulary})
    source, target = data.vocabularies
    assert (source is target) == joint
    tag = source.encode_ids("<BT>")
    assert len(tag) == 1
    for row in rows_of(data.split("train")):
        text, translation = (NEWS + TALKS + BACK)[row.line]
        tagged = tag * (row.line >= len(NEWS + TALKS))
        assert row.source.tolist() == tagged + source.encode_ids(text)
        assert row.target.tolist() == target.encode_ids(translation)
    assert all(tag[0] not in row.source for row in rows_of(data.split("valid")))
    # the target has the tag only if it shares the vocabulary
    assert joint == any("<BT>" in piece for piece in target.pieces(range(len(target))))


@pytest.mark.parametrize("kind", ["bpe", "word"])
def test_a_vocabulary_without_the_tag_is_refused(kind):
    settings = VocabularyRecipe(size=40, kind=kind, byte_fallback=False)
    vocabulary = train_vocabulary([pair[0] for pair in NEWS], settings, ("<A>",))
    assert vocabulary.pieces([vocabulary.tag_number("<A>")])[0].endswith("<A>")
    assert_fails("the vocabulary has no tag <BT>", vocabulary.tag_number, "<BT>")


@pytest.mark.parametrize(("size", "words"), [(40, "b a c d"), (9, "b a c d"), (8, "b a c")])
def test_a_tag_takes_the_place_of_a_word_only_where_there_is_no_room(size, words):
    settings = VocabularyRecipe(size=size, kind="word")
    vocabulary = train_vocabulary(["b b b a a c c d"], settings, ("<A>",))
    assert vocabulary.pieces(range(4, len(vocabulary))) == ["<A>", *words.split()]


def test_the_tag_belongs_to_no_word(tmp_path, corpus, data):
    annotate(data.folder, corpus, trees_for(corpus, tmp_path), parser=CHAIN)
    for row in rows_of(data.split("train", {"source": annotation_name("source", CHAIN)})):
        tree, tagged = row.trees["source"], row.line >= len(NEWS + TALKS)
        assert len(tree.word_of) == len(row.source)
        assert tree.word_of[0] == -int(tagged)
        assert set(tree.word_of[tagged:]) == set(range(len(tree.parse)))


def test_lines_without_a_part_are_refused(tmp_path, corpus):
    assert_fails(
        "139 lines, but its parts have 90",
        prepared,
        tmp_path,
        replace(corpus, parts=PARTS[:2]),
        **SECTIONS,
    )


def test_each_line_has_the_tag_of_its_part():
    rows = [("a", 2, ""), ("none", 0, "<N>"), ("b", 1, "<B>"), ("c", 1, "")]
    parts = [CorpusPart(name, lines, tag=tag) for name, lines, tag in rows]
    assert part_tags((*parts, CorpusPart("d", 1, tag="<B>"))) == ("<N>", "<B>")
    assert tags_of_lines(tuple(parts), np.arange(4)) == ["", "", "<B>", ""]
    found = rows_of_parts(parts, np.array([1, 2, 3]))
    assert found == [range(1), range(1, 1), range(1, 2), range(2, 3)]
