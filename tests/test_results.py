"""The comparison of all systems: its plans, its answer, and pages that stay the same."""

from __future__ import annotations

import itertools
import json
import re
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from tiny import TRAINING, write_corpus, write_recipe

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "benchmarks"))

from results_answer import _more_weights, _on_average, answer  # noqa: E402
from results_found import Results  # noqa: E402
from results_measure import packed, unpacked  # noqa: E402
from results_notes import _unfinished, _unstable  # noqa: E402
from results_page import BEGIN, END  # noqa: E402
from results_phrases import verdict  # noqa: E402
from results_plan import Plan, file_name, trees_of  # noqa: E402
from results_statistics import Difference, Line  # noqa: E402

import results  # noqa: E402
from synmt.evaluation.metrics import make_metric  # noqa: E402
from synmt.recipe.load import load_recipe  # noqa: E402

# they load matplotlib and scipy, and read all recipes
pytestmark = pytest.mark.journey

PLANS = sorted((ROOT / "results").glob("*.yaml"))


@pytest.mark.parametrize("path", PLANS, ids=lambda path: path.stem)
def test_every_system_of_a_plan_has_a_recipe_and_a_name_of_its_own(path):
    runs = list(Plan.load(path).runs({}))
    assert len({run.recipe.name for run in runs}) == len({run.result for run in runs}) == len(runs)
    assert all(run.recipe.training.seed == run.seed for run in runs)
    of_first_seed = [run for run in runs if run.seed == 1]
    assert len({run.fingerprint for run in of_first_seed}) == len(of_first_seed), "two systems are the same"
    kinds = {trees_of(run.recipe) for run in of_first_seed}
    assert kinds <= {"parser", "gold", "random", "left", "right", "shuffled", "rewired", "uniform", "induced", "none"}


def test_a_system_is_moved_to_another_corpus_with_all_that_makes_it():
    plan = Plan.load(ROOT / "results/controlled.yaml")
    base, ldd = load_recipe("controlled-base"), plan.recipe("ldd, random trees", {})
    assert ldd.model.encoder_heads == (16, 4, 4, 4)
    assert ldd.syntax == load_recipe("multi30k-ldd").syntax
    assert ldd.parser.control == "random"
    assert (ldd.training.max_steps, ldd.vocabulary) == (base.training.max_steps, base.vocabulary)
    lstm = plan.recipe("sa", {"training.seed": 3})
    assert lstm.training.schedule == load_recipe("controlled-lstm").training.schedule
    assert lstm.training.seed == 3


@pytest.mark.parametrize(
    ("system", "trees"),
    [
        ("plain", "none"),
        ("relative", "none"),
        ("pascal", "parser"),
        ("dbsa-decoder", "parser"),
        ("multitask", "parser"),
        ("pascal, gold trees", "gold"),
        ("lisa-left", "left"),
        ("ldd, rewired 50 %", "rewired"),
        ("uldd", "uniform"),
        ("uudd", "uniform"),
        ("sa", "induced"),
        ("fa", "none"),
        ("tree-attention", "induced"),
    ],
)
def test_a_system_with_trees_is_told_from_one_without(system, trees):
    assert trees_of(Plan.load(ROOT / "results/controlled.yaml").recipe(system, {})) == trees


def test_the_fingerprint_tells_recipes_apart_but_not_seeds_and_machines():
    plan = Plan.load(ROOT / "results/controlled.yaml")
    first, *others = (
        next(plan.runs(changes)).fingerprint
        for changes in ({}, {"parser.workers": 3, "training.device": "cpu"}, {"training.max_steps": 3})
    )
    assert others[0] == first != others[1]
    seeds = {run.fingerprint for run in plan.runs({}) if run.system == "plain"}
    assert seeds == {first}


