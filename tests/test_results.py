"""The comparison of all systems: its plans, its answer, and pages that stay the same."""

from __future__ import annotations

import itertools
import json
import os
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
import torch
from tiny import TRAINING, write_corpus, write_recipe

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "benchmarks"))

import results_page  # noqa: E402
import results_times  # noqa: E402
from results_answer import _best_of_all, _on_average, _verdicts, in_detail  # noqa: E402
from results_found import Results  # noqa: E402
from results_measure import packed, unpacked  # noqa: E402
from results_notes import (  # noqa: E402
    _decided_later,
    _gain_of_gpus,
    _other_baselines,
    _unfinished,
    _unstable,
    _varied_most,
)
from results_page import BEGIN, END  # noqa: E402
from results_phrases import verdict, verdicts  # noqa: E402
from results_plan import Plan, file_name  # noqa: E402
from results_recipes import trees_of  # noqa: E402
from results_short import _syntax, in_short, more_weights  # noqa: E402
from results_statistics import Difference, Line  # noqa: E402
from results_tables import contrast_tables, control_tables, main_table, mean_losses  # noqa: E402
from results_timing import times_as_long  # noqa: E402

import results  # noqa: E402
from synmt.errors import SynmtError, UsageError  # noqa: E402
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
        "corpus: mixed\ntitle: Mixed\ntest: test\nseeds: [1, 2]\nbaselines: {transformer: plain}\n"
        "systems: {plain: multi30k-tiny}\n"
        "search: {plain + a: multi30k-pascal, plain + b: multi30k-gcn}\n"
    )
    plan = Plan.load(path)

    def names():
        return [f"{run.system} {run.seed}" for run in plan.runs({})]

    assert names() == ["plain 1", "plain + a 1", "plain + b 1", "plain 2"]

    def store(system, validation):
        stored = {"system": system, "seed": 1, "fingerprint": "x", "tests": {}, "validation": validation}
        plan.result(system, 1).write_text(json.dumps(stored))

    store("plain + a", [[5, 3.0], [10, 2.5]])
    assert plan.found() is None, "the other one may be better"
    store("plain + b", [[5, 2.4], [10, 2.6]])
    assert plan.tried() == {"plain + a": 2.5, "plain + b": 2.4}
    assert names() == ["plain 1", "plain + a 1", "plain + b 1", "plain 2", "plain + b 2"]
    assert plan.parts() == {}
    store("plain", [[10, 2.7]])
    assert plan.parts() == {"plain": 2.7}


def test_packed_arrays_are_read_as_they_were():
    values = np.random.default_rng(1).integers(0, 60_000, (7, 3))
    stored = json.loads(json.dumps(packed(values)))
    assert (unpacked(stored) == values).all()


def test_the_answer_says_more_or_fewer_weights():
    assert more_weights(1012, 1000) == "1.2 % more weights"
    assert more_weights(1000, 1000) == "as many weights"
    assert more_weights(990, 1000) == "1.0 % fewer weights"


def line(system, value, *scores, p=0.9):
    return Line(system, list(scores), Difference(value, 0.5, 20.0, p))


def test_the_answer_counts_the_systems_that_differ_and_names_them():
    several = [line("a", 0.5, 90.0), line("b", 0.2, 90.0, 91.0), line("c", -0.1, 89.0)]
    none = "Of 3 single systems with trees, none differs significantly from the plain model."
    assert verdict("with trees", several) == none
    several[1] = line("b", 3.0, 93.0, 93.5, p=0.001)
    better = "1 is significantly better than the plain model (`b` +3.00)"
    assert verdict("with trees", several) == f"Of 3 single systems with trees, {better}."
    worse = line("d", -3.0, 87.0, p=0.001)
    assert verdict("without trees", [several[0], worse]) == (
        "Of 2 single systems without trees, none is significantly better than the plain model, and 1 is worse (`d` "
        "−3.00)."
    )
    assert (
        verdict("without trees", [worse]) == "Without trees, `d` is significantly worse than the plain model (−3.00)."
    )
    assert verdict("without trees", several[:1]) == (
        "Without trees, `a` does not differ significantly from the plain model."
    )
    assert (
        verdict("with trees", [*several, worse])
        == f"Of 4 single systems with trees, {better}, and 1 is worse (`d` −3.00)."
    )


LABELS = {"words": ["8"] * 10 + ["10"] * 20 + ["12"] * 10, "part": ["first"] * 30 + ["other"] * 10}


def make_result(system, seed, quality):
    """Invent a result: sentences of ten words, each with `quality` of them right."""
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
    plan += "groups: [{test: test, by: words, metric: exact, without: {part: other}, meaning: {'8': short ones}}]\n"
    (tmp_path / "results/multi30k.yaml").write_text(plan)
    of_plan = {"plain": 0.7, "pascal": 0.9, "pascal, random trees": 0.7, "relative": 0.95}
    planned = Plan.load(tmp_path / "results/multi30k.yaml").runs({})
    fingerprints = {run.system: run.fingerprint for run in planned}
    for system, quality in {**of_plan, "relative + pascal": 0.96}.items():
        for seed in (1, 2):
            path = tmp_path / f"results/multi30k/{file_name(system)}-seed{seed}.json"
            stored = {**make_result(system, seed, quality), "fingerprint": fingerprints[system]}
            path.write_text(json.dumps(stored))
    (tmp_path / "results/multi30k/labels.json").write_text(json.dumps({"test": LABELS}))
    return tmp_path


