"""Probabilities of arcs: reduced, moved to tokens and lines, and read from the real Stanza
parser."""

from dataclasses import replace

import numpy as np
import pytest
from notation import arcs_in, by_arc
from small import stanza_sentence

from synmt.parsing import arcs as stanza_arcs
from synmt.parsing import lines as stanza_lines
from synmt.parsing import pipeline as stanza_pipeline
from synmt.parsing.parser import StanzaParser
from synmt.parsing.stanza_internals import isolated
from synmt.syntax.arcs import (
    join_arcs,
    keep_most_probable,
    token_arcs,
)
from synmt.syntax.controls import certain_arcs
from synmt.syntax.parse import Arcs

pytestmark = pytest.mark.journey

LINES = [
    "The monkey eats a banana.",
    "Stop",
    "The boy next to the girls orders a long book that nobody in the old house has read.",
    "I don't know. She does! Who cares",
    'He said: "it\'s 3.5% of $1,000" (see www.example.org).',
    "Old men and women who saw her duck near the bank while reading.",
]


def test_values_have_four_digits_and_never_sum_to_more_than_1():
    # rounded they are 0.5001 + 0.5: the last one gives way
    arcs = keep_most_probable(arcs_in("0>1 det 0.50005, 0>2 det 0.49995, 1>1 root 0.99996"))
    assert arcs == arcs_in("0>1 det 0.5001, 0>2 det 0.4999, 1>1 root 1.0")


