"""BPE dropout: merges against SentencePiece and a slow loop, random numbers, trees on every
segmentation."""

import itertools
from dataclasses import replace
from functools import cache, partial
from types import SimpleNamespace

import numpy as np
import pytest
import yaml
from preparing import LINES, ODD_TEXTS, corpus_of, rows_of, write_trees
from small import random_tree, small_recipe
from splitmix import MASK, scramble

from synmt.arrays import SIDES
from synmt.controlled.corpus import generate
from synmt.corpora.corpus import CorpusPart
from synmt.data.annotate import annotate, annotation_name
from synmt.data.corpus import PreparedCorpus
from synmt.data.dropout import BpeDropout, Merges
from synmt.data.epoch import EpochRows
from synmt.data.prepare import prepare
from synmt.data.vocabulary import SentencePieces, word_of
from synmt.data.vocabulary_training import train_vocabulary
from synmt.recipe.data import VocabularyRecipe
from synmt.syntax.arcs import sum_duplicates
from synmt.syntax.conllu import read_parses
from synmt.syntax.merging import merge_unowned
from synmt.syntax.parse import WORD

pytestmark = pytest.mark.journey


KINDS = """
bytes: {size: 700}
no bytes: {byte_fallback: false, size: 400, character_coverage: 0.99}
identity: {normalization: identity, size: 600}
"""


@pytest.fixture(scope="module")
def text():
    """Collect lines of two languages, with what is odd."""
    pairs = generate(train=1500, valid=0, test=0)["train"]
    lines = [line for pair in pairs for line in (pair.source, pair.target)]
    return [*lines, *LINES, *ODD_TEXTS, "<TR> a monkey <TR>", "a<BT>b <BT>", "aaaaaaa aaaa"]


@pytest.fixture(scope="module", params=yaml.safe_load(KINDS).values(), ids=str)
def vocabulary(request, text):
    learned = train_vocabulary(
        text[:2000] + LINES, VocabularyRecipe(**request.param), ("<TR>", "<BT>")
    )
    assert isinstance(learned, SentencePieces)
    return learned


@pytest.fixture(scope="module")
def merges(vocabulary):
    return Merges(vocabulary)


def keys(count, first=0):
    return np.random.default_rng(first).integers(0, 2**63, count).astype(np.uint64)


def cut(merges, vocabulary, lines, dropout, seeds=None):
    """Segment lines with dropout; gives the pieces as strings."""
    ids = [np.array(row, dtype=np.int32) for row in vocabulary.encode_batch(lines)]
    seeds = keys(len(lines)) if seeds is None else seeds
    segmented = merges.segment(merges.symbols(ids), seeds, dropout)
    return [vocabulary.pieces(pieces) for pieces, _ in segmented.sentences()]


def slow_number(key, place, turn):
    stream = scramble((key + place) & MASK)
    return (scramble((stream + turn * 0x9E3779B97F4A7C15) & MASK) >> 11) / 2**53


def slow_words(symbols):
    """Cut symbols before each blank, with the place of each."""
    words = []
    for place, symbol in enumerate(symbols):
        if not words or symbol.startswith("▁"):
            words.append([])
        words[-1].append((place, symbol))
    return words


@cache
def scores_of(vocabulary):
    pieces = vocabulary.merged_pieces()
    return dict(zip(vocabulary.pieces(pieces), map(vocabulary.score, pieces), strict=True))


def slow_cut(vocabulary, symbols, dropout, number):
    """Segment symbols by algorithm 1 of the paper; `number(place, turn)` draws one."""
    scores, result = scores_of(vocabulary), []
    for word in slow_words(symbols):
        for turn in itertools.count():
            possible = [
                (-scores[left + right], index)
                for index, ((place, left), (_, right)) in enumerate(itertools.pairwise(word))
                if {left, right, left + right} <= scores.keys() and number(place, turn) >= dropout
            ]
            if not possible:
                break
            index = min(possible)[1]
            word[index : index + 2] = [(word[index][0], word[index][1] + word[index + 1][1])]
        result += [symbol for _, symbol in word]
    return result


