"""A decoder that learns from trees of the target: parsed or given in training, never wanted for
translating."""

import json

import pytest
from tiny import fail, succeed, write_lines, write_recipe

from synmt.run_folder import Run

pytestmark = pytest.mark.journey

GOLD = {"control": "gold", "workers": 1, "device": "cpu"}


def write(place, variants, **target_parser):
    parsers = {"parser": GOLD, "target_parser": target_parser or GOLD}
    syntax = {"variants": variants}
    write_recipe(place / "dbsa.yaml", place / "corpus", syntax=syntax, **parsers)


@pytest.mark.parametrize("sides", [["target"], ["source", "target"]], ids=str)
def test_a_run_learns_from_trees_of_the_target_and_translates_without_a_parser(
    place, monkeypatch, sides
):
    write(place, [{"name": "dbsa", "side": side, "layers": [1]} for side in sides])
    monkeypatch.setattr("synmt.parsing.parser.StanzaParser.parse", None)
    succeed("train", "dbsa.yaml", cwd=place)
    run = Run(place / "runs/dbsa")
    assert [*run.info()["trees"]] == sides
    records = map(json.loads, (run.folder / "log.jsonl").read_text().splitlines())
    losses = [record["losses"] for record in records if record["kind"] == "step"]
    assert losses[0].keys() == {f"dbsa.{side}.1" for side in sides}
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
        ("dbsa", {}, "valid.de: target_parser.control is gold, but this text comes without"),
        ("mine.lab", {}, "mine.lab reads trees whenever the model runs"),
    ],
)
def test_trees_of_the_target_that_cannot_be_had_are_refused_before_anything_runs(
    place, monkeypatch, variant, parser, message
):
    monkeypatch.setenv("SYNMT_ALLOW_CODE", "1")
    write_lines(place / "mine" / "lab.py", LAB.splitlines())
    (place / "corpus/valid.de.conllu").unlink()
    write(place, [{"name": variant, "side": "target", "layers": [1]}], **parser)
    assert message in " ".join(fail(2, "train", "dbsa.yaml", cwd=place).split())