def test_the_search_goes_by_the_validation_text_and_only_its_find_gets_all_seeds(tmp_path):
    (tmp_path / "mixed").mkdir()
    path = tmp_path / "mixed.yaml"
    path.write_text(
        "corpus: mixed\ntitle: Mixed\ntest: test\nseeds: [1, 2]\nsystems: {plain: multi30k-tiny}\n"
        "search: {plain + a: multi30k-pascal, plain + b: multi30k-gcn}\n"
    )
    plan = Plan.load(path)

    def names():
        return [f"{run.system} {run.seed}" for run in plan.runs({})]

    assert names() == ["plain 1", "plain + a 1", "plain + b 1", "plain 2"]
    plan.result("plain + a", 1).write_text(json.dumps({"validation": [[5, 3.0], [10, 2.5]]}))
    assert plan.found() is None, "the other one may be better"
    plan.result("plain + b", 1).write_text(json.dumps({"validation": [[5, 2.4], [10, 2.6]]}))
    assert plan.tried() == {"plain + a": 2.5, "plain + b": 2.4}
    assert names() == ["plain 1", "plain + a 1", "plain + b 1", "plain 2", "plain + b 2"]
    assert plan.parts() == {}
    plan.result("plain", 1).write_text(json.dumps({"validation": [[10, 2.7]]}))
    assert plan.parts() == {"plain": 2.7}


def test_packed_arrays_are_read_as_they_were():
    values = np.random.default_rng(1).integers(0, 60_000, (7, 3))
    stored = json.loads(json.dumps(packed(values)))
    assert (unpacked(stored) == values).all()


def test_the_answer_says_more_or_fewer_weights():
    assert _more_weights(1012, 1000) == "adds 1.2 % to the weights"
    assert _more_weights(1000, 1000) == "adds 0.0 % to the weights"
    assert _more_weights(990, 1000) == "has 1.0 % fewer weights"


def line(system, value, *scores, p=0.9):
    return Line(system, list(scores), Difference(value, 0.5, 20.0, p))


def test_the_answer_counts_the_systems_that_differ_and_names_them():
    several = [line("a", 0.5, 90.0), line("b", 0.2, 90.0, 91.0), line("c", -0.1, 89.0)]
    none = "Of 3 systems with trees, none differs significantly from the plain model."
    assert verdict("with trees", several) == none
    several[1] = line("b", 3.0, 93.0, 93.5, p=0.001)
    better = "1 is significantly better than the plain model (`b` +3.00)"
    assert verdict("with trees", several) == f"Of 3 systems with trees, {better}."
    worse = line("d", -3.0, 87.0, p=0.001)
    assert verdict("without trees", [several[0], worse]) == (
        "Of 2 systems without trees, none is significantly better than the plain model, and 1 is worse (`d` −3.00)."
    )
    assert verdict("without trees", [worse]) == "Without trees, `d` is significantly worse (−3.00)."
    assert verdict("without trees", several[:1]) == (
        "Without trees, `a` does not differ significantly from the plain model."
    )
    assert verdict("with trees", [*several, worse]) == f"Of 4 systems with trees, {better}, and 1 is worse (`d` −3.00)."


LABELS = {"words": ["8"] * 10 + ["10"] * 20 + ["12"] * 10, "part": ["first"] * 30 + ["other"] * 10}


def make_result(system, seed, quality):
    """Invent a result: sentences of ten words, each with `quality` of them right, and half as many in `hard`."""
    lstm = "lstm" in system
    return {
        "system": system,
        "seed": seed,
        "fingerprint": "x",
        **({"device": "GPU 1"} if (system, seed) == ("relative", 2) else {}),
        "architecture": "lstm" if lstm else "transformer",
        "weights": 1500 if system == "relative" else 1000,
        "steps": 20 if lstm else 10,
        "validation": [[5, 3.0], [10, 2.0 - quality]],
        "training": {"seconds": 9.0, "processor_seconds": 9.0, "tokens": 99, "joules": None, "memory": 1},
        "parsing": {},
        "tests": {"test": make_test(seed, quality)},
    }


def make_test(seed, quality):
    random = np.random.default_rng([seed, round(100 * quality)])
    right = random.binomial(10, quality, 40)
    counts = [np.maximum(right - n, 0) for n in range(4)]
    lengths = [np.full(40, 10 - n) for n in range(4)]
    statistics = np.stack([np.full(40, 10), np.full(40, 10), *counts, *lengths], 1)
    return {
        "scores": {"bleu": {"score": 1.0, "signature": "nrefs:1"}},
        "cost": {"sentences": 40, "seconds": 2.0, "processor_seconds": 2.0},
        "statistics": packed(statistics),
        "exact": packed((right == 10)[:, None]),
    }


