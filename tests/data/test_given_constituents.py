"""Brackets next to the text: prepared, read in training and in translation, and refused where they
do not fit."""

import shutil

import numpy as np
import pytest
import yaml
from tiny import fail, succeed, write_corpus, write_lines, write_recipe

from synmt.data.corpus import PreparedCorpus
from synmt.syntax.conllu import read_parses

pytestmark = pytest.mark.journey

DISTANCE = {
    "variants": [{"name": "distance_transformer", "layers": [1], "heads": 2, "temperature": 1}]
}
PASCAL = {"name": "pascal", "layers": [1], "heads": 2}
GIVEN = {"constituents": "given", "workers": 1, "device": "cpu"}
BPE = {"kind": "bpe", "size": 320, "dropout": 0.1}


def write(place, **sections):
    """Write a recipe that reads brackets next to its text."""
    sections = {"syntax": DISTANCE, "parser": GIVEN, **sections}
    write_recipe(place / "d.yaml", place / "corpus", **sections)


def projective(line, seed):
    """Put random brackets around a line, each around neighbours."""
    random, nodes = np.random.default_rng(seed), line.split()
    while len(nodes) > 1:
        at = int(random.integers(len(nodes) - 1))
        nodes[at : at + 2] = [f"(X {nodes[at]} {nodes[at + 1]})"]
    return nodes[0] if nodes and nodes[0].startswith("(") else f"(X {line})"


@pytest.fixture
def bracketed(place):
    """Write brackets next to the three texts of the tiny corpus, and remove the trees."""
    for split in ("train", "valid", "test"):
        lines = (place / f"corpus/{split}.en").read_text(encoding="utf-8").splitlines()
        brackets = [projective(line, seed) for seed, line in enumerate(lines)]
        write_lines(place / f"corpus/{split}.en.brackets", brackets)
        (place / f"corpus/{split}.en.conllu").unlink()
    return place


@pytest.mark.parametrize("vocabulary", [{"kind": "word", "size": 200}, BPE], ids=str)
def test_a_run_reads_brackets_in_training_and_for_its_test_set(bracketed, monkeypatch, vocabulary):
    monkeypatch.setattr("synmt.parsing.parser.StanzaParser.parse", None)
    write(bracketed, vocabulary=vocabulary)
    succeed("train", "d.yaml", cwd=bracketed)
    text = (bracketed / "corpus/test.en").read_bytes()
    trees = ["--parses", "corpus/test.en.brackets"]
    again = succeed("translate", *trees, text=text, cwd=bracketed)
    assert again.stdout == (bracketed / "runs/d/tests/test/hypothesis.txt").read_bytes()
    message = " ".join(fail(2, "translate", text=text, cwd=bracketed).split())
    assert "its run does not say which parser makes them" in message


def test_prepared_constituents_are_those_of_the_brackets(bracketed):
    write(bracketed)
    succeed("prepare", "d.yaml", cwd=bracketed)
    data = PreparedCorpus.open(*(bracketed / "data/prepared").iterdir())
    (name,) = data.annotations()
    text = bracketed / "corpus/train.en"
    lines = text.read_text(encoding="utf-8").splitlines()
    trees = list(read_parses(text.with_name("train.en.brackets"), lines, brackets=True))
    for row in data.split("train", {"source": name}).rows(range(32)):
        # every word is a piece, so no word is merged
        found = row.trees["source"].parse.constituents
        np.testing.assert_array_equal(found, trees[row.line].constituents)


REFUSED = """
- {lost: valid.en.brackets, said: "valid.en: parser.constituents is given, but this"}
- {lost: all, code: 1, said: the tree of line 1 has no constituents that fit its words}
- {parser: {control: random}, said: &changed "change dependencies, and `constituents: given` reads"}
- {parser: {rewire: 0.5}, said: *changed}
"""


@pytest.mark.parametrize("case", yaml.safe_load(REFUSED), ids=str)
def test_constituents_that_are_missing_or_change_nothing_are_refused(bracketed, case):
    lost, variants = case.get("lost"), [*DISTANCE["variants"], PASCAL]
    if lost == "all":
        shutil.rmtree(bracketed / "corpus")
        write_corpus(bracketed / "corpus")
    elif lost:
        (bracketed / "corpus" / lost).unlink()
    syntax = {"variants": [variants[number] for number in case.get("reads", [0])]}
    write(bracketed, syntax=syntax, parser={**GIVEN, **case.get("parser", {})})
    said = fail(case.get("code", 2), "prepare", "d.yaml", cwd=bracketed)
    assert case["said"] in " ".join(said.split())
