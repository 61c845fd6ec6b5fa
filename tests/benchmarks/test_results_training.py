"""Systems of a comparison are trained, measured and timed once, and mistakes in a plan are
refused."""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

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


@pytest.fixture
def tiny_plan(tmp_path, monkeypatch):
    """Write the plan of a plain system and of one that reads gold trees, on a tiny corpus."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SYNMT_CACHE", str(tmp_path / "cache"))
    text = write_corpus(tmp_path / "text")
    short = {**TRAINING, "max_steps": 3, "validate_every": 3, "validation_beam_size": 0}
    decoding = {"beam_size": 1, "max_length_ratio": 0.1, "max_length_extra": 4}
    evaluation = {"metrics": ["bleu"]}
    write_recipe(
        tmp_path / "base.yaml",
        text,
        training=short,
        decoding=decoding,
        evaluation=evaluation,
        syntax={},
    )
    write_recipe(
        tmp_path / "trees.yaml", text, training=short, decoding=decoding, evaluation=evaluation
    )
    plan = (
        "corpus: tiny\ntitle: Tiny\ntest: test\nseeds: [1]\nbaselines: {transformer: "
        "plain}\nsystems:\n"
    )
    (tmp_path / "tiny.yaml").write_text(f"{plan}  plain: base.yaml\n  'reads, trees': trees.yaml\n")
    return tmp_path


@pytest.mark.journey
@pytest.mark.usefixtures("offline")
def test_what_is_missing_is_trained_and_measured_once(tiny_plan, monkeypatch, capsys):
    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["results.py", "tiny.yaml", *arguments])
        ended = results.main()
        return ended, capsys.readouterr().out

    assert run("--list") == (0, "tiny-plain-seed1\ntiny-reads-trees-seed1\n")
    ended, out = run("--systems", "plain")
    assert ended == 0
    assert out.startswith("1 of 1, tiny-plain-seed1: test ")
    stored = json.loads((tiny_plan / "tiny/plain-seed1.json").read_text())
    scores = json.loads(
        (tiny_plan / "runs/results/tiny-plain-seed1/tests/test/scores.json").read_text()
    )
    assert stored["tests"]["test"]["scores"]["bleu"]["score"] == pytest.approx(
        scores["bleu"]["score"], abs=1e-4
    )
    counts = unpacked(stored["tests"]["test"]["statistics"])
    assert make_metric("bleu").aggregate(counts.sum(0)) == pytest.approx(scores["bleu"]["score"])
    assert stored["training"]["processor_seconds"] > 0
    assert [step for step, _ in stored["validation"]] == [3]
    assert run("--list") == (0, "tiny-reads-trees-seed1\n")
    # the trees of the test set are away: the run fails, says so, and is tried again
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
    with pytest.raises(
        SystemExit,
        match=r"the result of another recipe.*Remove it, and runs/results/tiny-plain-seed1,",
    ):
        run("training.max_steps=4")


@pytest.mark.usefixtures("offline")
def test_steps_are_timed_next_to_those_of_the_baseline_and_not_again(
    tiny_plan, monkeypatch, capsys
):
    plan, path = tiny_plan / "tiny.yaml", tiny_plan / "tiny/times.json"
    # a baseline that is a system, too, and a repeat, which is left out
    more = "  smaller: {recipe: trees.yaml, baseline: 'reads, trees', set: {model.dropout: 0}}\n"
    more += "  'plain, bf16': {recipe: base.yaml, set: {training.precision: bf16}}\n"
    plan.write_text(f"{plan.read_text()}{more}set: {{parser.control: gold}}\n")
    prints = {run.system: run.fingerprint for run in Plan.load(plan).runs({})}

    def run(*arguments):
        monkeypatch.setattr(
            sys, "argv", ["results_times.py", "tiny.yaml", "--steps", "6", *arguments]
        )
        results_times.main()
        return capsys.readouterr().out, json.loads(path.read_text())

    said, stored = run("--machine", "a CPU", "parser.workers=2")
    times = stored["systems"]
    assert (list(times), stored["machine"], stored["precision"]) == (
        ["reads, trees", "smaller"],
        "a CPU",
        "float32",
    )
    for (system, measured), base in zip(times.items(), ("plain", "reads, trees"), strict=True):
        assert (measured["recipe"], measured["baseline"]) == (prints[system], prints[base])
        assert len(measured["seconds"]) == len(measured["of_baseline"]) == 6
        assert min(*measured["seconds"], *measured["of_baseline"]) > 0
    values = {system: times_as_long(one) for system, one in times.items()}
    assert said.splitlines() == [
        f"{system}: {value:.2f} ({ends.low:.2f} to {ends.high:.2f})"
        for system, (value, ends) in values.items()
    ]
    # the machine is still that one
    assert run() == ("", stored)
    del times["smaller"]
    path.write_text(json.dumps(stored))
    assert run()[0].startswith("smaller: ")
    for arguments, message in (
        (
            ["--machine", "another"],
            r"times\.json: measured with machine a CPU, .*, not machine another, .*\. Measure as "
            r"before \(--machine, ",
        ),
        (
            ["model.dropout=0.5"],
            r"model\.dropout: would change what is timed\. Changes: the precision, parsers, "
            r"the device",
        ),
        (
            ["training.precision=bf16"],
            r"precision float32, not .*, precision bf16\. Measure as before",
        ),
    ):
        with pytest.raises(SystemExit, match=message):
            run(*arguments)
    with pytest.raises(SystemExit):
        run("--steps", "5")
    assert "must be 6 or more" in capsys.readouterr().err
    for threads, what in ((3, "3 threads"), (None, "a GPU")):
        path.write_text(json.dumps({**stored, "threads": threads}))
        with pytest.raises(
            SystemExit,
            match=rf"a CPU, {what}, precision float32, not .*, \d threads, .* Measure as before.*, "
            r"or remove",
        ):
            run()


@pytest.mark.usefixtures("offline")
def test_another_process_may_time_steps_meanwhile(tiny_plan, monkeypatch):
    plan, path, measure = (
        tiny_plan / "tiny.yaml",
        tiny_plan / "tiny/times.json",
        results_times.in_turns,
    )
    plan.write_text(f"{plan.read_text()}set: {{parser.control: gold}}\n")

    def meet(*args):
        found = measure(*args)
        how = {"machine": "a CPU", "threads": torch.get_num_threads(), "precision": "float32"}
        path.write_text(
            json.dumps({**how, "systems": {"other": {**found, "recipe": "a", "baseline": "b"}}})
        )
        return found

    monkeypatch.setattr(results_times, "in_turns", meet)
    monkeypatch.setattr(
        sys, "argv", ["results_times.py", "tiny.yaml", "--steps", "6", "--machine=a CPU"]
    )
    results_times.main()
    assert list(json.loads(path.read_text())["systems"]) == ["other", "reads, trees"]


def test_comparisons_that_start_together_prepare_one_after_the_other(tiny_plan, monkeypatch):
    inside, met = threading.Lock(), []

    def prepare(recipe, *, data):
        met.append(not inside.acquire(blocking=False))
        yield
        # the other one would come now
        time.sleep(0.05)
        if not met[-1]:
            inside.release()

    monkeypatch.setattr(results, "prepare", prepare)
    missing = list(Plan.load(tiny_plan / "tiny.yaml").runs({}))
    with ThreadPoolExecutor() as pool:
        for prepared in pool.map(
            lambda data: list(results.prepared(missing, data)), [tiny_plan / "data"] * 2
        ):
            assert prepared == missing
    assert met == [False] * 4


def test_the_mixture_that_a_search_finds_is_trained_with_all_seeds_at_once(
    tiny_plan, monkeypatch, capsys
):
    plan = (tiny_plan / "tiny.yaml").read_text().replace("seeds: [1]", "seeds: [1, 2, 3]")
    (tiny_plan / "tiny.yaml").write_text(
        f"{plan}search: {{plain + a: base.yaml, plain + b: trees.yaml}}\n"
    )
    losses, rounds = {"plain + a": 1.0, "plain + b": 2.0}, []

    (tiny_plan / "tiny").mkdir()

    def train(plan, missing, options):
        rounds.append([run.recipe.name for run in missing])
        for run in missing:
            stored = {
                "system": run.system,
                "seed": run.seed,
                "fingerprint": run.fingerprint,
                "tests": {},
            }
            run.result.write_text(
                json.dumps({**stored, "validation": [[1, losses.get(run.system, 3.0)]]})
            )
        return 0

    monkeypatch.setattr(results, "train", train)
    monkeypatch.setattr(sys, "argv", ["results.py", "tiny.yaml"])
    assert results.main() == 0
    assert (len(rounds[0]), rounds[1:]) == (
        2 + 2 + 2 * 2,
        [["tiny-plain-a-seed2", "tiny-plain-a-seed3"]],
    )
    assert capsys.readouterr().err.endswith("the search has found plain + a: 2 runs missing\n")
    monkeypatch.setattr(
        sys, "argv", ["results.py", "tiny.yaml", "--systems", "plain + b", "--seeds", "2"]
    )
    with pytest.raises(
        SystemExit, match="only the mixture that the search finds is trained with more seeds"
    ):
        results.main()


def test_a_system_that_a_plan_lacks_is_an_error(tiny_plan, monkeypatch):
    monkeypatch.setattr(
        sys, "argv", ["results.py", "tiny.yaml", "--systems", "plain", "parser.control=gold"]
    )
    with pytest.raises(
        SystemExit,
        match=r"no system is named 'parser\.control=gold'\. Write changes before --systems",
    ):
        results.main()
    monkeypatch.setattr(sys, "argv", ["results.py", "tiny.yaml", "--systems", "plan"])
    with pytest.raises(
        SystemExit, match=r"tiny\.yaml: no system is named 'plan'\. Did you mean 'plain'\?"
    ):
        results.main()


def test_a_plan_with_a_mistake_is_refused_before_anything_is_trained(tiny_plan, monkeypatch):
    path = tiny_plan / "tiny.yaml"
    good = path.read_text()

    def refusal(*arguments):
        monkeypatch.setattr(sys, "argv", ["results.py", str(path), "--list", *arguments])
        with pytest.raises(SystemExit) as ended:
            results.main()
        assert str(ended.value).startswith("error: ")
        return str(ended.value)

    for old, new, message in (
        ("title", "titel", "a plan has no key 'titel'. Did you mean 'title'?"),
        ("title: Tiny\n", "", "'title' is missing"),
        ("title", "path", "a plan has no key 'path'"),
        ("title", "3", "a plan has no key '3'"),
        (
            "plain: base.yaml",
            "plain: {recipe: base.yaml, baseline: plan}",
            "no system is named 'plan'",
        ),
        ("title", "chosen_by_score: [reads]\ntitle", "no system is named 'reads'"),
        ("title", "pairs: [[plain, plan]]\ntitle", "pairs: no system is named 'plan'"),
        (
            "title",
            "search: {a + b: {recipe: base.yaml, baseline: plain}}\ntitle",
            "a mixture such as 'a + b' has no baseline",
        ),
        (good, "- a list\n", "not a plan: it must consist of `key: value` lines"),
        ("seeds: [1]", "seeds: 1", "seeds: must be a list"),
        ("seeds: [1]", "seeds: [1, 1]", "seeds: one is given twice: [1, 1]"),
        ("seeds: [1]", "seeds: []", "seeds: "),
        (
            "{transformer: plain}",
            "{transformer: plan}",
            "no system is named 'plan'. Did you mean 'plain'?",
        ),
        (
            "{transformer: plain}",
            "{lstm: plain}",
            "baselines: none is given for the transformer that 'plain' is",
        ),
        (
            "plain: base.yaml",
            "plain: {recipe: base.yaml, base: plain}",
            "a plan has no key 'systems.plain.base'",
        ),
        ("plain: base.yaml", "plain: {set: {}}", "'systems.plain.recipe' is missing"),
        ("plain: base.yaml", "plain: bass.yaml", "bass.yaml: file not found"),
        (
            "'reads, trees': trees.yaml",
            "'p': base.yaml\n  'p,': trees.yaml",
            "2 systems have the name 'p'",
        ),
        (
            "test: test",
            "test: tets",
            "plain has no test set 'tets'. Test sets: test. Did you mean 'test'?",
        ),
        ("test: test", "test: test\nset: {modell.dropout: 0.3}", "Did you mean 'model'?"),
        (
            "test: test",
            "test: test\ngroups: [{test: test, by: words, metric: blue}]",
            "groups.0.metric: must be",
        ),
        (
            "test: test",
            "test: test\ngroups: [{test: tset, by: words, metric: bleu}]",
            "no test set 'tset'",
        ),
    ):
        assert old in good
        path.write_text(good.replace(old, new))
        assert message in refusal(), new
    path.write_text(good)
    assert "'more' is not a change. Changes look like training.max_steps=100" in refusal("more")
    assert "the plan does not have seed 7. Seeds: 1" in refusal("--seeds", "7")


@pytest.mark.parametrize("damage", [b"", b"{", b"[]", b"{}", b"3", b"\xff"])
def test_a_damaged_result_is_named(tiny_plan, monkeypatch, damage):
    (tiny_plan / "tiny").mkdir()
    (tiny_plan / "tiny/plain-seed1.json").write_bytes(damage)
    monkeypatch.setattr(sys, "argv", ["results.py", "tiny.yaml", "--list"])
    with pytest.raises(
        SystemExit, match=r"plain-seed1\.json: damaged, or not a result\. Remove it"
    ):
        results.main()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_cannot_be_written_is_named_before_training(tiny_plan, monkeypatch):
    tiny_plan.chmod(0o555)
    monkeypatch.setattr(sys, "argv", ["results.py", "tiny.yaml"])
    with pytest.raises(SystemExit, match="cannot be written"):
        results.main()
    tiny_plan.chmod(0o755)


def test_a_file_in_the_place_of_a_folder_is_named_before_training(tiny_plan, monkeypatch):
    (tiny_plan / "data").write_text("")
    monkeypatch.setattr(results, "in_processes", None)
    monkeypatch.setattr(sys, "argv", ["results.py", "tiny.yaml"])
    with pytest.raises(SystemExit, match="data: is a file, not a folder"):
        results.main()


def test_after_ctrl_c_one_line_says_how_to_go_on(tiny_plan, monkeypatch, capsys):
    def interrupt(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(results, "in_processes", interrupt)
    monkeypatch.setattr(sys, "argv", ["results.py", "tiny.yaml"])
    with pytest.raises(SystemExit) as ended:
        results.main()
    assert ended.value.code == 130
    assert (
        capsys.readouterr().err
        == "tiny.yaml: 2 of 2 runs missing\ninterrupted: the same command goes on\n"
    )