@pytest.fixture
def root(tmp_path):
    """Make a folder with pages and with the results of two systems, a control and a mixture."""
    (tmp_path / "results/multi30k").mkdir(parents=True)
    (tmp_path / "docs/systems").mkdir(parents=True)
    (tmp_path / "README.md").write_text(f"Shown.\n\n{BEGIN}\n{END}\n\nMore.\n")
    (tmp_path / "docs/results.md").write_text(f"# Results\n\nBefore.\n\n{BEGIN}\n{END}\n\n## Speed\n\nFast.\n")
    (tmp_path / "docs/results-by-group.md").write_text(f"# Groups\n\n{BEGIN}\n{END}\n")
    (tmp_path / "docs/systems/pascal.md").write_text(
        "# PASCAL\n\n## What we measured\n\nMuch.\n\n## Look inside\n\nHere.\n"
    )
    plan = "corpus: multi30k\ntitle: Captions\ntest: test\nseeds: [1, 2]\nbaselines: {transformer: plain}\nsystems:\n"
    plan += "  plain: multi30k-tiny\n  pascal: multi30k-pascal\n  'pascal, random trees': multi30k-pascal-random\n"
    plan += "  relative: multi30k-relative\n"
    plan += "search: {relative + pascal: multi30k-pascal}\n"
    plan += "groups: [{test: test, by: words, metric: exact, without: {part: other}}]\n"
    (tmp_path / "results/multi30k.yaml").write_text(plan)
    of_plan = {"plain": 0.7, "pascal": 0.9, "pascal, random trees": 0.7, "relative": 0.95}
    for system, quality in {**of_plan, "relative + pascal": 0.96}.items():
        for seed in (1, 2):
            path = tmp_path / f"results/multi30k/{file_name(system)}-seed{seed}.json"
            path.write_text(json.dumps(make_result(system, seed, quality)))
    (tmp_path / "results/multi30k/labels.json").write_text(json.dumps({"test": LABELS}))
    return tmp_path


def write_pages(root):
    command = [sys.executable, str(ROOT / "benchmarks/results_page.py"), "--root", str(root)]
    subprocess.run(command, check=True, cwd=ROOT)
    pages = [root / "README.md", *(root / "docs").rglob("*")]
    return {path.name: path.read_bytes() for path in pages if path.is_file()}


@pytest.mark.journey
def test_pages_say_what_the_results_say_and_are_the_same_each_time(root):
    pytest.importorskip("matplotlib")
    first = write_pages(root)
    results = first["results.md"].decode()
    assert results.startswith("# Results\n")
    assert "Before." in results
    assert results.rstrip().endswith("Fast.")
    which = "*Captions*: 2 seeds; typically, a difference is significant from "
    assert f"- **Which systems help?** {which}" in results
    assert " With a parser's trees, `pascal` is significantly better (+" in results
    assert " Without trees, `relative` is significantly better (+" in results
    assert " The best with a parser's trees is `pascal`; the best without trees, `relative`, has " in results
    assert " The mixture `relative + pascal` is significantly better (+" in results
    assert "); `relative` alone gains +" in results
    assert "On average over 1 system, the parser's trees are significantly better than `random` ones: +" in results
    single = "Single systems that differ significantly from the same model with random trees: `pascal` +"
    assert f" with the others. {single}" in results
    assert ". [Tables](#captions-the-parsers-trees-against-others)." in results
    assert "\n\n### Captions: the parser's trees against others\n\nAverage gain in BLEU" in results
    assert "\n| random | pascal | **+" in results
    assert "\n| pascal | 2, 2 |" in results
    assert "The best of 1 mixture is `relative + pascal` +" in results
    groups = "Captions*: By words, significant gains are in `10` (`relative + pascal` +"
    assert f"- **Where?** *{groups}" in results
    cost = "`relative + pascal` adds 0.0 % to the weights, `relative` adds 50.0 % to the weights, `pascal` adds"
    assert f"(#what-a-variant-costs-in-training)?** *Captions*: {cost}" in results
    assert "| pascal | parser | 2 |" in results
    assert "\nTrained on a GPU (GPU 1): 1 of the 10 runs. There, a seed gives other dropout.\n" in results
    assert "\n[Scores by words](results-by-group.md).\n" in results
    title = "## Captions\n\nExact match in percent by words, without the part `other`:\n\n| system | 10 | 8 |\n"
    assert title in first["results-by-group.md"].decode()
    short = first["README.md"].decode().splitlines()
    assert short[:5] == ["Shown.", "", BEGIN, "", short[4]]
    assert short[4].startswith(f"- *{which.replace('Captions*', 'Captions**')}")
    assert " Without trees, `relative` is significantly better (+" in short[4]
    assert short[4].endswith(" with the others.")
    assert short[5:] == ["", END, "", "More."]
    page = first["pascal.md"].decode()
    assert page.startswith(f"# PASCAL\n\n## What we measured\n\nMuch.\n\n{BEGIN}\n")
    assert page.endswith(f"{END}\n\n## Look inside\n\nHere.\n")
    assert "| plain | 2 |" in page
    assert "does-syntax-help.png" in first
    assert write_pages(root) == first
    for path in (root / "results/multi30k").glob("*pascal*"):
        path.unlink()
    page = write_pages(root)["pascal.md"].decode()
    assert page == f"# PASCAL\n\n## What we measured\n\nMuch.\n\n{BEGIN}\n\n{END}\n\n## Look inside\n\nHere.\n"