def write_pages(root):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["results_page.py", "--root", str(root)])
        results_page.main()
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
    assert "\n\n### Captions: the answer in detail\n\n- **Which systems help?** Each system that is tested" in results
    assert " With a parser's trees, `pascal` is significantly better than the plain model (+" in results
    assert " Without trees, `relative` is significantly better than the plain model (+" in results
    assert (
        " The best single system with a parser's trees is `pascal`; the best one without trees, `relative`, has "
        in results
    )
    assert "). This interval does not know that both were chosen as the best." in results
    assert "In `pascal`, the parser's trees are significantly better than `random` ones: +" in results
    single = "Single systems that differ significantly from the same model with random trees: `pascal` +"
    assert f" with the others. {single}" in results
    assert ". [Tables](#captions-the-parsers-trees-against-others)." in results
    assert "\n\n### Captions: the parser's trees against others\n\nAverage gain in BLEU" in results
    assert "\n| random | pascal | **+" in results
    assert "\n| pascal | 2, 2 |" in results
    mixture = "`relative + pascal` is significantly better than the plain model (+"
    assert f"- **Does a mixture help more?** {mixture}" in results
    assert "). Its validation loss was the lowest of 1 mixture. Its difference from `relative` alone is " in results
    assert "- **Where?** By words, significant gains are in `8` (`relative` +" in results
    assert "| pascal | parser | 2 |" in results
    assert (
        "\nTrained on a GPU (GPU 1): 1 of the 10 runs. There, a seed gives other dropout. Allowing for system"
        in results
    )
    assert "\n[Scores by words](results-by-group.md).\n" in results
    title = "## Captions\n\nExact match in percent by words, without the part `other`:\n\n| system | 8 | 10 |\n"
    assert title in first["results-by-group.md"].decode()
    short = first["README.md"].decode()
    before, answer, after = re.split(f"{BEGIN}\n\n|\n\n{END}", short)
    assert (before, after) == ("Shown.\n\n", "\n\nMore.\n")
    assert results.startswith(f"# Results\n\nBefore.\n\n{BEGIN}\n\n{answer}\n\n## Captions: all systems\n")
    page = first["pascal.md"].decode()
    assert page.startswith(f"# PASCAL\n\n## What we measured\n\nMuch.\n\n{BEGIN}\n")
    assert page.endswith(f"{END}\n\n## Look inside\n\nHere.\n")
    assert "| plain | 2 |" in page
    assert "does-syntax-help.png" in first
    # in another process, sets have another order
    command = [sys.executable, str(ROOT / "benchmarks/results_page.py"), "--root", str(root)]
    subprocess.run(command, check=True, cwd=ROOT)
    assert {path.name: path.read_bytes() for path in root.rglob("*") if path.name in first} == first
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
        (
            r".*-seed1",
            "- **Which systems help?** *Captions*: each system has one seed so far, which shows nothing for certain.",
        ),
        (r"(pascal|relative).*", ""),
    ],
    ids=["plain alone", "one seed", "no plain system"],
)
def test_the_answer_says_nothing_that_is_not_known(root, kept, begins):
    for path in (root / "results/multi30k").glob("*-seed*.json"):
        if not re.fullmatch(kept, path.stem):
            path.unlink()
    found = Results(Plan.load(root / "results/multi30k.yaml"))
    lines = found.bleu["test"]
    said = "".join(in_short([(found, lines)]))
    assert said.startswith(begins)
    assert bool(said) == bool("".join(in_detail(found, lines))) == bool(begins)


def test_the_short_answer_has_a_line_for_each_question(root):
    found = Results(Plan.load(root / "results/multi30k.yaml"))
    lines = {line.system: line for line in found.of_plan}
    gains = {system: f"{one.difference.value:+.2f}" for system, one in lines.items() if one.difference}
    wrong, mixed, best = (
        found.contrast("test", {first: 1, second: -1})
        for first, second in (
            ("pascal", "pascal, random trees"),
            ("relative + pascal", "relative"),
            ("relative", "pascal"),
        )
    )
    assert [line.replace("−", "-") for line in in_short([(found, found.of_plan)])] == [
        "- **Which systems help?** *Captions*: 2 of 2 single systems are significantly better than a plain model: "
        f"`relative` {gains['relative']} without trees, and `pascal` {gains['pascal']} with a parser's trees.",
        "- **Are trees better than none?** *Captions*: `pascal`, the best system with a parser's trees, has "
        f"{best.value:.2f} BLEU less ({-best.high:+.2f} to {-best.low:+.2f}) than `relative`, the best one without, "
        "which may be chance.",
        f"- **Is it the syntax?** *Captions*: `pascal` has {wrong.value:.2f} BLEU more with the parser's trees than "
        f"with random ones ({wrong.low:+.2f} to {wrong.high:+.2f}).",
        "- **Where?** *Captions*: by words, gains are significant in `8` (short ones): `relative` +60.00 "
        "and `relative + pascal` +50.00; `10`: `relative + pascal` +75.00, `relative` +55.00 and `pascal` +35.00 "
        "percentage points.",
        "- **Does a mixture help more?** *Captions*: `relative + pascal`, the only one that was tried, is "
        f"significantly better than the plain model ({gains['relative + pascal']}); it has {mixed.value:.2f} BLEU more "
        f"({mixed.low:+.2f} to "
        f"{mixed.high:+.2f}) than `relative` alone, which may be chance.",
        "- **At what cost?** *Captions*: `relative + pascal`: as many weights, every text has to be parsed; "
        "`relative`: 50.0 % more weights; `pascal`: as many weights, every text has to be parsed.",
    ]


def test_the_short_answer_says_if_nothing_helps_and_what_chance_explains(root):
    for path in (root / "results/multi30k").glob("*-seed*.json"):
        stored = json.loads(path.read_text())
        stored["tests"]["test"] = make_test(stored["seed"], 0.7)
        path.write_text(json.dumps(stored))
    found = Results(Plan.load(root / "results/multi30k.yaml"))
    which, trees, syntax, mixture = in_short([(found, found.of_plan)])
    assert which.endswith(" none of 2 single systems is significantly better than a plain model.")
    # the same score as `relative`
    assert trees.endswith(" than `plain`, the best one without, which may be chance.")
    assert syntax.endswith("), which may be chance.")
    assert "tried, does not differ significantly from the plain model; it has" in mixture
    assert mixture.endswith(" than `relative` alone, which may be chance.")
    # without another system that has no trees, the plain model is the only one
    for path in (root / "results/multi30k").glob("relative-seed*.json"):
        path.unlink()
    found = Results(Plan.load(root / "results/multi30k.yaml"))
    assert list(in_short([(found, found.of_plan)]))[1].endswith(
        " than `plain`, the only one without, which may be chance."
    )


