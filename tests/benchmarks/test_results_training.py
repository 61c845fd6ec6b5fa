"""What a comparison trains and measures, and how it ends: with real runs on a tiny corpus, and with
invented ones."""

import json
import sys

import pytest
import results_times
import torch
from results_plan import Plan
from results_statistics import times_as_long
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

    def running(*arguments, program=results):
        monkeypatch.setattr(sys, "argv", ["program", "tiny.yaml", *arguments])
        try:
            ended = program.main()
        except SystemExit as leaving:
            ended = leaving.code
        return ended, capsys.readouterr().out

    return running


def timing(run, *arguments):
    return run("--steps", "6", *arguments, program=results_times)


@pytest.mark.usefixtures("offline")
def test_what_is_missing_is_trained_and_measured_once(tiny_plan, run):
    assert run("--list") == (0, "tiny-plain-seed1\ntiny-reads-trees-seed1\n")
    ended, out = run("--systems", "plain")
    assert ended == 0
    assert out.startswith("tiny-plain-seed1: test ")
    stored = json.loads((tiny_plan / "tiny/plain-seed1.json").read_text())
    test = tiny_plan / "runs/results/tiny-plain-seed1/tests/test"
    score = json.loads((test / "scores.json").read_text())["bleu"]["score"]
    assert stored["tests"]["test"]["scores"]["bleu"]["score"] == pytest.approx(score, abs=1e-4)
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
    assert json.loads((tiny_plan / "tiny/labels.json").read_text())["test"]["words"]
    assert run() == (0, "")
    ended, _ = run("training.max_steps=4")
    assert "the result of another recipe" in ended
    assert "Remove it, and runs/results/tiny-plain-seed1," in ended


@pytest.mark.usefixtures("offline")
def test_steps_are_timed_next_to_those_of_the_baseline_and_not_again(tiny_plan, run):
    plan, path = tiny_plan / "tiny.yaml", tiny_plan / "tiny/times.json"
    # a repeat is left out
    plan.write_text(
        f"{PLAN}  'plain, bf16': {{recipe: base.yaml, set: {{training.precision: bf16}}}}\n"
        "set: {parser.control: gold}\n"
    )
    prints = {one.system: one.fingerprint for one in Plan.load(plan).runs({})}
    _, out = timing(run, "--machine", "a CPU", "parser.workers=2")
    stored = json.loads(path.read_text())
    assert (stored["machine"], stored["precision"]) == ("a CPU", "float32")
    assert list(stored["systems"]) == ["reads, trees"]
    measured = stored["systems"]["reads, trees"]
    assert (measured["recipe"], measured["baseline"]) == (prints["reads, trees"], prints["plain"])
    assert len(measured["seconds"]) == len(measured["of_baseline"]) == 6
    value, ends = times_as_long(measured)
    assert out == f"reads, trees: {value:.2f} ({ends.low:.2f} to {ends.high:.2f})\n"
    # the machine is still that one
    assert timing(run) == (None, "")


@pytest.mark.parametrize(
    "argument",
    ["--machine=another", "training.precision=bf16"],
)
def test_steps_are_not_timed_otherwise_than_before(tiny_plan, run, argument):
    stored = {"machine": "a CPU", "threads": torch.get_num_threads(), "precision": "float32"}
    (tiny_plan / "tiny/times.json").write_text(json.dumps({**stored, "systems": {}}))
    assert "measured on another machine, with other threads" in timing(run, argument)[0]


def test_the_mixture_that_a_search_finds_is_trained_with_all_seeds_at_once(
    tiny_plan, run, monkeypatch
):
    search = "search: {plain + a: base.yaml, plain + b: trees.yaml}\n"
    plan = PLAN.replace("seeds: [1]", "seeds: [1, 2, 3]") + search
    (tiny_plan / "tiny.yaml").write_text(plan)
    losses, names = {"plain + a": 1.0, "plain + b": 2.0}, []

    def train(plan, one, options):
        names.append(one.recipe.name)
        stored = {"system": one.system, "seed": one.seed, "fingerprint": one.fingerprint}
        validation = [[1, losses.get(one.system, 3.0)]]
        one.result.write_text(json.dumps({**stored, "tests": {}, "validation": validation}))
        return 0

    monkeypatch.setattr(results, "train", train)
    assert run()[0] == 0
    found = ["tiny-plain-a-seed2", "tiny-plain-a-seed3"]
    assert names[2 + 2 + 2 * 2 :] == found


# what is replaced in the plan, by what, and the message
MISTAKES = """
title -> titel -> titel
title: Tiny\\n ->  -> title
plain: base.yaml -> plain: {recipe: base.yaml, baseline: plan} -> no system is named 'plan'
title -> chosen_by_score: [reads]\\ntitle -> no system is named 'reads'
title -> pairs: [[plain, plan]]\\ntitle -> no system is named 'plan'
seeds: [1] -> seeds: 1 -> seeds: must be
seeds: [1] -> seeds: [] -> seeds
{transformer: plain} -> {transformer: plan} -> 'plan'. Did you mean 'plain'?
{transformer: plain} -> {lstm: plain} -> none is given for the transformer that 'plain' is
plain: base.yaml -> plain: {recipe: base.yaml, base: plain} -> systems.plain.base
plain: base.yaml -> plain: {set: {}} -> systems.plain.recipe
plain: base.yaml -> plain: bass.yaml -> there is no file or shipped recipe
title -> set: {modell.dropout: 0.3}\\ntitle -> Did you mean 'model'?
title -> groups: [{test: test, by: words, metric: blue}]\\ntitle -> groups.0.metric: must be
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
    assert "plain-seed1.json: missing or damaged. Remove it" in run("--list")[0]


def test_after_ctrl_c_one_line_says_how_to_go_on(tiny_plan, run, monkeypatch, capsys):
    def interrupt(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(results, "train", interrupt)
    monkeypatch.setattr(sys, "argv", ["results.py", "tiny.yaml"])
    with pytest.raises(SystemExit) as ended:
        results.main()
    assert ended.value.code == 130
    assert capsys.readouterr().err == "interrupted: the same command goes on\n"
