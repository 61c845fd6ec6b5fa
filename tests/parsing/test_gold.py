"""A parser against gold trees of raw text: the same as the shared task's own evaluation."""

import json

import pytest
from tiny import chain_of, fail, succeed, write_lines
from udtools.udeval import evaluate, load_conllu_file

from synmt.syntax.conllu import format_conllu

pytestmark = [pytest.mark.journey, pytest.mark.usefixtures("offline")]

LINES = [
    "The monkey eats a banana.",
    "A dog that barks sees two cats",
    "She wrote the book , did she ?",
    "Yes",
]


def test_the_scores_are_those_of_the_shared_task(tmp_path):
    text, gold = write_lines(tmp_path / "text", LINES), tmp_path / "gold.conllu"
    parsed = succeed("parse", text).stdout.decode()
    (tmp_path / "parsed.conllu").write_text(parsed)
    # half of the trees are chains of other words, in the others a relation has changed
    chains = [format_conllu(chain_of(line), line, number) for number, line in enumerate(LINES[:2])]
    others = "\n\n".join(parsed.split("\n\n")[2:])
    gold.write_text("".join(chains) + others.replace("\tdet\t", "\tamod\t"))
    found = json.loads(succeed("parse", "--gold", gold, "--json").stdout)
    [table] = found["tables"]
    expected = evaluate(*map(load_conllu_file, map(str, (gold, tmp_path / "parsed.conllu"))))
    of_all = table["rows"][0]
    assert of_all["UAS"] == pytest.approx(expected["UAS"].f1)
    assert of_all["LAS"] == pytest.approx(expected["LAS"].f1)
    assert 0.3 < of_all["LAS"] < of_all["UAS"] < 1
    rows = {row["relation"]: row for row in table["rows"]}
    assert (rows["amod"]["words"], rows["amod"]["UAS"], rows["amod"]["LAS"]) == (1, 1.0, 0.0)
    assert found["words_per_second"] > 0


def test_options_that_do_not_apply_are_refused(tmp_path):
    gold = write_lines(tmp_path / "gold.conllu", [])
    assert "--output does not apply to --gold" in fail(2, "parse", "--gold", gold, "-o", "x")
    assert "--json needs --gold" in fail(2, "parse", "--json")
    assert "there are no words to compare" in fail(1, "parse", "--gold", gold)