@pytest.mark.parametrize(
    ("averages", "said"),
    [
        (
            {"random": (1.5, 0.001), "left": (-0.5, 0.3), "gold": (-0.25, 0.9)},
            [
                "2 systems have on average 1.50 BLEU more with the parser's trees than with random ones (+0.46 to "
                "+2.54; +0.75 without the 1 chosen by score).",
                "Between the parser's trees and left and gold ones (1 to 2 models each), all differences may be "
                "chance.",
            ],
        ),
        (
            {"random": (-1.5, 0.001), "left": (2.0, 0.001), "gold": (-0.25, 0.9)},
            [
                "2 systems have on average 1.50 BLEU less with the parser's trees than with random ones (−2.54 to "
                "−0.46; +0.75 without the 1 chosen by score).",
                "2 systems have on average 2.00 BLEU more with the parser's trees than with left ones (+0.96 to "
                "+3.04).",
                "`a` has 0.25 BLEU less with the parser's trees than with gold ones (−1.29 to +0.79), which may be "
                "chance.",
            ],
        ),
        ({}, []),
    ],
)
def test_the_short_answer_compares_the_parsers_trees_with_all_others(averages, said):
    results = SimpleNamespace(
        plan=SimpleNamespace(test="test"),
        of_other_trees=lambda test: {name: Difference(value, 0.5, 20.0, p) for name, (value, p) in averages.items()},
        other_trees={trees: {"a": "a*"} if trees == "gold" else {"a": "a*", "b": "b*"} for trees in averages},
        without_chosen=lambda trees: [{"a": "a*"}] if trees == "random" else [],
        average=lambda test, pairs: Difference(0.75, 0.5, 20.0),
    )
    assert list(_syntax(results, [])) == said


def test_without_seeds_the_answers_give_no_intervals(root):
    """Transformers have one seed, and LSTMs two."""
    path = root / "results/multi30k.yaml"
    plan = path.read_text().replace("{transformer: plain}", "{transformer: plain, lstm: lstm}")
    path.write_text(plan.replace("search:", "  lstm: multi30k-lstm\n  gcn-lstm: multi30k-gcn-lstm\nsearch:"))
    for result in path.with_suffix("").glob("*-seed2.json"):
        result.unlink()
    transformers = Results(Plan.load(path))
    assert transformers.tested(transformers.of_plan, "mixture")
    assert transformers.gain_of_mixture("test", "relative + pascal") is None
    for system, seed in itertools.product(("lstm", "gcn-lstm"), (1, 2)):
        result = path.with_suffix("") / f"{system}-seed{seed}.json"
        result.write_text(json.dumps(make_result(system, seed, 0.8)))
    for result in path.with_suffix("").glob("*-seed*.json"):
        stored = json.loads(result.read_text())
        stored["tests"]["hard"] = make_test(stored["seed"], 0.3)
        result.write_text(json.dumps(stored))
    found = Results(Plan.load(path))
    said = [*in_short([(found, found.of_plan)]), *in_detail(found, found.of_plan)]
    assert not any("`relative`" in one and " to " in one for one in said)
    assert any("On `hard`, `plain` has" in one for one in said)
    assert not any("There, `lstm` has" in one for one in said)
    *_, legend = main_table(found, found.of_plan)
    assert " Where no system of an architecture has two seeds, they cover the sentences only, and nothing is " in legend


def test_a_mixture_is_not_compared_with_a_system_that_fails_with_some_seeds(root):
    path = root / "results/multi30k/relative-seed2.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "tests": {"test": make_test(2, 0.1)}}))
    found = Results(Plan.load(root / "results/multi30k.yaml"))
    assert found.design.unstable == {"relative"}
    assert found.gain_of_mixture("test", "relative + pascal") is None
    assert not any("relative` alone" in one for one in in_short([(found, found.of_plan)]))


def test_a_mixture_may_begin_with_a_baseline(root):
    path = root / "results/multi30k.yaml"
    path.write_text(path.read_text().replace("search: {relative + pascal", "search: {plain + pascal"))
    for seed in (1, 2):
        result = make_result("plain + pascal", seed, 0.96)
        (path.with_suffix("") / f"plain-pascal-seed{seed}.json").write_text(json.dumps(result))
    found = Results(Plan.load(path))
    assert any("than `plain` alone" in one for one in in_short([(found, found.of_plan)]))
    assert any("Its difference from `plain` alone is" in one for one in in_detail(found, found.of_plan))


def write_times(root, system="pascal", **changed):
    plan = Plan.load(root / "results/multi30k.yaml")
    prints = {run.system: run.fingerprint for run in plan.runs({})}
    seconds = {"seconds": [3.0, 1.0, 2.0, 2.0, 3.0, 1.0], "of_baseline": [2.0, 1.0, 1.0, 2.0, 1.0, 1.0]}
    measured = {system: {"recipe": prints[system], "baseline": prints["plain"], **seconds, **changed}}
    stored = {"machine": "a CPU", "threads": 1, "precision": "float32", "systems": measured}
    (plan.folder / "times.json").write_text(json.dumps(stored))
    return Results(plan)


def test_the_time_of_a_step_is_in_the_table_and_among_the_costs(root):
    untimed = Results(Plan.load(root / "results/multi30k.yaml"))
    assert "time of a step" not in "".join(main_table(untimed, untimed.of_plan))
    found = write_times(root)
    heading, _, *rows = main_table(found, found.of_plan)
    place = heading.split(" | ").index("time of a step")
    cells = {row.split(" | ")[0]: row.split(" | ")[place] for row in rows if row.startswith("| ")}
    # 12 seconds instead of 8
    assert cells["| pascal"].startswith("1.50 (1.")
    assert cells["| plain"] == ""
    how = "interleaved, processor time, 1 thread of a CPU, float32"
    assert f" Time of a step: of the training, relative to the baseline, with the 95 % interval ({how})." in rows[-1]
    *_, cost = in_short([(found, found.of_plan)])
    assert "`pascal`: a training step takes 1.50 times as long, as many weights, every text" in cost
    # what was measured of another recipe, or next to another baseline
    assert write_times(root, recipe="other").times.of_system == {}
    path = root / "results/multi30k.yaml"
    write_times(root)
    path.write_text(
        path.read_text().replace("pascal: multi30k-pascal\n", "pascal: {recipe: multi30k-pascal, baseline: relative}\n")
    )
    assert Results(Plan.load(path)).times.of_system == {}


def test_the_times_of_a_gpu_are_not_those_of_threads(root):
    write_times(root)
    path = root / "results/multi30k/times.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "threads": None, "machine": "GPU 1"}))
    found = Results(Plan.load(root / "results/multi30k.yaml"))
    assert found.times.how() == "interleaved, GPU 1, float32"


