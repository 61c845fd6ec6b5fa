"""A decoder that learns from trees of the target: parsed or given in training, never wanted for
translating."""

import json

import numpy as np
import pytest
from small import MONKEY, MONKEY_WORD_OF
from tiny import fail, succeed, write_lines, write_recipe

from synmt.data.batch import collate
from synmt.data.corpus import Example, Tree
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
    succeed("train", "dbsa.yaml", cwd=place)
    run = Run(place / "runs/dbsa")
    trees = run.info()["trees"]
    assert trees.keys() == {variant["side"] for variant in syntax["variants"]}
    records = [json.loads(line) for line in (run.folder / "log.jsonl").read_text().splitlines()]
    losses = [record["losses"] for record in records if record["kind"] == "step"]
    assert losses[0].keys() == {f"dbsa.{side}.1" for side in trees}
    assert all(value > 0 for value in losses[-1].values())
    again = succeed("translate", text=(place / "corpus/test.en").read_bytes(), cwd=place)
    assert again.stdout == (run.folder / "tests/test/hypothesis.txt").read_bytes()


LAB = """
from synmt.model.variant import Variant
from synmt.syntax.signals import WORD


class Lab(Variant):
    reads = (WORD,)

    def edit(self, terms, syntax):
        return terms
"""


@pytest.mark.parametrize(
    ("variant", "parser", "message"),
    [
        ("dbsa", {"model": "compact"}, "no compact model for the language 'de'"),
        ("dbsa", GOLD, "valid.de: target_parser.control is gold, but this text comes without"),
        ("mine.lab", GOLD, "mine.lab reads trees whenever the model runs"),
    ],
)
def test_trees_of_the_target_that_cannot_be_had_are_refused_before_anything_runs(
    place, monkeypatch, variant, parser, message
):
    monkeypatch.setenv("SYNMT_ALLOW_CODE", "1")
    write_lines(place / "mine" / "lab.py", LAB.splitlines())
    (place / "corpus/valid.de.conllu").unlink()
    syntax = {"variants": [{"name": variant, "side": "target", "layers": [1]}]}
    parsers = {"parser": GOLD, "target_parser": parser}
    write_recipe(place / "r.yaml", place / "corpus", syntax=syntax, **parsers)
    assert message in " ".join(fail(2, "train", "r.yaml", cwd=place).split())
