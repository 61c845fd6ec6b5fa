"""What a comparison trains and measures, and how it ends: with real runs on a tiny corpus, and with
invented ones."""

import json
import sys

import pytest
from results_stored import unpacked
from tiny import TRAINING, write_corpus, write_recipe

import results
from synmt.evaluation.metrics import make_metric

pytestmark = pytest.mark.journey

PLAN = """corpus: tiny
title: Tiny
test: test
seeds: [1]
baselines: {transformer: plain}
systems:
  plain: base.yaml
  'reads, trees': trees.yaml
"""


@pytest.fixture
def tiny_plan(tmp_path, monkeypatch):
    """Write the plan of a plain system and of one that reads gold trees, on a tiny corpus."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SYNMT_CACHE", str(tmp_path / "cache"))
    text = write_corpus(tmp_path / "text")
    sections = {
        "training": {**TRAINING, "max_steps": 3, "validate_every": 3, "validation_beam_size": 0},
        "decoding": {"beam_size": 1, "max_length_ratio": 0.1, "max_length_extra": 4},
        "evaluation": {"metrics": ["bleu"]},
    }
    write_recipe(tmp_path / "base.yaml", text, **sections, syntax={})
    write_recipe(tmp_path / "trees.yaml", text, **sections)
    (tmp_path / "tiny.yaml").write_text(PLAN)
    (tmp_path / "tiny").mkdir()
    return tmp_path


@pytest.fixture
def run(tiny_plan, monkeypatch, capsys):
    """Make a function that runs a program on the plan: how it ended, and what it printed."""

    def running(*arguments):
        monkeypatch.setattr(sys, "argv", ["program", "tiny.yaml", *arguments])
        try:
            ended = results.main()
        except SystemExit as leaving:
            ended = leaving.code
        return ended, capsys.readouterr().out

    return running


@pytest.mark.usefixtures("offline")
def test_what_is_missing_is_trained_and_measured_once(tiny_plan, run):
    assert run("--list") == (0, "tiny-plain-seed1\ntiny-reads-trees-seed1\n")
    plan = tiny_plan / "tiny.yaml"
    plan.write_text("".join(PLAN.splitlines(keepends=True)[:-1]))
    ended, out = run()
    assert ended == 0
    assert out.startswith("tiny-plain-seed1: test ")
    plan.write_text(PLAN)
    stored = json.loads((tiny_plan / "tiny/plain-seed1.json").read_text())
    test = tiny_plan / "runs/results/tiny-plain-seed1/tests/test"
    score = json.loads((test / "scores.json").read_text())["bleu"]["score"]
    assert stored["tests"]["test"]["scores"]["bleu"]["score"] == pytest.approx(score, abs=1e-4)
    traced = {"commit", "torch", "processor", "threads", "precision", "text"}
    assert all(stored[key] for key in traced)
    counts = unpacked(stored["tests"]["test"]["statistics"])
    assert make_metric("bleu").aggregate(counts.sum(0)) == pytest.approx(score)
    assert stored["training"]["processor_seconds"] > 0
    assert [step for step, _ in stored["validation"]] == [3]
    assert run("--list") == (0, "tiny-reads-trees-seed1\n")
    # the trees of the test set are away: the run fails and is tried again
    trees = tiny_plan / "text/test.en.conllu"
    trees.rename(trees.with_suffix(".away"))
    ended, out = run("parser.control=gold")
    assert ended == 1
    assert "tiny-reads-trees-seed1 failed: " in out
    trees.with_suffix(".away").rename(trees)
    assert run()[0] == 0
    assert run() == (0, "")
    ended, _ = run("training.max_steps=4")
    assert "the result of another recipe" in ended
    assert "Remove it, and its run," in ended


# what is replaced in the plan, by what, and the message
MISTAKES = """
title -> titel -> titel
title: Tiny\\n ->  -> title
plain: base.yaml -> plain: {recipe: base.yaml, baseline: plan} -> Did you mean 'plain'?
plain: base.yaml -> plain: {recipe: base.yaml, control_of: plan} -> there is no system 'plan'
title -> differences: {x: [[plain], [plan]]}\\ntitle -> there is no system 'plan'
title -> differences: {x: [[plain]]}\\ntitle -> differences.x
title -> figure: [plan]\\ntitle -> there is no system 'plan'
seeds: [1] -> seeds: 1 -> seeds: must be
seeds: [1] -> seeds: [] -> seeds
{transformer: plain} -> {transformer: plan} -> Did you mean 'plain'?
{transformer: plain} -> {lstm: plain} -> there is no baseline 'transformer'
plain: base.yaml -> plain: {recipe: base.yaml, base: plain} -> systems.plain.base
plain: base.yaml -> plain: {set: {}} -> systems.plain.recipe
plain: base.yaml -> plain: bass.yaml -> there is no file or shipped recipe
title -> set: {modell.dropout: 0.3}\\ntitle -> Did you mean 'model'?
"""


@pytest.mark.parametrize(
    ("old", "new", "message"), [line.split(" -> ") for line in MISTAKES.strip("\n").splitlines()]
)
def test_a_plan_with_a_mistake_is_refused_before_anything_is_trained(
    tiny_plan, run, old, new, message
):
    old, new = (part.replace("\\n", "\n") for part in (old, new))
    (tiny_plan / "tiny.yaml").write_text(PLAN.replace(old, new, 1))
    ended, _ = run("--list")
    assert ended.startswith("error: ")
    assert message in ended


@pytest.mark.parametrize("damage", [b"", b"[]", b"{}", b"\xff"])
def test_a_damaged_result_is_named(tiny_plan, run, damage):
    (tiny_plan / "tiny/plain-seed1.json").write_bytes(damage)
    assert "plain-seed1.json" in (told := run("--list")[0])
    assert "Remove it" in told


def test_after_ctrl_c_one_line_says_how_to_go_on(tiny_plan, run, monkeypatch, capsys):
    def interrupt(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(results, "train", interrupt)
    monkeypatch.setattr(sys, "argv", ["results.py", "tiny.yaml"])
    with pytest.raises(SystemExit) as ended:
        results.main()
    assert ended.value.code == 130
    assert capsys.readouterr().err == "interrupted: the same command goes on\n"
