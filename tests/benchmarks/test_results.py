"""The comparison of all systems: its plans, its tables, the sentences about them, and pages that
stay the same."""

from __future__ import annotations

import csv
import re
import shutil

import numpy as np
import pytest
import results_page
from places import ROOT
from results_compared import Results
from results_figures import draw_all
from results_plan import Plan, fingerprint
from results_rows import rows, short_table

from synmt.evaluation.bootstrap import resamples

# they load matplotlib and scipy, and read all recipes
pytestmark = pytest.mark.journey

PLANS = sorted((ROOT / "results").glob("*.yaml"))
CONTROLLED = Plan.load(ROOT / "results/controlled.yaml")
TABLE = list(csv.DictReader((ROOT / "docs/results.csv").read_text().splitlines()))
SPEED = (ROOT / "docs/speed.md").read_text()
QUOTED = {"41.02", "0.3", "0.15", "0.05", "92.78", "93.99"}
"""Numbers of the page that are not in the table: of a paper, settings, and a run repeated."""


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
    tried = [row for row in TABLE if row["comparison"] == "controlled" and row["loss"]]
    mixtures = [row for row in tried if row["system"].startswith("relative + ")]
    assert len(mixtures) == 7
    assert min(mixtures, key=lambda row: float(row["loss"]))["system"] == "relative + gcn"


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
    for page in [*(ROOT / "docs").rglob("*.md"), ROOT / "docs/results.csv"]:
        made = (tmp_path / page.relative_to(ROOT)).read_text()
        assert made == page.read_text(), f"{page}: run `make results`"


@pytest.mark.parametrize("kept", [r"plain-seed\d", r".*-seed1", r"(pascal|relative).*"])
def test_tables_are_made_of_what_there_is(tmp_path, kept):
    shutil.copytree(ROOT / "results", tmp_path / "results")
    for path in (tmp_path / "results/multi30k").glob("*-seed*.json"):
        if not re.fullmatch(kept, path.stem):
            path.unlink()
    results = Results(Plan.load(tmp_path / "results/multi30k.yaml"))
    assert rows(results)
    assert len(short_table(results, results.runs).rows) == len(results.runs)
    draw_all([results], tmp_path)
    assert (tmp_path / "does-syntax-help.png").exists() == bool(results.gains)
    assert not [one for one in results.gains.values() if one.is_significant and not one.freedom]


NUMBER = re.compile(r"[+-]?\d+\.\d+")


def numbers(text):
    """Find the numbers with decimals in a text, as their signs and digits."""
    return set(NUMBER.findall(text.replace("−", "-")))


def forms(rows):
    """Write the numbers of rows in all ways in which a text may: with one to three decimals, with
    their sign or without."""
    values = [value for row in rows for value in map(float, numbers(" ".join(row.values())))]
    return {
        f"{form}{abs(value):.{digits}f}"
        for value in values
        for digits in (1, 2, 3)
        for form in ("", "-" if value < 0 else "+")
    }


def test_the_numbers_in_the_sentences_are_those_of_the_table():
    page = (ROOT / "docs/results.md").read_text()
    answers = re.split(r"\n(?=- \*\*)", page[page.index("- **") :].partition("\n\n")[0])
    readme = (ROOT / "README.md").read_text()
    in_short = [answer for answer in answers if answer in readme]
    assert in_short == answers[: len(in_short)]
    assert len(in_short) == readme.count("\n- **")
    written = page.partition("## Does a model read its tree?")[0]
    titles = {plan.title: plan.corpus for plan in map(Plan.load, PLANS)}
    for paragraph in re.split(r"\n\n|\n- ", written):
        text = re.sub(r"\s+", " ", paragraph)
        # what names no corpus is about any of them
        parts = ["", *re.split(rf"\*({'|'.join(titles)})\*:", text)]
        for title, sentences in zip(parts[::2], parts[1::2], strict=True):
            about = [row for row in TABLE if row["comparison"] == titles.get(title)] or TABLE
            known = forms(about) | (numbers(SPEED) if "speed.md" in sentences else QUOTED)
            assert numbers(sentences) <= known, title
            for name, gain in re.findall(r"`([^`]+)` \(?([+−]\d+\.\d+)(?!\d| to)", sentences):
                assert numbers(gain) <= forms([row for row in about if row["system"] == name]), name