def test_the_interval_of_a_time_contains_the_true_one_as_often_as_it_says():
    """Steps of very different lengths, with noise of 20 %: 95 % of the intervals, a few fewer because steps are few."""
    random = np.random.default_rng(5)
    inside = 0
    for _ in range(300):
        length = random.gamma(4, size=30)
        own, other = (factor * length * random.lognormal(0, 0.2, 30) for factor in (1.3, 1.0))
        found = times_as_long({"seconds": own, "of_baseline": other})
        inside += found.low < 1.3 < found.high
    assert 0.89 < inside / 300 < 0.98


@pytest.mark.parametrize(
    "changed", [{"seconds": []}, {"seconds": 3}, {"seconds": "abc"}, {"of_baseline": [0.0] * 6}, {"seconds": ["a"] * 6}]
)
def test_damaged_times_are_named(root, changed):
    with pytest.raises(SynmtError, match=r"times\.json: damaged\. Remove it, and measure again"):
        _ = write_times(root, **changed).times


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
    [where] = (line for line in in_detail(found, lines) if line.startswith("- **Where?**"))
    own = {line.system: line.mean for line in lines}
    falls = [f"`{one}` has {hard[one]:.1f} instead of {own[one]:.1f}" for one in ("plain", "lstm")]
    assert (
        f"- **Where?** On `hard`, {', '.join(falls)}. There, `lstm` has {hard['lstm'] - hard['plain']:.2f} BLEU"
        in where
    )
    assert "than `plain`, after 20 steps instead of 10." in where
    assert (
        "Systems on `hard`: With a parser's trees, `gcn-lstm` does not differ significantly from the plain model."
        in where
    )


def test_many_controls_have_a_variance_of_their_own(root, monkeypatch):
    def alike():
        return Results(Plan.load(root / "results/multi30k.yaml")).design.alike["pascal, random trees"]

    # one such system with two seeds
    assert alike() == "transformer"
    monkeypatch.setattr("results_found._MANY", 1)
    assert alike() == "transformer, controls"


def test_only_systems_that_someone_would_use_are_tested(root):
    path = root / "results/multi30k.yaml"
    more = "  'plain, bf16': {recipe: multi30k-tiny, set: {training.precision: bf16}}\n"
    more += "  tree-attention: multi30k-tree-attention\n  modern: {recipe: multi30k-modern-base, baseline: relative}\n"
    more += "  'ldd, bf16': {recipe: multi30k-ldd, set: {training.precision: bf16}, baseline: 'plain, bf16'}\n"
    path.write_text(path.read_text().replace("search:", f"{more}search:"))
    for system, seed in itertools.product(("plain, bf16", "ldd, bf16", "tree-attention", "modern"), (1, 2)):
        result = path.with_suffix("") / f"{file_name(system)}-seed{seed}.json"
        result.write_text(json.dumps(make_result(system, seed, 0.8)))
    found = Results(Plan.load(path))
    lines = found.bleu["test"]
    assert {line.system: (found.systems.kind(line.system), found.systems.baseline(line.system)) for line in lines} == {
        "plain": ("none", "plain"),
        "pascal": ("parser", "plain"),
        "relative": ("none", "plain"),
        "modern": ("none", "relative"),
        "tree-attention": ("induced", "plain"),
        "pascal, random trees": ("control", "plain"),
        "plain, bf16": ("repeat", "plain"),
        "ldd, bf16": ("parser", "plain, bf16"),
        "relative + pascal": ("mixture", "plain"),
    }
    assert [line.system for line in lines if not found.is_from_plain(line)] == ["modern"]
    # the mean over systems is a difference from the plain model, too, of the precision of each
    assert found.from_plain("test", ["ldd, bf16"]) == found.contrast("test", {"ldd, bf16": 1, "plain, bf16": -1})
    assert found.from_plain("test", ["modern"]) == found.contrast("test", {"modern": 1, "plain": -1})
    # a control, three systems, the mixture, and two more: a repeat would not be tested in any case
    assert set(found.compared_systems) == {line.system for line in lines} - {"plain", "plain, bf16"}
    untested = {line.system for line in lines if line.difference and line.difference.p is None}
    assert untested == {"pascal, random trees", "plain, bf16"}


def test_systems_that_still_learned_when_training_ended_are_named(root):
    plan = Plan.load(root / "results/multi30k.yaml")

    def sentences(last, last_of_pascal):
        for path in plan.folder.glob("*-seed*.json"):
            losses = [3.0, 2.0, last_of_pascal if path.name == "pascal-seed2.json" else last]
            stored = {**json.loads(path.read_text()), "validation": list(enumerate(losses))}
            path.write_text(json.dumps(stored))
        found = Results(plan)
        return list(_unfinished(found, found.of_plan))

    # the loss fell by a fourth, and was not lower than before
    [sentence] = sentences(1.5, 1.5)
    assert "the loss still fell: by 25 % for the median Transformer. So scores" in sentence
    assert sentences(2.0, 2.5) == []
    [sentence] = sentences(1.5, 0.9)
    # on average over two seeds: a fourth, and 55 %
    assert "by 25 % for the median Transformer (most for `pascal` 40 %)" in sentence


def test_losses_are_averaged_over_seeds_and_a_training_that_ended_keeps_its_last_one(root):
    plan = Plan.load(root / "results/multi30k.yaml")
    for seed, losses in ((1, [[5, 3.0], [10, 2.0], [15, 1.0]]), (2, [[5, 2.0], [10, 1.0]])):
        path = plan.result("pascal", seed)
        path.write_text(json.dumps({**json.loads(path.read_text()), "validation": losses}))
    assert mean_losses(Results(plan), "pascal") == [(5, 2.5), (10, 1.5), (15, 1.0)]
    assert mean_losses(Results(plan), "no result") == []


