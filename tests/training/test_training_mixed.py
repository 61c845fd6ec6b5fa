"""Training with BPE dropout, weights and tags: after an interruption, and what its batches are made
of."""

import re

import pytest
import torch
from safetensors.torch import load_file
from tiny import TRAINING, succeed, write_corpus, write_lines, write_recipe

from synmt.data.corpus import PreparedCorpus
from synmt.data.stream import Position
from synmt.recipe.load import load_recipe
from synmt.recipe.yaml_text import parse_yaml_value
from synmt.run_folder import Run
from synmt.training import pipeline
from synmt.training.distributed import Processes
from synmt.training.records import StepRecord

pytestmark = pytest.mark.journey

CORPUS = """
{train: [{first*, weight: 1.5}, {back*, weight: 2, tag: <BT>}], valid: {valid*},
 test: {test: {test*}}}
"""
BPE = {"size": 340, "dropout": 0.2}
STEPS = {**TRAINING, "max_steps": 14, "validation_beam_size": 0, "validate_every": 7}


@pytest.fixture
def place(tmp_path, monkeypatch):
    """Write a recipe of a system that reads trees; its training text is a corpus and
    back-translated text."""
    monkeypatch.setenv("SYNMT_CACHE", str(tmp_path / "cache"))
    text = write_corpus(tmp_path / "text")
    for language in ("en", "de"):
        lines = (text / f"train.{language}").read_text(encoding="utf-8").splitlines()
        write_lines(text / f"first.{language}", lines[:20])
        write_lines(text / f"back.{language}", lines[20:])
    corpus = re.sub(r"(\w+)\*", rf"source: {text}/\1.en, target: {text}/\1.de", CORPUS)
    corpus, parser = parse_yaml_value(corpus), {"workers": 1, "device": "cpu"}
    write_recipe(
        tmp_path / "mixed.yaml", text, corpus=corpus, parser=parser, vocabulary=BPE, training=STEPS
    )
    return tmp_path


def train(place, *overrides):
    yield from pipeline.train(
        place / "mixed.yaml", overrides, runs=place / "runs", data=place / "data"
    )


def test_an_interrupted_run_ends_bit_for_bit_like_an_uninterrupted_one(place):
    list(train(place, "name=whole"))
    records = train(place, "name=parted", "corpus.test={}")
    assert any(isinstance(record, StepRecord) and record.step == 9 for record in records)
    records.close()
    list(train(place, "name=parted", "corpus.test={}"))
    weights = [load_file(Run(place / "runs" / name).weights) for name in ("whole", "parted")]
    torch.testing.assert_close(*weights, rtol=0, atol=0)
    # new text has no tag and is segmented without dropout
    run, text = place / "runs" / "whole", (place / "text" / "test.en").read_text(encoding="utf-8")
    output = succeed("translate", "--run", run, text=text).stdout
    assert output == (run / "tests" / "test" / "hypothesis.txt").read_bytes()


def prepared(place, *overrides):
    [record] = pipeline.prepare(place / "mixed.yaml", overrides, data=place / "data")
    return record


def test_recipes_that_differ_in_dropout_and_weights_share_a_prepared_corpus(place):
    changes = ("vocabulary.dropout=0", "vocabulary.dropout=0.2", "corpus.train.1.weight=0.5")
    records = [prepared(place, change) for change in changes]
    assert records[2].corpus.parts[1].weight == 0.5
    [folder] = {record.folder for record in records}
    assert len(PreparedCorpus.open(folder).annotations()) == 2


def test_the_batches_of_a_recipe_are_segmented_weighted_and_tagged(place):
    data, recipe = prepared(place), load_recipe(place / "mixed.yaml")
    trainer = pipeline.make_trainer(Run(place / "runs" / "mixed"), recipe, data, Processes())
    vocabulary = PreparedCorpus.open(data.folder).vocabularies[0]
    tag, lines, cuts = vocabulary.tag_number("<BT>"), [], {}
    for batch, position in trainer.train_reader.forever(Position()):
        if position.epoch == 1:
            break
        lines += batch.lines
        for line, ids, signal in zip(
            batch.lines, batch.source.ids, batch.source_signals["parent_middle"], strict=True
        ):
            assert (ids[0] == tag) == (line >= 20)
            # the tag is a special, which points to itself
            assert line < 20 or signal[0] == 0
            cuts.setdefault(line, set()).add(tuple(ids[ids > 0].tolist()))
    assert len(lines) == 20 + 10 + 24
    assert all(lines.count(line) == 2 for line in range(20, 32))
    # both copies are segmented by themselves
    assert sum(len(cuts[line]) == 2 for line in range(20, 32)) > 8
    # validation is neither segmented anew nor tagged
    texts = (place / "text" / "valid.en").read_text(encoding="utf-8").splitlines()
    for batch in trainer.valid_reader.once():
        for line, ids in zip(batch.lines, batch.source.ids, strict=True):
            assert ids[ids > 3].tolist() == vocabulary.encode_ids(texts[line])
