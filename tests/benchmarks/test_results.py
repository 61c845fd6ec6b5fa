"""The comparison of all systems: its plans, its tables, the sentences about them, and pages that
stay the same."""

from __future__ import annotations

import re
import shutil

import numpy as np
import pytest
import results_page
import results_tables
from places import ROOT
from results_compared import Results
from results_figure import draw
from results_page import BEGIN, END
from results_plan import Plan, fingerprint

from synmt.evaluation.bootstrap import resamples

# they load matplotlib and scipy, and read all recipes
pytestmark = pytest.mark.journey

PLANS = sorted((ROOT / "results").glob("*.yaml"))
CONTROLLED = Plan.load(ROOT / "results/controlled.yaml")


@pytest.mark.parametrize("path", PLANS, ids=lambda path: path.stem)
def test_every_system_of_a_plan_has_a_recipe_and_a_name_of_its_own(path):
    plan = Plan.load(path)
    runs = list(plan.runs({}))
    results = {plan.result(run.system, run.recipe.training.seed) for run in runs}
    assert len({run.recipe.name for run in runs}) == len(results) == len(runs)
    assert results >= set(plan.folder.glob("*-seed*.json")), "a result that no table reads"
    prints = {fingerprint(recipe) for recipe in plan.recipes.values()}
    assert len(prints) == len(plan.systems), "two systems are the same"


def test_the_fingerprint_tells_recipes_apart_but_not_seeds_and_machines():
    first, of_machine, other, of_seed = (
        fingerprint(CONTROLLED.recipe("plain", changes))
        for changes in (
            {},
            {"parser.workers": 3, "training.device": "cpu"},
            {"training.max_steps": 3},
            {"training.seed": 2},
        )
    )
    assert of_machine == of_seed == first != other
    # keys that came later count if they have another value than their default
    later = ("model.output_bias", "training.ema", "corpus.controlled.pairs")
    changed = {
        fingerprint(CONTROLLED.recipe("plain", {key: value}))
        for key, value in zip(later, (True, 0.5, 9), strict=True)
    }
    assert len(changed | {first}) == 4


def test_the_mixtures_that_were_tried_have_one_seed_and_are_compared_by_validation_loss():
    runs = [run.system for run in CONTROLLED.runs({})]
    assert runs.count("relative + gcn") == 3
    assert runs.count("relative + tags") == 1
    assert "relative + tags" not in CONTROLLED.compared
    rows = results_tables.validation_table(Results(CONTROLLED)).rows
    assert rows == sorted(rows, key=lambda row: row[1])
    assert rows[0][0] == "relative + gcn"
    assert len(rows) == 8


def test_other_trees_are_those_of_the_recipes():
    trees = CONTROLLED.trees
    for name, system in CONTROLLED.systems.items():
        if system.control_of:
            assert trees[system.control_of] == "parser", name
            assert CONTROLLED.kind(name) == "control", name
    assert {trees[name] for name in ("plain", "relative", "fa")} == {"none"}
    assert {trees[name] for name in ("sa", "tree-attention", "latent-graph")} == {"induced"}
    assert trees["pascal, rewired 50 %"] == "rewired 50%"


def quick_scores(statistics, aggregate, *, samples):
    """Score all resamples at once, as sacreBLEU does but for rounding: pages need 1,500,000
    scores."""
    counts = np.hstack(statistics)
    totals = np.vstack([times @ counts for times in resamples(len(counts), samples=samples)])
    totals = totals.reshape(-1, 10)
    length, wanted, right, made = np.split(totals, (1, 2, 6), axis=1)
    with np.errstate(divide="ignore"):
        logs = np.log(100 * right / made).mean(1) + np.minimum(0, 1 - wanted / length)[:, 0]
    scores = np.exp(logs)
    smoothed = (right == 0).any(1)
    scores[smoothed] = list(map(aggregate, totals[smoothed]))
    return scores.reshape(samples, -1)


def test_the_pages_say_what_the_results_say(tmp_path, monkeypatch):
    for name in ("results", "docs"):
        shutil.copytree(ROOT / name, tmp_path / name)
    monkeypatch.setattr("results_statistics.bootstrap_scores", quick_scores)
    monkeypatch.setattr("sys.argv", ["results_page.py", "--root", str(tmp_path)])
    results_page.main()
    for page in (ROOT / "docs").rglob("*.md"):
        made = (tmp_path / page.relative_to(ROOT)).read_text()
        assert made == page.read_text(), f"{page}: run `make results`"


@pytest.mark.parametrize("kept", [r"plain-seed\d", r".*-seed1", r"(pascal|relative).*"])
def test_tables_are_made_of_what_there_is(tmp_path, kept):
    shutil.copytree(ROOT / "results", tmp_path / "results")
    for path in (tmp_path / "results/multi30k").glob("*-seed*.json"):
        if not re.fullmatch(kept, path.stem):
            path.unlink()
    results = Results(Plan.load(tmp_path / "results/multi30k.yaml"))
    assert list(results_page.comparison([results]))
    draw([results], tmp_path / "figure.png")
    assert not [one for one in results.gains.values() if one.is_significant and not one.freedom]


NUMBER = re.compile(r"[+-]?\d+\.\d+")


def numbers(text):
    """Find the numbers with decimals in a text, as their signs and digits."""
    return set(NUMBER.findall(text.replace("−", "-")))


def test_the_numbers_in_the_sentences_are_those_of_the_tables():
    page = (ROOT / "docs/results.md").read_text()
    before, _, rest = page.partition(BEGIN)
    made, _, after = rest.partition(END)
    answer = before[before.index("- **") :].partition("\n\n")[0]
    assert answer in (ROOT / "README.md").read_text()
    of_corpus = re.split(r"^## (.*)$", made, flags=re.MULTILINE)
    tables = dict(zip(of_corpus[1::2], of_corpus[2::2], strict=True))
    written = before + after.partition("\n## Translation of Multi30k")[0]
    for paragraph in re.split(r"\n\n|\n- ", written):
        text = re.sub(r"\s+", " ", paragraph)
        # what names no corpus is about any of them
        parts = ["", *re.split(rf"\*({'|'.join(tables)})\*:", text)]
        for title, sentences in zip(parts[::2], parts[1::2], strict=True):
            known = numbers(tables.get(title, made))
            # a number without a sign is written so where a word says which one is larger
            known |= {number.lstrip("+-") for number in known}
            assert not numbers(sentences) - known, title
            for name, gain in re.findall(r"`([^`]+)` \(?([+−]\d+\.\d+)(?!\d| to)", sentences):
                rows = re.findall(rf"^\| {re.escape(name)} +\|.*", made, flags=re.MULTILINE)
                assert numbers(gain) <= numbers(" ".join(rows)), name