@pytest.mark.parametrize(
    ("averages", "sentences"),
    [
        ({}, []),
        (
            {"random": (1.5, 0.001), "left": (-0.5, 0.3), "gold": (-0.25, 0.9)},
            [
                "On average over 2 systems, the parser's trees are significantly better than `random` ones: +1.50 "
                "(+0.46 to +2.54).",
                "Of these, 1 was given random trees because of their scores; without them, it is +0.75 (−0.29 to "
                "+1.79).",
                "Compared with the plain model, these systems have +2.00 BLEU (+0.96 to +3.04) with the parser's trees "
                "and −1.00 (−2.04 to +0.04) with the others.",
                "The parser's trees do not differ significantly from other trees in the same models: left −0.50 "
                "(−1.54 to +0.54) and gold −0.25 (−1.29 to +0.79).",
                "None of the systems that gain significantly has been trained with these.",
            ],
        ),
        (
            {"random": (0.5, 0.3)},
            [
                "The parser's trees do not differ significantly from other trees in the same models: random +0.50 "
                "(−0.54 to +1.54).",
                "None of the systems that gain significantly has been trained with these.",
            ],
        ),
    ],
)
def test_the_answer_compares_the_parsers_trees_with_all_others(averages, sentences):
    results = SimpleNamespace(
        plan=SimpleNamespace(test="test"),
        of_other_trees=lambda test: {name: Difference(value, 0.5, 20.0, p) for name, (value, p) in averages.items()},
        from_plain=lambda test, systems: Difference({"a": 2.0, "a*": -1.0}[systems[0]], 0.5, 20.0),
        other_trees={trees: {"a": "a*", "b": "b*"} for trees in averages},
        without_chosen=lambda trees: [{"a": "a*"}],
        average=lambda test, pairs: Difference(0.75, 0.5, 20.0),
        tested=lambda lines, kind: lines,
    )
    assert list(_on_average(results, [line("c", 2.0, 92.0, p=0.001)])) == sentences
    # nothing is said of controls if one of their models helps
    helped = list(_on_average(results, [line("a", 2.0, 92.0, p=0.001)]))
    assert helped == [one for one in sentences if not one.startswith("None of")]


def test_a_system_with_a_baseline_of_its_own_is_not_compared_with_the_plain_model(root):
    path = root / "results/multi30k.yaml"
    own = "pascal: {recipe: multi30k-pascal, baseline: relative}"
    path.write_text(path.read_text().replace("pascal: multi30k-pascal\n", f"{own}\n"))
    found = Results(Plan.load(path))
    said = list(verdicts(found, found.of_plan))
    assert said[-1] == "`pascal` does not differ significantly from `relative`, with which it is compared."
    assert not any("pascal" in sentence for sentence in said[:-1])
    [note] = _other_baselines(found, found.of_plan)
    assert note == "Systems are compared with `plain`, but `pascal` with `relative`."


def test_what_was_decided_later_is_said_with_what_would_follow_otherwise(root):
    found = Results(Plan.load(root / "results/multi30k.yaml"))
    [sentence] = _decided_later(found, found.of_plan)
    # a control and three others
    assert "decided not to test controls. Otherwise (4 comparisons), the same systems" in sentence
    assert sentence.endswith("the same systems differ significantly.")
    [before] = (line for line in found.as_one["test"] if line.system == "pascal")
    doubtful = replace(before, difference=replace(before.difference, p=0.07))
    found.as_one["test"] = [doubtful if line is before else line for line in found.as_one["test"]]
    [sentence] = _decided_later(found, found.of_plan)
    assert sentence.endswith("(4 comparisons), `pascal` has p = 0.070.")


def test_scores_of_gpus_are_compared_with_those_of_the_same_system_and_seed(root):
    """Three systems with 40, 50 and 60 points, half a point more for seed 2, 1.5 more on a GPU, and no noise."""
    found = Results(Plan.load(root / "results/multi30k.yaml"))
    on_gpu = {("plain", 1), ("relative", 2)}
    lines = []
    for system, score in {"plain": 40.0, "pascal": 50.0, "relative": 60.0}.items():
        scores = [score + (seed - 1) / 2 + 1.5 * ((system, seed) in on_gpu) for seed in (1, 2)]
        for run in found.runs[system]:
            run["device"] = "GPU 1" if (system, run["seed"]) in on_gpu else "cpu"
        lines.append(Line(system, scores, None))
    assert _gain_of_gpus(found, lines).endswith(
        "these runs score +1.50 BLEU (+1.50 to +1.50); nothing is corrected for that."
    )
    # all on GPUs: nothing to compare with
    for runs in found.runs.values():
        for run in runs:
            run["device"] = "GPU 1"
    assert _gain_of_gpus(found, lines) == ""


def test_the_interval_of_what_a_gpu_adds_is_that_of_least_squares(root):
    """As Frisch and Waugh compute it: from what system and seed leave of the indicator and of the scores."""
    found = Results(Plan.load(root / "results/multi30k.yaml"))
    random = np.random.default_rng(3)
    on_gpu = [True, False, False, True, False, True]
    scores = random.normal(60, 2, 6)
    lines = [Line(one, list(scores[2 * n : 2 * n + 2]), None) for n, one in enumerate(("plain", "pascal", "relative"))]
    lines.append(Line("relative + pascal", [0.0, 99.0], None, unstable=True))
    for place, (system, run) in enumerate((line.system, run) for line in lines[:3] for run in found.runs[line.system]):
        found.runs[system][run["seed"] - 1]["device"] = "GPU 1" if on_gpu[place] else "cpu"
    others = np.array([np.repeat(np.eye(3)[n], 2) for n in range(3)] + [np.tile([0.0, 1.0], 3)]).T
    left = np.eye(6) - others @ np.linalg.pinv(others)
    gpu, rest = left @ np.array(on_gpu, dtype=float), left @ scores
    gain = gpu @ rest / (gpu @ gpu)
    error = np.sqrt(((rest - gain * gpu) ** 2).sum() / (6 - 5) / (gpu @ gpu))
    width = 12.7062 * error  # Student's t with one degree of freedom
    said = _gain_of_gpus(found, lines).replace("−", "-")
    assert f"score {gain:+.2f} BLEU ({gain - width:+.2f} to {gain + width:+.2f})" in said


def test_a_system_that_has_most_of_a_shared_variance_is_named(root):
    found = Results(Plan.load(root / "results/multi30k.yaml"))
    scores = {
        "plain": [90.0, 91.0],
        "pascal": [90.0, 90.5],
        "relative": [91.0, 91.2],
        "relative + pascal": [80.0, 90.0],
    }
    lines = [Line(system, own, None) for system, own in scores.items()]
    [sentence] = _varied_most(found, lines)
    assert (
        "`relative + pascal` alone (80.0, 90.0 BLEU) causes more than half of the variance that 4 systems" in sentence
    )
    assert list(_varied_most(found, [*lines[:3], Line("relative + pascal", [90.0, 91.0], None)])) == []