def test_systems_are_compared_with_each_other_as_their_means_say(root):
    found = Results(Plan.load(root / "results/multi30k.yaml"))
    lines = {line.system: line for line in found.bleu["test"]}
    for first, second in (("relative + pascal", "relative"), ("pascal", "pascal, random trees"), ("pascal", "plain")):
        contrast = found.contrast("test", {first: 1, second: -1})
        assert contrast.value == pytest.approx(lines[first].mean - lines[second].mean)
        assert contrast.low < contrast.value < contrast.high
    own = lines["pascal"].difference
    assert (own.value, own.error) == (contrast.value, contrast.error)
    [(system, gain)] = found.of_random_trees("test").items()
    assert (system, gain.p) == ("pascal", gain.unadjusted_p())
    assert found.of_other_trees("test")["random"] == gain


@pytest.mark.parametrize(
    ("kept", "begins"),
    [
        (r"plain-seed\d", ""),
        (r".*-seed1", "- **Which systems help?** *Captions*: One seed each so far, so differences may be the luck of"),
        (r"(pascal|relative).*", ""),
    ],
    ids=["plain alone", "one seed", "no plain system"],
)
def test_the_answer_says_nothing_that_is_not_known(root, kept, begins):
    for path in (root / "results/multi30k").glob("*-seed*.json"):
        if not re.fullmatch(kept, path.stem):
            path.unlink()
    found = Results(Plan.load(root / "results/multi30k.yaml"))
    said = "".join(answer([(found, found.bleu["test"])]))
    assert said.startswith(begins)
    assert bool(said) == bool(begins)


def test_the_answer_compares_architectures_on_hard_sentences(root):
    path = root / "results/multi30k.yaml"
    plan = path.read_text().replace("{transformer: plain}", "{transformer: plain, lstm: lstm}")
    path.write_text(plan.replace("search:", "  lstm: multi30k-lstm\n  gcn-lstm: multi30k-gcn-lstm\nsearch:"))
    of_test = {"plain": 0.7, "lstm": 0.72, "gcn-lstm": 0.74}
    for system, seed in itertools.product(of_test, (1, 2)):
        result = make_result(system, seed, of_test[system])
        result["tests"]["hard"] = make_test(seed, 0.3 if system == "plain" else 0.5)
        (path.with_suffix("") / f"{file_name(system)}-seed{seed}.json").write_text(json.dumps(result))
    for other in path.with_suffix("").glob("[pr][ae]*"):
        other.unlink()
    found = Results(Plan.load(path))
    lines, hard = found.bleu["test"], {line.system: line.mean for line in found.bleu["hard"]}
    [where] = [one for one in answer([(found, lines)]) if one.startswith("- **Where?**")]
    own = {line.system: line.mean for line in lines}
    falls = [f"`{one}` has {hard[one]:.1f} instead of {own[one]:.1f}" for one in ("plain", "lstm")]
    assert (
        f"*Captions*: On `hard`, {', '.join(falls)}. There, `lstm` has {hard['lstm'] - hard['plain']:.2f} BLEU" in where
    )
    assert "than `plain`, after 20 steps instead of 10." in where
    assert "On `hard`: with a parser's trees, `gcn-lstm` does not differ significantly from the plain model." in where