# merges


def test_without_dropout_the_pieces_are_those_of_sentencepiece(vocabulary, merges, text):
    assert cut(merges, vocabulary, text, 0.0) == [
        vocabulary.pieces(ids) for ids in vocabulary.encode_batch(text)
    ]


@pytest.mark.parametrize("dropout", [0.1, 0.5, 1.0])
def test_merges_are_dropped_as_in_the_algorithm_of_the_paper(vocabulary, merges, text, dropout):
    lines, seeds, expected = text[-60:], keys(60), []
    for line, seed in zip(lines, seeds.tolist(), strict=True):
        symbols = vocabulary.pieces(vocabulary.encode_symbols(line).ids)
        expected.append(slow_cut(vocabulary, symbols, dropout, partial(slow_number, seed)))
    assert cut(merges, vocabulary, lines, dropout, seeds) == expected
    assert expected != cut(merges, vocabulary, lines, 0.0)


def test_a_sentence_is_segmented_alike_alone_and_beside_others(vocabulary, merges, text):
    segment, lines, seeds = partial(cut, merges, vocabulary), text[-50:], keys(50)
    one_by_one = zip(lines, np.split(seeds, 50), strict=True)
    alone = [pieces for line, seed in one_by_one for pieces in segment([line], 0.3, seed)]
    assert segment(lines, 0.3, seeds) == alone
    assert segment([], 0.1) == []
    assert segment(["", "a", ""], 0.0) == [[], ["▁a"], []]


# trees


def random_words(line, draw):
    """Cut a line into words at random places: many share a piece, some have no piece."""
    spans = []
    for match in WORD.finditer(line):
        first, end = match.span()
        cuts = [place for place in range(first + 1, end) if draw.random() < 0.3]
        spans += itertools.pairwise([first, *cuts, end])
    return np.array(spans, dtype=np.int64).reshape(-1, 2)


def odd_tree(line, draw):
    """Draw a tree and arcs over random words."""
    spans = random_words(line, draw)
    tree = random_tree(len(spans), draw)
    assert tree.arcs is not None
    words = [line[start:end] for start, end in spans.tolist()]
    arcs = sum_duplicates(tree.arcs)
    return replace(tree, words=words, spans=spans, tags=["X"] * len(words), arcs=arcs)


@pytest.fixture(scope="module")
def odd_corpus(tmp_path_factory, text):
    """Prepare odd lines with odd trees on both sides, for dropout; gives corpus, lines, trees and
    annotations."""
    folder, draw = tmp_path_factory.mktemp("odd"), np.random.default_rng(5)
    sources = [line for line in text[-120:] if line.strip() and "\x85" not in line]
    lines = {"source": sources, "target": LINES[: len(sources)]}
    pairs = list(zip(*lines.values(), strict=True))
    parts = CorpusPart("a", 50), CorpusPart("b", len(sources) - 50, tag="<BT>")
    corpus = replace(corpus_of(folder, pairs, pairs), parts=parts)
    prepare(small_recipe(vocabulary={"size": 500, "dropout": 0.3}), corpus, folder / "prepared")
    names, trees = {}, {}
    for side, rows in lines.items():
        files = {split: folder / f"{split}.{side}.conllu" for split in ("train", "valid")}
        for path in files.values():
            write_trees(path, rows, [odd_tree(row, draw) for row in rows])
        trees[side] = list(read_parses(files["train"], rows))
        for whole in (False, True):
            made = {"made": "by hand", "whole": whole}
            how = {"parser": made, "side": side, "arcs": True, "whole": whole}
            annotate(folder / "prepared", corpus, files, **how)
            names[side, whole] = annotation_name(side, made)
    data = PreparedCorpus.open(folder / "prepared")
    return SimpleNamespace(data=data, corpus=corpus, lines=lines, trees=trees, names=names)


