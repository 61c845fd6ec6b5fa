"""Stanza's models called directly: the trees, tags and arcs of Stanza's own documents, in less
time."""

from dataclasses import replace
from operator import attrgetter

import numpy as np
import pytest

pytest.importorskip("synmt.fast")

from synmt.fast.parser.direct import DirectParser
from synmt.files.reading import read_lines
from synmt.parsing import lines as stanza_lines
from synmt.parsing import pipeline as stanza_pipeline
from synmt.parsing.parser import StanzaParser

pytestmark = pytest.mark.journey

LINES = [
    "The monkey eats a banana.",
    "The boy next to the girls orders a long book that nobody in the old house has read.",
    "I don't know. She does! What???",
    "Stop",
    'He said: "it\'s 3.5% of $1,000" (see www.example.org or me@b.com).',
    "  Leading,  double   and trailing blanks.  ",
    "New  York and a\u3000b \x00 c\u2028d\x85e\tf",
    "שלום עולם, naïve 🙂 日本語。",
    "_ - <PAD> <UNK>",
    "wordiness " * 91,
]
"""The last one is too long to be parsed directly."""


@pytest.fixture(scope="module")
def parsers():
    """One parser of each kind: direct, and by Stanza's documents."""
    made = {name: StanzaParser("en", device="cpu", arcs=True) for name in ("direct", "plain")}
    made["plain"]._direct = None
    assert made["direct"]._direct is not None
    return made


def both(parsers, lines, **changes):
    """Parse lines by both ways, which agree in everything but the last digits of probabilities."""
    for name, value in changes.items():
        for parser in parsers.values():
            setattr(parser, name, value)
    direct, plain = (parser.parse(lines) for parser in parsers.values())
    assert [replace(parse, arcs=None) for parse in direct] == [
        replace(parse, arcs=None) for parse in plain
    ]
    return direct, plain


def dense(parse):
    """Write arcs as a table (W, W, L)."""
    table = np.zeros((len(parse), len(parse), len(parse.arcs.names)))
    table[parse.arcs.words, parse.arcs.parents, parse.arcs.relations] = parse.arcs.probabilities
    return table


@pytest.mark.parametrize("pretokenized", [False, True])
def test_trees_and_arcs_are_those_of_stanzas_documents(parsers, pretokenized):
    direct, plain = both(parsers, LINES, pretokenized=pretokenized)
    both(parsers, [], pretokenized=False)
    for one, other in zip(direct, plain, strict=True):
        np.testing.assert_allclose(dense(one), dense(other), rtol=0, atol=1e-3)


def test_trees_of_real_text_are_those_of_stanzas_documents(parsers, data_folder):
    lines = [
        line.removeprefix("# text = ")
        for line in read_lines(data_folder / "ud" / "en_ewt-ud-dev.conllu.gz", allowed=["CoNLL-U"])
        if line.startswith("# text = ")
    ]
    both(parsers, lines[:150], arcs=False)
    both(parsers, [], arcs=True)


def test_words_with_two_subjects_are_repaired_as_stanza_does(parsers, monkeypatch):
    from stanza.models.depparse import head_constraints

    for parser in parsers.values():
        monkeypatch.setitem(
            parser._pipeline.processors["depparse"]._config, "resolve_head_constraints", True
        )
    monkeypatch.setattr(parsers["direct"]._direct, "repairs", True)
    # a group that every sentence violates somewhere
    monkeypatch.setattr(
        head_constraints,
        "DEPREL_TO_GROUP",
        {"det": "det", "case": "det", "amod": "det", "obj": "obj"},
    )
    repaired, _ = both(parsers, LINES[:6])
    monkeypatch.setattr(parsers["direct"]._direct, "repairs", False)
    assert repaired != parsers["direct"].parse(LINES[:6])


def test_a_split_line_is_joined_as_by_stanzas_documents(parsers, monkeypatch):
    for module in (stanza_lines, stanza_pipeline):
        monkeypatch.setattr(module, "LONGEST", 8)
    direct, _ = both(parsers, LINES[:5])
    assert direct[1].relations.count("parataxis") > 0


OTHER_MODELS = """
tokenize _config feat_funcs
tokenize _config no_ssplit
pos trainer.model.args charlm
pos trainer.model.args pretrain
depparse trainer.model.args use_xpos
depparse trainer.model.args use_arc_embedding
"""


@pytest.mark.parametrize("line", OTHER_MODELS.strip().splitlines())
def test_a_model_that_reads_more_than_words_takes_the_way_of_documents(parsers, monkeypatch, line):
    pipeline = parsers["direct"]._pipeline
    assert DirectParser.supports(pipeline)
    processor, options, name = line.split()
    options = attrgetter(options)(pipeline.processors[processor])
    value = {"feat_funcs": ["space_before", "phone_id"], "no_ssplit": False}.get(name, True)
    monkeypatch.setitem(options, name, value)
    assert not DirectParser.supports(pipeline)


def test_an_ensemble_and_a_lemmatizer_take_the_way_of_documents(parsers, monkeypatch):
    from stanza.models.depparse.model import EnsembleGraphParser

    pipeline = parsers["direct"]._pipeline
    trainer = pipeline.processors["depparse"].trainer
    with monkeypatch.context() as patch:
        patch.setattr(
            trainer, "model", EnsembleGraphParser(trainer.args, trainer.vocab, [trainer.model])
        )
        assert not DirectParser.supports(pipeline)
    monkeypatch.setattr(pipeline.processors["lemma"], "_use_identity", False)
    assert not DirectParser.supports(pipeline)


def test_the_arcs_of_a_text_do_not_depend_on_what_was_parsed_before(parsers):
    parser = parsers["direct"]
    first = parser.parse(LINES[:5])
    parser.parse(["A monkey next to the girls eats everything in the long house."])
    assert parser.parse(LINES[:5]) == first


def test_vectors_of_words_are_dropped_when_there_are_too_many(parsers, monkeypatch):
    monkeypatch.setattr("synmt.fast.parser.words._MOST_WORDS", 20)
    vectors = parsers["direct"]._direct.tagger.vectors
    # 18 distinct words, then 9 others and a full stop, then 6
    both(parsers, LINES[:3], batch_words=1)
    assert 6 <= len(vectors.table) <= 20