def test_many_systems_with_random_trees_have_a_variance_of_their_own(root, monkeypatch):
    def alike():
        return Results(Plan.load(root / "results/multi30k.yaml")).design.alike["pascal, random trees"]

    # one such system with two seeds
    assert alike() == "transformer"
    monkeypatch.setattr("results_found._MANY", 1)
    assert alike() == "transformer, random trees"


def test_only_systems_that_someone_would_use_are_tested(root):
    path = root / "results/multi30k.yaml"
    more = "  'plain, bf16': {recipe: multi30k-tiny, set: {training.precision: bf16}}\n"
    more += "  tree-attention: multi30k-tree-attention\n  modern: {recipe: multi30k-modern-base, baseline: relative}\n"
    path.write_text(path.read_text().replace("search:", f"{more}search:"))
    for system, seed in itertools.product(("plain, bf16", "tree-attention", "modern"), (1, 2)):
        result = path.with_suffix("") / f"{file_name(system)}-seed{seed}.json"
        result.write_text(json.dumps(make_result(system, seed, 0.8)))
    found = Results(Plan.load(path))
    lines = found.bleu["test"]
    assert {line.system: (found.kind(line.system), found.baseline(line.system)) for line in lines} == {
        "plain": ("none", "plain"),
        "pascal": ("parser", "plain"),
        "relative": ("none", "plain"),
        "modern": ("none", "relative"),
        "tree-attention": ("induced", "plain"),
        "pascal, random trees": ("control", "plain"),
        "plain, bf16": ("repeat", "plain"),
        "relative + pascal": ("mixture", "plain"),
    }
    untested = {line.system for line in lines if line.difference and line.difference.p is None}
    assert untested == {"pascal, random trees", "plain, bf16"}


def test_systems_that_still_learned_when_training_ended_are_named(root):
    plan = Plan.load(root / "results/multi30k.yaml")

    def sentences(last):
        for path in plan.folder.glob("*-seed*.json"):
            losses = [3.0, 2.0, last if path.name == "pascal-seed2.json" else 1.5]
            stored = {**json.loads(path.read_text()), "validation": list(enumerate(losses))}
            path.write_text(json.dumps(stored))
        found = Results(plan)
        return list(_unfinished(found, found.bleu["test"]))

    assert sentences(1.1) == []
    [sentence] = sentences(0.9)
    assert "the loss still fell for `pascal` by 55 % (the seed in which it fell most)" in sentence


@pytest.mark.parametrize(
    ("averages", "sentences"),
    [
        ({}, []),
        (
            {"random": (1.5, 0.001), "left": (-0.5, 0.3), "gold": (-0.25, 0.9)},
            [
                "On average over 2 systems, the parser's trees are significantly better than `random` ones: +1.50 "
                "(+0.46 to +2.54).",
                "Compared with the plain model, these systems have +2.00 (+0.96 to +3.04) with the parser's trees and "
                "−1.00 (−2.04 to +0.04) with the others.",
                "In the same models, the parser's trees do not differ significantly from other trees: left −0.50, "
                "gold −0.25.",
            ],
        ),
        (
            {"random": (0.5, 0.3)},
            ["In the same models, the parser's trees do not differ significantly from other trees: random +0.50."],
        ),
    ],
)
def test_the_answer_compares_the_parsers_trees_with_all_others(averages, sentences):
    results = SimpleNamespace(
        plan=SimpleNamespace(test="test"),
        of_other_trees=lambda test: {name: Difference(value, 0.5, 20.0, p) for name, (value, p) in averages.items()},
        from_plain=lambda test, systems: Difference({"a": 2.0, "a*": -1.0}[systems[0]], 0.5, 20.0),
        other_trees={trees: {"a": "a*", "b": "b*"} for trees in averages},
    )
    assert list(_on_average(results)) == sentences


def test_systems_that_vary_far_more_than_others_are_named():
    steady, wild = Line("plain", [90.0, 91.0], None), Line("sa", [90.0, 40.0], None, unstable=True)
    assert list(_unstable([steady])) == []
    [sentence] = _unstable([steady, wild])
    assert sentence.endswith("from seed to seed than others, and are not tested: `sa` (90.0, 40.0) BLEU.")