def test_the_best_system_of_all_is_named_if_it_has_another_architecture(root):
    path = root / "results/multi30k.yaml"
    plan = path.read_text().replace("{transformer: plain}", "{transformer: plain, lstm: lstm}")
    path.write_text(plan.replace("search:", "  lstm: multi30k-lstm\nsearch:"))
    for quality, said in ((0.98, True), (0.5, False)):
        for seed in (1, 2):
            result = make_result("lstm", seed, quality)
            (path.with_suffix("") / f"lstm-seed{seed}.json").write_text(json.dumps(result))
        found = Results(Plan.load(path))
        sentences = list(_best_of_all(found, found.of_plan))
        assert bool(sentences) == said
        assert not said or "`lstm` (" in sentences[0]
        assert not said or sentences[0].endswith("one of the LSTMs, which train for 20 steps instead of 10.")


def test_a_control_with_a_higher_score_than_the_best_system_is_named(root):
    path = root / "results/multi30k.yaml"
    plan = path.read_text().replace("{transformer: plain}", "{transformer: plain, lstm: lstm}")
    more = "  lstm: multi30k-lstm\n  gcn-lstm: multi30k-gcn-lstm\n"
    more += "  'gcn-lstm, random trees': {recipe: multi30k-gcn-lstm, set: {parser.control: random}}\n"
    path.write_text(plan.replace("search:", f"{more}search:"))
    for system, quality in {"lstm": 0.9, "gcn-lstm": 0.98, "gcn-lstm, random trees": 0.99}.items():
        for seed in (1, 2):
            result = make_result(system, seed, quality)
            (path.with_suffix("") / f"{file_name(system)}-seed{seed}.json").write_text(json.dumps(result))
    found = Results(Plan.load(path))
    [sentence] = _best_of_all(found, found.of_plan)
    assert sentence.startswith("The highest score without other trees is that of `gcn-lstm` (")
    assert "instead of 10; `gcn-lstm, random trees` has " in sentence
    # without results of its plain model, nothing is said of it, and nothing fails
    for seed in (1, 2):
        found.plan.result("lstm", seed).unlink()
    again = Results(found.plan)
    assert again.from_plain("test", ["gcn-lstm"]) is None
    assert "".join(in_detail(again, again.of_plan))


def test_an_architecture_with_one_seed_is_not_tested_beside_one_with_two(root):
    path = root / "results/multi30k.yaml"
    plan = path.read_text().replace("{transformer: plain}", "{transformer: plain, lstm: lstm}")
    path.write_text(plan.replace("search:", "  lstm: multi30k-lstm\n  gcn-lstm: multi30k-gcn-lstm\nsearch:"))
    for system, quality in {"lstm": 0.5, "gcn-lstm": 0.9}.items():
        result = make_result(system, 1, quality)
        (path.with_suffix("") / f"{file_name(system)}-seed1.json").write_text(json.dumps(result))
    found = Results(Plan.load(path))
    assert "gcn-lstm" not in {line.system for line in found.tested(found.of_plan)}
    said = list(_verdicts(found, found.of_plan))
    assert not any("lstm" in sentence.lower() for sentence in said)
    # which are planned, and count: pascal, relative, the mixture, gcn-lstm
    [pascal] = (line.difference for line in found.of_plan if line.system == "pascal")
    assert len(found.design.tested) == 4
    assert 0 < pascal.unadjusted_p() < pascal.p


def test_unstable_systems_are_counted_but_not_among_the_others(root):
    path = root / "results/multi30k.yaml"
    result = json.loads((path.with_suffix("") / "pascal-random-trees-seed2.json").read_text())
    result["tests"]["test"] = make_test(2, 0.1)
    (path.with_suffix("") / "pascal-random-trees-seed2.json").write_text(json.dumps(result))
    found = Results(Plan.load(path))
    assert found.design.unstable == {"pascal, random trees"}
    assert found.other_trees == {}
    assert "Not counted: 1 system that varies far more from seed to seed." in list(_verdicts(found, found.of_plan))


def test_controls_with_other_shares_of_changed_arcs_are_compared_apart(root):
    path = root / "results/multi30k.yaml"
    more = "".join(
        f"  'rewired {share} %': {{recipe: multi30k-pascal, set: {{parser.rewire: {share / 100}}}}}\n"
        for share in (25, 50)
    )
    path.write_text(path.read_text().replace("search:", f"{more}search:"))
    for share, seed in itertools.product((25, 50), (1, 2)):
        result = path.with_suffix("") / f"rewired-{share}-seed{seed}.json"
        result.write_text(json.dumps(make_result(f"rewired {share} %", seed, 0.6)))
    others = Results(Plan.load(path)).other_trees
    assert set(others) == {"random", "rewired 25 %", "rewired 50 %"}


def test_the_power_of_a_test_is_that_of_its_simulation():
    """A true difference of this size is significant, at the level of seven tests, four times in five."""
    difference = Difference(0.0, 0.8, 9.0)
    random = np.random.default_rng(8)
    errors = 0.8 * np.sqrt(random.chisquare(9, 100_000) / 9)
    found = difference.mostly_found(7) + 0.8 * random.standard_normal(100_000)
    critical = difference.smallest_real(7) / 0.8
    assert np.mean(found / errors > critical) == pytest.approx(0.8, abs=0.03)


@pytest.mark.parametrize(("label", "known"), [("by: wrods", "words, part"), ("without: {prat: other}", "words, part")])
def test_a_label_that_a_test_set_does_not_have_is_refused(root, label, known):
    path = root / "results/multi30k.yaml"
    old = label.partition(":")[0] + (": words" if "by" in label else ": {part: other}")
    path.write_text(path.read_text().replace(old, label))
    with pytest.raises(UsageError, match=f"the test set 'test' has no label '(wrods|prat)'. Labels: {known}"):
        _ = Results(Plan.load(path)).groupings
    labels = path.with_suffix("") / "labels.json"
    for damage in ("[]", "{", '{"other": {}}', None):
        labels.unlink() if damage is None else labels.write_text(damage)
        with pytest.raises(SynmtError, match=r"labels\.json: missing or damaged\. Remove the result of a run"):
            _ = Results(Plan.load(path)).groupings


