"""What a comparison trains and measures, and how it ends: with real runs on a tiny corpus, and with
invented ones."""

import json
import sys

import pytest
import results_times
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
    assert out.startswith("1 of 1, tiny-plain-seed1: test ")
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
    assert "1 of 1, tiny-reads-trees-seed1 failed: " in out
    trees.with_suffix(".away").rename(trees)
    labels = tiny_plan / "tiny/labels.json"
    written = labels.read_text()
    labels.write_text("{")
    assert run()[0] == 0
    assert labels.read_text() == written
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
    ("argument", "message"),
    [
        ("--machine=another", "measured with machine: a CPU, threads: None, precision: float32"),
        ("parser.workers=2", "Measure as before (--machine, "),
        ("model.dropout=0.5", "would change what is timed. Changes: the precision, parsers"),
    ],
)
def test_steps_are_not_timed_otherwise_than_before(tiny_plan, run, argument, message):
    stored = {"machine": "a CPU", "threads": None, "precision": "float32", "systems": {}}
    (tiny_plan / "tiny/times.json").write_text(json.dumps(stored))
    assert message in timing(run, argument)[0]


def test_the_mixture_that_a_search_finds_is_trained_with_all_seeds_at_once(
    tiny_plan, run, monkeypatch
):
    search = "search: {plain + a: base.yaml, plain + b: trees.yaml}\n"
    plan = PLAN.replace("seeds: [1]", "seeds: [1, 2, 3]") + search
    (tiny_plan / "tiny.yaml").write_text(plan)
    losses, rounds = {"plain + a": 1.0, "plain + b": 2.0}, []

    def train(plan, missing, options):
        rounds.append([one.recipe.name for one in missing])
        for one in missing:
            stored = {"system": one.system, "seed": one.seed, "fingerprint": one.fingerprint}
            validation = [[1, losses.get(one.system, 3.0)]]
            one.result.write_text(json.dumps({**stored, "tests": {}, "validation": validation}))
        return 0

    monkeypatch.setattr(results, "train", train)
    assert run()[0] == 0
    found = ["tiny-plain-a-seed2", "tiny-plain-a-seed3"]
    assert (len(rounds[0]), rounds[1:]) == (2 + 2 + 2 * 2, [found])
    ended, _ = run("--systems", "plain + b", "--seeds", "2")
    assert "only the mixture that the search finds is trained with more seeds" in ended


# what is replaced in the plan, by what, and the message
MISTAKES = """
title -> titel -> titel
title: Tiny\\n ->  -> title
plain: base.yaml -> plain: {recipe: base.yaml, baseline: plan} -> no system is named 'plan'
title -> chosen_by_score: [reads]\\ntitle -> no system is named 'reads'
title -> pairs: [[plain, plan]]\\ntitle -> no system is named 'plan'
title -> search: {a + b: {recipe: base.yaml, baseline: plain}}\\ntitle -> 'a + b' has no baseline
seeds: [1] -> seeds: 1 -> seeds: must be
seeds: [1] -> seeds: [1, 1] -> seeds: one is given twice: [1, 1]
seeds: [1] -> seeds: [] -> seeds
{transformer: plain} -> {transformer: plan} -> 'plan'. Did you mean 'plain'?
{transformer: plain} -> {lstm: plain} -> none is given for the transformer that 'plain' is
plain: base.yaml -> plain: {recipe: base.yaml, base: plain} -> systems.plain.base
plain: base.yaml -> plain: {set: {}} -> systems.plain.recipe
plain: base.yaml -> plain: bass.yaml -> there is no file or shipped recipe
'reads, trees' -> 'plain,' -> 2 systems have the name 'plain'
test: test -> test: tets -> plain: there is no test set 'tets'. Test sets: test. Did you mean
title -> set: {modell.dropout: 0.3}\\ntitle -> Did you mean 'model'?
title -> groups: [{test: test, by: words, metric: blue}]\\ntitle -> groups.0.metric: must be
title -> groups: [{test: tset, by: words, metric: bleu}]\\ntitle -> no test set 'tset'
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
    assert "plain-seed1.json: damaged, or not a result. Remove it" in run("--list")[0]


def test_after_ctrl_c_one_line_says_how_to_go_on(tiny_plan, run, monkeypatch, capsys):
    def interrupt(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(results, "in_processes", interrupt)
    monkeypatch.setattr(sys, "argv", ["results.py", "tiny.yaml"])
    with pytest.raises(SystemExit) as ended:
        results.main()
    assert ended.value.code == 130
    written = capsys.readouterr().err.splitlines()
    assert written == [
        "tiny.yaml: 2 of 2 runs missing",
        "interrupted: the same command goes on",
    ]