@pytest.mark.parametrize("seed", range(20))
def test_what_is_kept_of_any_distribution_is_its_largest_part(seed):
    generator = np.random.default_rng(seed)
    words = 1 + seed
    sharpness = 10.0 ** generator.uniform(-2, 1, size=words)
    dense = np.stack([generator.dirichlet(np.full(5 * words, value)) for value in sharpness])
    word, place = np.nonzero(dense > 1e-9)
    values = dense[word, place].astype(np.float32)
    arcs = keep_most_probable(Arcs(word, place // 5, place % 5, values, tuple("abcde")))
    assert arcs.words.tolist() == sorted(arcs.words.tolist())
    for word in range(words):
        mine = arcs.words == word
        found = arcs.probabilities[mine].astype(np.float64)
        assert 0.999 <= found.sum() <= 1 + 1e-6
        assert found[:-1].sum() < 0.99901
        assert all(float(f"{value:.4g}") == pytest.approx(value, rel=1e-7) for value in found)
        expected = dense[word][arcs.parents[mine] * 5 + arcs.relations[mine]]
        np.testing.assert_allclose(found, expected, atol=6e-4)
        assert np.sort(dense[word])[::-1][: len(found)] == pytest.approx(expected, rel=1e-3)


def test_a_token_has_the_arcs_of_its_leading_word_and_mass_inside_it_is_divided_among_the_rest():
    # tokens [0], [1 2], [3]; word 2 leads its token. Of its 0.8 outside, 0.4 point at 3, 0.3 at 0,
    # 0.1 are the root
    arcs = arcs_in(
        "0>1 det 0.3, 0>2 det 0.2, 0>3 det 0.5, 1>0 obj 1, 2>1 obj 0.2, 2>3 obj 0.4, 2>0 det 0.3, "
        "2>2 root 0.1, 3>3 root 1"
    )
    moved = token_arcs(
        arcs, [range(1), range(1, 3), range(3, 4)], [0, 2, 3], [1, 2, 2], ["det", "obj", "root"]
    )
    expected = arcs_in(
        "0>1 det 0.5, 0>2 det 0.5, 1>2 obj 0.5, 1>0 det 0.375, 1>1 root 0.125, 2>2 root 1"
    )
    assert by_arc(moved) == pytest.approx(by_arc(expected))
    assert moved.words.tolist() == sorted(moved.words.tolist())


def test_a_token_with_all_its_mass_inside_has_the_arc_of_its_tree():
    arcs = arcs_in("0>1 det 1, 1>0 det 1, 2>2 root 1")
    moved = token_arcs(arcs, [range(2), range(2, 3)], [0, 2], [1, 1], ["case", "root"])
    assert moved == arcs_in("0>1 case 1, 1>1 root 1")


def test_the_root_mass_of_later_sentences_goes_to_the_first_root():
    one = arcs_in("0>1 det 1, 1>1 root 0.9, 1>0 obj 0.1")
    two = arcs_in("0>0 root 0.6, 0>0 obj 0.1, 0>1 obj 0.3, 1>0 det 1")
    expected = "0>1 det 1, 1>1 root 0.9, 1>0 obj 0.1, 2>1 parataxis 0.7, 2>3 obj 0.3, 3>2 det 1"
    assert by_arc(join_arcs([one, two], [2, 2], 1)) == pytest.approx(by_arc(arcs_in(expected)))


def test_multiword_tokens_and_several_sentences_meet_in_one_line():
    # "Geh. zum Haus": the parent of zu and dem is Haus; the second sentence is attached to "Geh"
    first = stanza_sentence([(0, "root")], [(0, 4, 1)])
    words = [(3, "case", "ADP"), (3, "det", "DET"), (0, "root", "NOUN")]
    second = stanza_sentence(words, [(5, 8, 2), (9, 13, 1)])
    arcs = """0>2 case 0.7, 0>1 case 0.2, 0>0 root 0.1, 1>2 det 1, 2>2 root 0.75, 2>0 det 0.125,
        2>1 det 0.125"""
    tables = [arcs_in("0>0 root 1"), arcs_in(arcs)]
    [(parse, _)] = stanza_lines.parses_of(["Geh. zum Haus"], [first, second], tables)
    assert (parse.words, parse.parents.tolist()) == (["Geh.", "zum", "Haus"], [0, 2, 0])
    assert (parse.relations, parse.tags) == (["root", "case", "parataxis"], ["X", "ADP", "NOUN"])
    assert parse.arcs == arcs_in(
        "0>0 root 1, 1>2 case 0.875, 1>0 parataxis 0.125, 2>0 parataxis 0.75, 2>1 det 0.25"
    )


@pytest.fixture(scope="module")
def parser():
    return StanzaParser("en", device="cpu", arcs=True)


@pytest.fixture(scope="module")
def parses(parser):
    return parser.parse(LINES)


def dense(parser, line):
    """Work out p(parent, relation | word) of each sentence of a line alone, from the scores: no
    padding, float64."""
    import torch
    from stanza.models.depparse.data import DataLoader
    from stanza.models.depparse.trainer import unpack_batch

    pipeline = parser._pipeline
    with isolated():
        document = pipeline(line)
    processor = pipeline.processors["depparse"]
    tables = []
    for sentence in document.sentences:
        alone = type(document)([sentence.to_dict()])
        options = {"vocab": processor.vocab, "evaluation": True}
        [batch] = DataLoader(alone, 10_000, processor.config, processor.pretrain, **options)
        inputs, _, word_order, lengths, word_lengths, text = unpack_batch(batch, "cpu")
        assert len(lengths) == 1
        with torch.no_grad():
            model = processor.trainer.model
            models = getattr(model, "models", [model])
            scores = [
                each.forward_scores(*inputs, word_order, lengths, word_lengths, text)[:2]
                for each in models
            ]
        arcs, labels = (sum(column)[0].double().numpy() for column in zip(*scores, strict=True))
        tables.append(softmax(arcs)[1:, :, None] * softmax(labels)[1:])
    return tables


def softmax(scores):
    powers = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)


def by_hand(tables, parser):
    """Give {(word, parent, relation): probability} of a line whose first root is known from its
    first sentence."""
    names = stanza_arcs.relation_names(parser._pipeline.processors["depparse"].vocab["deprel"])
    found, root, start = {}, None, 0
    for number, table in enumerate(tables):
        for (word, head, label), value in np.ndenumerate(table):
            key = (start + word, start + head - 1, names[label])
            if head == 0:
                key = (
                    (start + word, start + word, names[label])
                    if number == 0
                    else (start + word, root, "parataxis")
                )
            found[key] = found.get(key, 0.0) + value
        if number == 0:
            root = int(table[:, 0].sum(axis=1).argmax())
        start += len(table)
    return found


def assert_agrees(parse, expected):
    found = by_arc(parse.arcs)
    for arc, value in found.items():
        assert value == pytest.approx(expected[arc], rel=5.5e-4, abs=1e-6), arc
    for word in range(len(parse)):
        values = [value for arc, value in found.items() if arc[0] == word]
        assert sum(values) >= 0.999
        assert sum(values) <= 1 + 1e-6
        dropped = [value for arc, value in expected.items() if arc[0] == word and arc not in found]
        assert max(dropped, default=0) <= min(values) * (1 + 1e-3)
        assert sum(dropped) <= 0.0015


def test_the_arcs_of_lines_of_any_length_in_a_batch_are_those_of_each_line_alone(parser, parses):
    for line, parse in zip(LINES, parses, strict=True):
        tables = dense(parser, line)
        assert sum(map(len, tables)) == len(parse)
        assert_agrees(parse, by_hand(tables, parser))
    assert len({len(parse) for parse in parses}) > 4, "shorter sentences are padded"


def test_stanzas_own_smaller_batches_are_put_back_in_order(parser, parses, monkeypatch):
    monkeypatch.setattr(parser, "_direct", None)
    monkeypatch.setitem(parser._pipeline.processors["depparse"]._config, "batch_size", 12)
    again = parser.parse(LINES)
    for one, other in zip(parses, again, strict=True):
        assert by_arc(one.arcs) == pytest.approx(by_arc(other.arcs), abs=2e-4)


def test_trees_with_and_without_arcs_are_the_same(parses):
    assert [replace(parse, arcs=None) for parse in parses] == StanzaParser(
        "en", device="cpu"
    ).parse(LINES)


def test_flat_trees_are_certain_and_empty_lines_have_no_arcs(parser):
    flat, *empty, one = parser.parse(["x" * 2000 + " end", "", " \t ", "One."])
    assert flat.arcs == certain_arcs(flat) == arcs_in("0>0 root 1, 1>0 dep 1")
    assert [parse.arcs for parse in empty] == [None, None]
    assert one.arcs.words.max() == 1


def test_the_parts_of_a_line_that_is_split_are_attached_to_the_first_root(parser, monkeypatch):
    monkeypatch.setattr(stanza_lines, "LONGEST", 8)
    monkeypatch.setattr(stanza_pipeline, "LONGEST", 8)
    words = LINES[2].split()[:16]
    pieces = [" ".join(words[:8]), " ".join(words[8:])]
    tables = [table for piece in pieces for table in dense(parser, piece)]
    assert [len(table) for table in tables] == [8, 8]
    short, parse, _ = parser.parse(["Stop", " ".join(words), LINES[0]])
    assert_agrees(parse, by_hand(tables, parser))
    assert short == parser.parse(["Stop"])[0]
    root, second = parse.relations.index("root"), parse.relations.index("parataxis")
    assert by_arc(parse.arcs)[second, root, "parataxis"] > 0.5


def test_an_ensemble_of_graph_parsers_gives_arcs_too():
    from stanza.models.depparse.model import EnsembleGraphParser

    ensemble = StanzaParser("en", device="cpu", arcs=True)
    trainer = ensemble._pipeline.processors["depparse"].trainer
    single = trainer.model
    trainer.model = EnsembleGraphParser(single.args, single.vocab, [single, single])
    for line, parse in zip(LINES[:3], ensemble.parse(LINES[:3]), strict=True):
        assert_agrees(parse, by_hand(dense(ensemble, line), ensemble))


def test_the_arcs_of_a_model_that_reads_backwards_are_reversed():
    # the words 2 1 0 as the model saw them: its word 0 is our word 2
    batch = [None] * 11 + [[0], None, [4]]
    arcs = np.full((1, 4, 4), -50.0, dtype=np.float32)
    arcs[0, [1, 2, 3], [2, 0, 1]] = 0.0
    labels = np.log(np.full((1, 4, 4, 2), 0.5, dtype=np.float32))
    [turned] = stanza_arcs.batch_arcs(batch, (arcs, None, labels), ("a", "b"), backwards=True)
    assert {arc[:2] for arc in by_arc(turned)} == {(2, 1), (1, 1), (0, 2)}


def test_stanza_is_left_as_it_was(parser):
    from stanza.models.depparse.data import DataLoader
    from stanza.pipeline import depparse_processor

    trainer = parser._pipeline.processors["depparse"].trainer
    parser.parse(LINES[:1])
    assert depparse_processor.DataLoader is DataLoader
    assert "predict" not in vars(trainer)
    assert not trainer.model._forward_hooks


def test_arcs_are_part_of_the_identity_only_of_a_parser_with_arcs(parser):
    plain = StanzaParser("en", device="cpu")
    assert parser.identity == {**plain.identity, "arcs": True}
    assert parser.fingerprint != plain.fingerprint
    for made, again in (
        (parser, StanzaParser.from_identity(parser.identity)),
        (plain, StanzaParser.from_identity(parser.identity, arcs=False)),
        (parser, StanzaParser.from_identity(plain.identity, arcs=True)),
    ):
        assert made.fingerprint == again.fingerprint