def test_controls_chosen_by_their_scores_have_a_row_apart(root):
    path = root / "results/multi30k.yaml"
    more = "  'relative, random trees': {recipe: multi30k-graph-relations, set: {parser.control: random}}\n"
    more += "  graph-relations: multi30k-graph-relations\nchosen_by_score: ['relative, random trees']\n"
    path.write_text(path.read_text().replace("search:", f"{more}search:"))
    for system, quality in {"relative, random trees": 0.6, "graph-relations": 0.9}.items():
        for seed in (1, 2):
            result = path.with_suffix("") / f"{file_name(system)}-seed{seed}.json"
            result.write_text(json.dumps(make_result(system, seed, quality)))
    found = Results(Plan.load(path))
    rows = [row for row in control_tables(found) if row.startswith("| random")]
    assert [row.split(" | ")[:2] for row in rows] == [
        ["| random", "pascal, graph-relations"],
        ["| random, planned", "pascal"],
    ]
    alone = found.contrast("test", {"pascal": 1, "pascal, random trees": -1})
    assert f"| {alone.value:+.2f} |" in rows[1]


def test_a_page_is_not_made_from_results_of_other_recipes(root):
    path = root / "results/multi30k.yaml"
    path.write_text(f"{path.read_text()}set: {{training.max_steps: 7}}\n")
    what = r"has results of other recipes than multi30k\.yaml has now, of relative \+ pascal, plain, "
    with pytest.raises(SystemExit, match=what):
        write_pages(root)


def test_contrasts_are_counted_over_all_seeds(root):
    path = root / "results/multi30k.yaml"
    path.write_text(f"{path.read_text()}contrasts_by: [case]\n")
    for result in path.with_suffix("").glob("*-seed*.json"):
        stored = json.loads(result.read_text())
        seed = stored["seed"]
        stored["contrast"] = {"all": [seed, 4], "case: near": [seed, 4], "case: far": [2, 4], "cases: no": [0, 1]}
        result.write_text(json.dumps(stored))
    _, title, _, heading, _, first, *_ = contrast_tables(Results(Plan.load(path)))
    assert title == "How often the correct translation of a contrast is the more probable one, by case:"
    assert (heading, first) == ("| system | near | far |", "| plain | 37.5 % | 50.0 % |")


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
    assert out.startswith("1 of 1, tiny-plain-seed1: test ")
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
    assert "1 of 1, tiny-reads-trees-seed1 failed: " in out
    trees.with_suffix(".away").rename(trees)
    labels = tiny_plan / "tiny/labels.json"
    written = labels.read_text()
    labels.write_text("{")
    assert run()[0] == 0
    assert labels.read_text() == written
    assert run() == (0, "")
    with pytest.raises(
        SystemExit, match=r"the result of another recipe.*Remove it, and runs/results/tiny-plain-seed1,"
    ):
        run("training.max_steps=4")


@pytest.mark.usefixtures("offline")
def test_steps_are_timed_next_to_those_of_the_baseline_and_not_again(tiny_plan, monkeypatch, capsys):
    plan, path = tiny_plan / "tiny.yaml", tiny_plan / "tiny/times.json"
    # a baseline that is a system, too, and a repeat, which is left out
    more = "  smaller: {recipe: trees.yaml, baseline: 'reads, trees', set: {model.dropout: 0}}\n"
    more += "  'plain, bf16': {recipe: base.yaml, set: {training.precision: bf16}}\n"
    plan.write_text(f"{plan.read_text()}{more}set: {{parser.control: gold}}\n")
    prints = {run.system: run.fingerprint for run in Plan.load(plan).runs({})}

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["results_times.py", "tiny.yaml", "--steps", "6", *arguments])
        results_times.main()
        return capsys.readouterr().out, json.loads(path.read_text())

    said, stored = run("--machine", "a CPU", "parser.workers=2")
    times = stored["systems"]
    assert (list(times), stored["machine"], stored["precision"]) == (["reads, trees", "smaller"], "a CPU", "float32")
    for (system, measured), base in zip(times.items(), ("plain", "reads, trees"), strict=True):
        assert (measured["recipe"], measured["baseline"]) == (prints[system], prints[base])
        assert len(measured["seconds"]) == len(measured["of_baseline"]) == 6
        assert min(*measured["seconds"], *measured["of_baseline"]) > 0
    assert said.splitlines() == [f"{system}: {times_as_long(one).written()}" for system, one in times.items()]
    # the machine is still that one
    assert run() == ("", stored)
    del times["smaller"]
    path.write_text(json.dumps(stored))
    assert run()[0].startswith("smaller: ")
    for arguments, message in (
        (
            ["--machine", "another"],
            r"times\.json: measured with machine a CPU, not machine another\. Leave out --machine, or",
        ),
        (
            ["model.dropout=0.5"],
            r"model\.dropout: would change what is timed\. Changes: the precision, parsers, the device",
        ),
        (
            ["training.precision=bf16"],
            r"with precision float32, not precision bf16\. Give training\.precision=float32, or",
        ),
    ):
        with pytest.raises(SystemExit, match=message):
            run(*arguments)
    with pytest.raises(SystemExit):
        run("--steps", "5")
    assert "must be 6 or more" in capsys.readouterr().err
    for threads, what, do in (
        (3, "threads 3", "Give training.device=cpu, and set SYNMT_THREADS=3"),
        (None, "a GPU", "Use the GPU"),
    ):
        path.write_text(json.dumps({**stored, "threads": threads}))
        with pytest.raises(SystemExit, match=rf"measured with {what}, not threads \d+\. {do}, or remove"):
            run()


@pytest.mark.usefixtures("offline")
def test_another_process_may_time_steps_meanwhile(tiny_plan, monkeypatch):
    plan, path, measure = tiny_plan / "tiny.yaml", tiny_plan / "tiny/times.json", results_times.in_turns
    plan.write_text(f"{plan.read_text()}set: {{parser.control: gold}}\n")

    def meet(*args):
        found = measure(*args)
        how = {"machine": "a CPU", "threads": torch.get_num_threads(), "precision": "float32"}
        path.write_text(json.dumps({**how, "systems": {"other": {**found, "recipe": "a", "baseline": "b"}}}))
        return found

    monkeypatch.setattr(results_times, "in_turns", meet)
    monkeypatch.setattr(sys, "argv", ["results_times.py", "tiny.yaml", "--steps", "6", "--machine=a CPU"])
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
        for prepared in pool.map(lambda data: list(results._prepared(missing, data)), [tiny_plan / "data"] * 2):
            assert prepared == missing
    assert met == [False] * 4


