"""Brackets next to the text: prepared, read in training and in translation, and refused where they
do not fit."""

import json

import numpy as np
import pytest
from tiny import MODEL, synmt, write_lines, write_recipe

from synmt.data.corpus import PreparedCorpus
from synmt.errors import UsageError
from synmt.recipe.load import load_recipe
from synmt.run_folder import Run
from synmt.syntax.conllu import read_parses
from synmt.training.tree_sources.requirements import tree_requirements

pytestmark = pytest.mark.journey

DISTANCE = {
    "variants": [{"name": "distance_transformer", "layers": [1], "heads": 2, "temperature": 1}]
}
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
    done = synmt("train", "d.yaml", cwd=bracketed)
    assert done.returncode == 0, done.stderr.decode()
    run = Run(bracketed / "runs/d")
    text, trees = (bracketed / f"corpus/test.en{suffix}" for suffix in ("", ".brackets"))
    again = synmt("translate", "--parses", trees, text=text.read_bytes(), cwd=bracketed)
    assert again.stdout == (run.folder / "tests/test/hypothesis.txt").read_bytes()
    without = synmt("translate", text=text.read_bytes(), cwd=bracketed)
    assert "its run does not say which parser makes them" in " ".join(
        without.stderr.decode().split()
    )


def test_prepared_constituents_are_those_of_the_brackets(bracketed):
    write_recipe(bracketed / "d.yaml", bracketed / "corpus", syntax=DISTANCE, parser=GIVEN)
    assert synmt("prepare", "d.yaml", cwd=bracketed).returncode == 0
    (folder,) = (bracketed / "data/prepared").iterdir()
    (name,) = PreparedCorpus.open(folder).annotations()
    lines = (bracketed / "corpus/train.en").read_text(encoding="utf-8").splitlines()
    trees = list(read_parses(bracketed / "corpus/train.en.brackets", lines, brackets=True))
    for row in PreparedCorpus.open(folder).split("train", {"source": name}).rows(range(32)):
        # every word is a piece, so no word is merged
        np.testing.assert_array_equal(
            row.trees["source"].parse.constituents, trees[row.line].constituents
        )


def test_constituents_in_conllu_are_read_beside_its_dependencies(place):
    for split in ("train", "valid", "test"):
        path = place / f"corpus/{split}.en.conllu"
        text, blocks = path.read_text(encoding="utf-8"), []
        for seed, block in enumerate(text.strip("\n").split("\n\n")):
            words = " ".join(
                row.split("\t")[1] for row in block.split("\n") if not row.startswith("#")
            )
            blocks.append(f"# constituency = {projective(words, seed)}\n{block}\n\n")
        path.write_text("".join(blocks), encoding="utf-8")
    both = {"variants": [*DISTANCE["variants"], {"name": "pascal", "layers": [1], "heads": 2}]}
    losses = []
    for name, parser in {"given": GIVEN, "built": {"control": "gold", "device": "cpu"}}.items():
        write_recipe(place / f"{name}.yaml", place / "corpus", syntax=both, parser=parser)
        done = synmt("train", f"{name}.yaml", cwd=place)
        assert done.returncode == 0, done.stderr.decode()
        log = (Run(place / f"runs/{name}").folder / "log.jsonl").read_text().splitlines()
        losses.append(
            [record["loss"] for record in map(json.loads, log) if record["kind"] == "step"]
        )
    assert losses[0] != losses[1]


def refusal(place, **sections):
    """Prepare with a recipe that is refused: the message, in one line."""
    write_recipe(place / "d.yaml", place / "corpus", **sections)
    done = synmt("prepare", "d.yaml", cwd=place)
    assert done.returncode
    return " ".join(done.stderr.decode().split())


def test_a_text_without_brackets_is_named(bracketed):
    (bracketed / "corpus/valid.en.brackets").unlink()
    message = refusal(bracketed, syntax=DISTANCE, parser=GIVEN)
    assert "valid.en: parser.constituents is given, but this text comes without brackets" in message


def test_a_tree_without_constituents_is_named(place):
    write_recipe(place / "d.yaml", place / "corpus", syntax=DISTANCE, parser=GIVEN)
    done = synmt("prepare", "d.yaml", cwd=place)
    message = " ".join(done.stderr.decode().split())
    assert done.returncode
    assert "the tree of line 1 has no constituents that fit its words" in message


def test_brackets_alone_are_refused_where_a_variant_reads_dependencies(bracketed):
    both = {"variants": [*DISTANCE["variants"], {"name": "pascal", "layers": [1], "heads": 2}]}
    message = refusal(bracketed, syntax=both, parser=GIVEN)
    assert "what pascal reads comes as brackets, and the model reads dependencies" in message


def test_a_model_that_reads_dependencies_refuses_brackets_at_translation(bracketed, place):
    trees = bracketed / "corpus/train.en.brackets"
    write_recipe(
        place / "p.yaml", place / "corpus", model=MODEL, parser={"workers": 1, "device": "cpu"}
    )
    assert synmt("train", "p.yaml", cwd=place).returncode == 0
    text = (place / "corpus/train.en").read_bytes()
    done = synmt("translate", "--parses", trees, text=text, cwd=place)
    assert done.returncode
    assert "comes as brackets, and the model reads dependencies" in " ".join(
        done.stderr.decode().split()
    )


@pytest.mark.parametrize(
    ("parser", "syntax", "message"),
    [
        (
            GIVEN,
            {"variants": [{"name": "pascal", "layers": [1], "heads": 2}]},
            "nothing in this recipe reads const",
        ),
        (
            {**GIVEN, "control": "random"},
            DISTANCE,
            "change dependencies, and `constituents: given` reads none",
        ),
        (
            {**GIVEN, "rewire": 0.5},
            DISTANCE,
            "change dependencies, and `constituents: given` reads none",
        ),
    ],
)
def test_given_constituents_are_refused_where_they_change_nothing(
    tmp_path, parser, syntax, message
):
    path = write_recipe(tmp_path / "d.yaml", tmp_path / "corpus", parser=parser, syntax=syntax)
    with pytest.raises(UsageError, match=message):
        tree_requirements(load_recipe(path))