def split_of(odd, name="train", whole=True):
    return odd.data.split(name, {side: odd.names[side, whole] for side in SIDES})


def dropped(odd, probability, epoch=0, seed=1, copies=0, rows=None):
    """Read rows of train with dropout."""
    split = split_of(odd)
    rows = np.arange(len(split)) if rows is None else np.array(rows)
    dropout = BpeDropout(odd.data.vocabularies, probability, seed)
    return dropout.apply(split.rows(rows), EpochRows(rows, np.full_like(rows, copies)), epoch)


def fresh_alignment(vocabulary, line, tagged, pieces, tree):
    """Align drawn pieces with a tree by the characters that they cover, as for text that is
    segmented now."""
    symbols = vocabulary.encode_symbols(line)
    spelled, spans, place = vocabulary.pieces(symbols.ids), [], 0
    for piece in pieces[tagged:]:
        first, joined = place, ""
        while joined != piece:
            joined += spelled[place]
            place += 1
        spans += [symbols.spans[first, 0], symbols.spans[place - 1, 1]]
    assert place == len(spelled)
    spans = np.array(spans, dtype=np.int64).reshape(-1, 2)
    merged, owners = merge_unowned(tree, spans, word_of(spans, tree.spans))
    return merged, [-1] * tagged + owners.tolist()


def assert_close(one, other):
    """Compare arcs; probabilities are stored in 65,535ths, and those of merged words are sums."""
    np.testing.assert_allclose(one.probabilities, other.probabilities, rtol=0, atol=5 / 65_535)
    assert replace(one, probabilities=other.probabilities) == other


@pytest.mark.parametrize("probability", [0.0, 0.1, 0.5, 1.0])
def test_trees_fit_every_segmentation_like_text_that_is_segmented_now(odd_corpus, probability):
    merged_words = 0
    usual = {row.line: row for row in rows_of(split_of(odd_corpus))}
    for example in dropped(odd_corpus, probability):
        for side, vocabulary in zip(SIDES, odd_corpus.data.vocabularies, strict=True):
            line = odd_corpus.lines[side][example.line]
            whole = odd_corpus.trees[side][example.line]
            tagged = side == "source" and example.line >= 50
            pieces = vocabulary.pieces(getattr(example, side))
            assert not tagged or pieces[0] == "▁<BT>"
            expected, owners = fresh_alignment(vocabulary, line, tagged, pieces, whole)
            tree = example.trees[side]
            # a random control draws the same tree in all epochs
            assert tree.key == getattr(usual[example.line], side).tobytes()
            assert tree.word_of.tolist() == owners
            assert tree.parse.parents.tolist() == expected.parents.tolist()
            assert (tree.parse.relations, tree.parse.tags) == (expected.relations, expected.tags)
            assert_close(tree.parse.arcs, expected.arcs)
            merged_words += len(whole) - len(expected)
    # otherwise the test would not see a difference between merging now and then
    assert merged_words > (0 if probability == 1 else 100)


def test_validation_text_has_its_usual_trees(odd_corpus):
    rows = (rows_of(split_of(odd_corpus, "valid", whole)) for whole in (False, True))
    for row, same in zip(*rows, strict=True):
        assert np.array_equal(row.trees["source"].word_of, same.trees["source"].word_of)


def test_a_draw_depends_on_seed_epoch_row_and_copy_only(odd_corpus):
    def pieces(**how):
        return [example.source.tolist() for example in dropped(odd_corpus, 0.3, **how)]

    first = pieces()
    assert pieces(rows=[7, 60, 3]) == [first[row] for row in (7, 60, 3)]
    assert pieces() == first
    for other in ({"seed": 2}, {"epoch": 1}, {"copies": 1}):
        same = map(list.__eq__, pieces(**other), first)
        assert sum(same) < len(first) / 2