def test_the_mixture_that_a_search_finds_is_trained_with_all_seeds_at_once(tiny_plan, monkeypatch, capsys):
    plan = (tiny_plan / "tiny.yaml").read_text().replace("seeds: [1]", "seeds: [1, 2, 3]")
    (tiny_plan / "tiny.yaml").write_text(f"{plan}search: {{plain + a: base.yaml, plain + b: trees.yaml}}\n")
    losses, rounds = {"plain + a": 1.0, "plain + b": 2.0}, []

    (tiny_plan / "tiny").mkdir()

    def train(plan, missing, options):
        rounds.append([run.recipe.name for run in missing])
        for run in missing:
            stored = {"system": run.system, "seed": run.seed, "fingerprint": run.fingerprint, "tests": {}}
            run.result.write_text(json.dumps({**stored, "validation": [[1, losses.get(run.system, 3.0)]]}))
        return 0

    monkeypatch.setattr(results, "_train", train)
    monkeypatch.setattr(sys, "argv", ["results.py", "tiny.yaml"])
    assert results.main() == 0
    assert (len(rounds[0]), rounds[1:]) == (2 + 2 + 2 * 2, [["tiny-plain-a-seed2", "tiny-plain-a-seed3"]])
    assert capsys.readouterr().err.endswith("the search has found plain + a: 2 runs missing\n")
    monkeypatch.setattr(sys, "argv", ["results.py", "tiny.yaml", "--systems", "plain + b", "--seeds", "2"])
    with pytest.raises(SystemExit, match="only the mixture that the search finds is trained with more seeds"):
        results.main()


def test_a_system_that_a_plan_lacks_is_an_error(tiny_plan, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["results.py", "tiny.yaml", "--systems", "plain", "parser.control=gold"])
    with pytest.raises(SystemExit, match=r"no system is named 'parser\.control=gold'\. Write changes before --systems"):
        results.main()
    monkeypatch.setattr(sys, "argv", ["results.py", "tiny.yaml", "--systems", "plan"])
    with pytest.raises(SystemExit, match=r"tiny\.yaml: no system is named 'plan'\. Did you mean 'plain'\?"):
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
        ("plain: base.yaml", "plain: {recipe: base.yaml, baseline: plan}", "no system is named 'plan'"),
        ("title", "chosen_by_score: [reads]\ntitle", "no system is named 'reads'"),
        (
            "title",
            "search: {a + b: {recipe: base.yaml, baseline: plain}}\ntitle",
            "a mixture such as 'a + b' has no baseline",
        ),
        (good, "- a list\n", "not a plan: it must consist of `key: value` lines"),
        ("seeds: [1]", "seeds: 1", "seeds: must be a list"),
        ("seeds: [1]", "seeds: [1, 1]", "seeds: one is given twice: [1, 1]"),
        ("seeds: [1]", "seeds: []", "seeds: "),
        ("{transformer: plain}", "{transformer: plan}", "no system is named 'plan'. Did you mean 'plain'?"),
        ("{transformer: plain}", "{lstm: plain}", "baselines: none is given for the transformer that 'plain' is"),
        ("plain: base.yaml", "plain: {recipe: base.yaml, base: plain}", "a plan has no key 'systems.plain.base'"),
        ("plain: base.yaml", "plain: {set: {}}", "'systems.plain.recipe' is missing"),
        ("plain: base.yaml", "plain: bass.yaml", "bass.yaml: file not found"),
        ("'reads, trees': trees.yaml", "'p': base.yaml\n  'p,': trees.yaml", "2 systems have the name 'p'"),
        ("test: test", "test: tets", "plain has no test set 'tets'. Test sets: test. Did you mean 'test'?"),
        ("test: test", "test: test\nset: {modell.dropout: 0.3}", "Did you mean 'model'?"),
        ("test: test", "test: test\ngroups: [{test: test, by: words, metric: blue}]", "groups.0.metric: must be"),
        ("test: test", "test: test\ngroups: [{test: tset, by: words, metric: bleu}]", "no test set 'tset'"),
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
    with pytest.raises(SystemExit, match=r"plain-seed1\.json: damaged, or not a result\. Remove it"):
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
    assert capsys.readouterr().err == "tiny.yaml: 2 of 2 runs missing\ninterrupted: the same command goes on\n"


def test_the_page_of_a_system_has_the_baseline_of_its_baseline_too(root):
    path = root / "results/multi30k.yaml"
    own = "pascal: {recipe: multi30k-pascal, baseline: relative}"
    path.write_text(path.read_text().replace("pascal: multi30k-pascal\n", f"{own}\n"))
    rows = write_pages(root)["pascal.md"].decode().splitlines()
    assert {"| plain", "| relative", "| pascal"} <= {row.split(" | ")[0] for row in rows}


def test_pages_of_another_folder_are_begun_without_a_readme(root):
    for path in (root / "README.md", root / "docs/results.md", root / "docs/results-by-group.md"):
        path.unlink()
    pages = write_pages(root)
    assert pages["results.md"].startswith(f"# Results\n\n{BEGIN}\n\n- **Which".encode())
    assert pages["results-by-group.md"].startswith(b"# Results by group\n")
    assert not (root / "README.md").exists()


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


def test_a_comparison_that_has_only_its_baseline_yet_is_not_drawn(root, tmp_path):
    import results_figure

    found = Results(Plan.load(root / "results/multi30k.yaml"))
    alone, both = [(found, found.of_plan[:1])], [(found, found.of_plan), (found, found.of_plan[:1])]
    results_figure.draw(alone, tmp_path / "alone.png")
    assert not (tmp_path / "alone.png").exists()
    results_figure.draw(both, tmp_path / "both.png")
    results_figure.draw(both[:1], tmp_path / "first.png")
    assert (tmp_path / "both.png").read_bytes() == (tmp_path / "first.png").read_bytes()


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