@pytest.fixture
def tiny_plan(tmp_path, monkeypatch):
    """Write the plan of a plain system and of one that reads gold trees, on a tiny corpus."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SYNMT_CACHE", str(tmp_path / "cache"))
    text = write_corpus(tmp_path / "text")
    short = {**TRAINING, "max_steps": 3, "validate_every": 3, "validation_beam_size": 0}
    decoding = {"beam_size": 1, "max_length_ratio": 0.1, "max_length_extra": 4}
    evaluation = {"metrics": ["bleu"]}
    write_recipe(tmp_path / "base.yaml", text, training=short, decoding=decoding, evaluation=evaluation, syntax={})
    write_recipe(tmp_path / "trees.yaml", text, training=short, decoding=decoding, evaluation=evaluation)
    plan = "corpus: tiny\ntitle: Tiny\ntest: test\nseeds: [1]\nbaselines: {transformer: plain}\nsystems:\n"
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
    assert out.startswith("tiny-plain-seed1: test ")
    stored = json.loads((tiny_plan / "tiny/plain-seed1.json").read_text())
    scores = json.loads((tiny_plan / "runs/results/tiny-plain-seed1/tests/test/scores.json").read_text())
    assert stored["tests"]["test"]["scores"]["bleu"]["score"] == pytest.approx(scores["bleu"]["score"], abs=1e-4)
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
    assert "tiny-reads-trees-seed1 failed: " in out
    trees.with_suffix(".away").rename(trees)
    assert run()[0] == 0
    assert run() == (0, "")
    with pytest.raises(SystemExit, match="belongs to another recipe"):
        run("training.max_steps=4")


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
        for prepared in pool.map(lambda data: list(results._prepared(missing, data)), [tiny_plan / "data"] * 2):
            assert prepared == missing
    assert met == [False] * 4


def test_a_system_that_a_plan_lacks_is_an_error(tiny_plan, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["results.py", "tiny.yaml", "--systems", "plain", "parser.control=gold"])
    with pytest.raises(SystemExit, match=r"no system `parser\.control=gold`; write changes before --systems"):
        results.main()
    monkeypatch.setattr(sys, "argv", ["results.py", "tiny.yaml", "--systems", "plan"])
    with pytest.raises(SystemExit, match=r"tiny\.yaml has no system `plan`$"):
        results.main()


def test_the_figure_tells_kinds_of_trees_and_chance_apart_without_colours(root, tmp_path, monkeypatch):
    import results_figure

    monkeypatch.setattr(results_figure.Figure, "savefig", lambda figure, *_, **__: drawn.append(figure))
    drawn: list = []
    found = Results(Plan.load(root / "results/multi30k.yaml"))
    results_figure.draw([(found, found.bleu["test"])], tmp_path / "figure.png")
    [legend] = drawn[0].legends
    names = [text.get_text() for text in legend.get_texts()]
    assert names[:2] == ["with a parser's trees", "without trees"]
    kinds = [mark.get_marker() for mark, name in zip(legend.legend_handles, names, strict=True) if "chance" not in name]
    assert len(set(kinds)) == len(kinds)
    assert names[-1] == "may be chance, or not tested"


def test_a_difference_far_from_all_others_is_written_at_the_edge(root, tmp_path, monkeypatch):
    import results_figure

    monkeypatch.setattr(results_figure.Figure, "savefig", lambda figure, *_, **__: drawn.append(figure))
    drawn: list = []
    found = Results(Plan.load(root / "results/multi30k.yaml"))
    plain, *others = found.bleu["test"]
    near = [replace(line, difference=Difference(n / 2, 0.5, 20.0, 0.5)) for n, line in enumerate(others)]
    far = replace(others[0], difference=Difference(-47.0, 1.0, 20.0, 0.0))
    failed = replace(far, difference=Difference(-40.0, 30.0, 20.0), scores=[90.0, 10.0], unstable=True)
    results_figure.draw([(found, [plain, far, failed, *near[1:], *near[1:], *near[1:]])], tmp_path / "figure.png")
    panel = drawn[0].axes[0]
    written = ["−47.00 (−49.09 to −44.91)", "−40.00 (seeds: 90.0, 10.0 BLEU)"]
    assert [text.get_text() for text in panel.texts] == written
    low, high = panel.get_xlim()
    assert -5 < low < high < 5
