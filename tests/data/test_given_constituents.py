"""Brackets next to the text: prepared, read in training and in translation, and refused where they
do not fit."""

import shutil

import numpy as np
import pytest
from tiny import MODEL, fail, succeed, write_corpus, write_lines, write_recipe

from synmt.data.corpus import PreparedCorpus
from synmt.run_folder import Run
from synmt.syntax.conllu import read_parses

pytestmark = pytest.mark.journey

DISTANCE = {
    "variants": [{"name": "distance_transformer", "layers": [1], "heads": 2, "temperature": 1}]
}
PASCAL = {"name": "pascal", "layers": [1], "heads": 2}
BOTH = {"variants": [*DISTANCE["variants"], PASCAL]}
GIVEN = {"constituents": "given", "workers": 1, "device": "cpu"}
BPE = {"kind": "bpe", "size": 320, "dropout": 0.1}


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


@pytest.mark.parametrize(
    "vocabulary", [{"kind": "word", "size": 200}, BPE], ids=["words", "dropped merges"]
)
def test_a_run_reads_brackets_in_training_and_for_its_test_set(bracketed, monkeypatch, vocabulary):
    monkeypatch.setattr("synmt.parsing.parser.StanzaParser.parse", None)
    write_recipe(
        bracketed / "d.yaml",
        bracketed / "corpus",
        syntax=DISTANCE,
        parser=GIVEN,
        vocabulary=vocabulary,
    )
    succeed("train", "d.yaml", cwd=bracketed)
    run = Run(bracketed / "runs/d")
    text, trees = (bracketed / f"corpus/test.en{suffix}" for suffix in ("", ".brackets"))
    again = succeed("translate", "--parses", trees, text=text.read_bytes(), cwd=bracketed)
    assert again.stdout == (run.folder / "tests/test/hypothesis.txt").read_bytes()
    message = " ".join(fail(2, "translate", text=text.read_bytes(), cwd=bracketed).split())
    assert "its run does not say which parser makes them" in message


def test_prepared_constituents_are_those_of_the_brackets(bracketed):
    write_recipe(bracketed / "d.yaml", bracketed / "corpus", syntax=DISTANCE, parser=GIVEN)
    succeed("prepare", "d.yaml", cwd=bracketed)
    (folder,) = (bracketed / "data/prepared").iterdir()
    (name,) = PreparedCorpus.open(folder).annotations()
    lines = (bracketed / "corpus/train.en").read_text(encoding="utf-8").splitlines()
    trees = list(read_parses(bracketed / "corpus/train.en.brackets", lines, brackets=True))
    for row in PreparedCorpus.open(folder).split("train", {"source": name}).rows(range(32)):
        # every word is a piece, so no word is merged
        np.testing.assert_array_equal(
            row.trees["source"].parse.constituents, trees[row.line].constituents
        )


def test_a_model_that_reads_dependencies_refuses_brackets_at_translation(bracketed, place):
    trees = bracketed / "corpus/train.en.brackets"
    write_recipe(
        place / "p.yaml", place / "corpus", model=MODEL, parser={"workers": 1, "device": "cpu"}
    )
    succeed("train", "p.yaml", cwd=place)
    text = (place / "corpus/train.en").read_bytes()
    message = fail(1, "translate", "--parses", trees, text=text, cwd=place)
    assert "comes as brackets, and the model reads dependencies" in " ".join(message.split())


CHANGED = "change dependencies, and `constituents: given` reads none"


@pytest.mark.parametrize(
    ("lost", "code", "syntax", "parser", "message"),
    [
        ("valid.en.brackets", 2, DISTANCE, {}, "valid.en: parser.constituents is given, but this"),
        ("all", 1, DISTANCE, {}, "the tree of line 1 has no constituents that fit its words"),
        ("", 1, BOTH, {}, "what pascal reads comes as brackets, and the model reads dependencies"),
        ("", 2, {"variants": [PASCAL]}, {}, "nothing in this recipe reads const"),
        ("", 2, DISTANCE, {"control": "random"}, CHANGED),
        ("", 2, DISTANCE, {"rewire": 0.5}, CHANGED),
    ],
)
def test_constituents_that_are_missing_or_change_nothing_are_refused(
    bracketed, lost, code, syntax, parser, message
):
    if lost == "all":
        shutil.rmtree(bracketed / "corpus")
        write_corpus(bracketed / "corpus")
    elif lost:
        (bracketed / "corpus" / lost).unlink()
    parser = {**GIVEN, **parser}
    write_recipe(bracketed / "d.yaml", bracketed / "corpus", syntax=syntax, parser=parser)
    assert message in " ".join(fail(code, "prepare", "d.yaml", cwd=bracketed).split())
