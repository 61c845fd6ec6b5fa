"""A decoder that learns from trees of the target: parsed or given in training, never wanted for
translating."""

import json

import numpy as np
import pytest
from small import MONKEY, MONKEY_WORD_OF
from tiny import synmt, write_recipe

from synmt.data.batch import collate
from synmt.data.corpus import Example, PreparedCorpus, Tree
from synmt.data.vocabulary import BOS
from synmt.run_folder import Run
from synmt.syntax.reading import Reading
from synmt.syntax.signals import PARENT_CHAIN, PARENT_FIRST, WORD

pytestmark = pytest.mark.journey

DECODER = {"variants": [{"name": "dbsa", "side": "target", "layers": [1]}]}
BOTH = {
    "variants": [{"name": "dbsa", "side": side, "layers": [1]} for side in ("source", "target")]
}
GOLD = {"control": "gold", "workers": 1, "device": "cpu"}


def refusal_to_train(place, recipe, **sections):
    """Train with a recipe that is refused: the message, in one line."""
    write_recipe(place / recipe, place / "corpus", parser=GOLD, **sections)
    done = synmt("train", recipe, cwd=place)
    assert done.returncode == 2
    return " ".join(done.stderr.decode().split())


def test_signals_of_the_target_stand_at_the_decoders_input():
    pair = Example(0, np.array([9]), np.arange(20, 27), {"target": Tree(MONKEY, MONKEY_WORD_OF)})
    batch = collate([pair], target=Reading([PARENT_FIRST, PARENT_CHAIN, WORD]))
    # <s> ▁The ▁mon key ▁eats ▁a ▁ban ana
    assert batch.target_input[0].tolist() == [BOS, *range(20, 27)]
    assert batch.target_signals["parent_first"][0].tolist() == [0, 2, 4, 4, 4, 6, 4, 4]
    assert batch.target_signals["parent_chain"][0].tolist() == [0, 2, 3, 4, 4, 6, 7, 4]
    assert batch.target_signals["word"][0].tolist() == [-1, 0, 1, 1, 2, 3, 4, 4]
    assert batch.source_signals == {}


@pytest.mark.parametrize("syntax", [DECODER, BOTH], ids=["decoder", "both"])
def test_a_run_learns_from_trees_of_the_target_and_translates_without_a_parser(
    place, monkeypatch, syntax
):
    write_recipe(
        place / "dbsa.yaml", place / "corpus", syntax=syntax, parser=GOLD, target_parser=GOLD
    )
    monkeypatch.setattr("synmt.parsing.parser.StanzaParser.parse", None)
    done = synmt("train", "dbsa.yaml", cwd=place)
    assert done.returncode == 0, done.stderr.decode()
    run = Run(place / "runs/dbsa")
    trees = run.info()["trees"]
    assert trees.keys() == {variant["side"] for variant in syntax["variants"]}
    records = [json.loads(line) for line in (run.folder / "log.jsonl").read_text().splitlines()]
    losses = [record["losses"] for record in records if record["kind"] == "step"]
    assert losses[0].keys() == {f"dbsa.{side}.1" for side in trees}
    assert all(value > 0 for value in losses[-1].values())
    again = synmt("translate", text=(place / "corpus/test.en").read_bytes(), cwd=place)
    assert again.stdout == (run.folder / "tests/test/hypothesis.txt").read_bytes()


def test_trees_of_both_sides_lie_beside_one_prepared_text(place):
    for name, syntax in {"plain": {"variants": []}, "decoder": DECODER, "both": BOTH}.items():
        write_recipe(
            place / f"{name}.yaml", place / "corpus", syntax=syntax, parser=GOLD, target_parser=GOLD
        )
        assert synmt("prepare", f"{name}.yaml", cwd=place).returncode == 0
    (folder,) = (place / "data/prepared").iterdir()
    found = PreparedCorpus.open(folder).annotations()
    assert sorted(facts["side"] for facts in found.values()) == ["source", "target"]
    names = {facts["side"]: name for name, facts in found.items()}
    row = PreparedCorpus.open(folder).split("train", names).rows([0])[0]
    assert row.trees["source"].parse.relations != row.trees["target"].parse.relations
    assert len(row.trees["target"].word_of) == len(row.target)


def test_a_target_without_a_parser_is_refused_before_anything_runs(place):
    message = refusal_to_train(
        place, "dbsa.yaml", syntax=DECODER, target_parser={"model": "compact"}
    )
    assert "no compact model for the language 'de'" in message


def test_gold_trees_of_the_target_that_are_not_there_are_named(place):
    (place / "corpus/valid.de.conllu").unlink()
    message = refusal_to_train(place, "dbsa.yaml", syntax=DECODER, target_parser=GOLD)
    assert "valid.de: target_parser.control is gold, but this text comes without trees" in message


def test_a_variant_that_reads_trees_on_the_target_is_refused(place, monkeypatch):
    monkeypatch.setenv("SYNMT_ALLOW_CODE", "1")
    (place / "mine").mkdir()
    (place / "mine/lab.py").write_text(
        "from synmt.model.variant import Variant\nfrom synmt.syntax.signals import WORD\n\n\n"
        "class Lab(Variant):\n    reads = (WORD,)\n\n    def edit(self, terms, syntax):\n        "
        "return terms\n"
    )
    message = refusal_to_train(
        place, "lab.yaml", syntax={"variants": [{"name": "mine.lab", "side": "target"}]}
    )
    assert "mine.lab reads trees whenever the model runs" in message
