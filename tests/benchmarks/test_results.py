"""The comparison of all systems: its plans, its tables, the sentences about them, and pages that
stay the same."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys

import pytest
import results_page
import results_tables
from places import ROOT
from results_compared import Results
from results_figure import draw
from results_page import BEGIN, END
from results_plan import Plan

# they load matplotlib and scipy, and read all recipes
pytestmark = pytest.mark.journey

PLANS = sorted((ROOT / "results").glob("*.yaml"))
CONTROLLED = Plan.load(ROOT / "results/controlled.yaml")


@pytest.mark.parametrize("path", PLANS, ids=lambda path: path.stem)
def test_every_system_of_a_plan_has_a_recipe_and_a_name_of_its_own(path):
    runs = list(Plan.load(path).runs({}))
    assert len({run.recipe.name for run in runs}) == len({run.result for run in runs}) == len(runs)
    assert all(run.recipe.training.seed == run.seed for run in runs)
    of_first_seed = [run for run in runs if run.seed == 1]
    assert len({run.fingerprint for run in of_first_seed}) == len(of_first_seed), (
        "two systems are the same"
    )


def test_the_fingerprint_tells_recipes_apart_but_not_seeds_and_machines():
    first, *others = (
        next(CONTROLLED.runs(changes)).fingerprint
        for changes in (
            {},
            {"parser.workers": 3, "training.device": "cpu"},
            {"training.max_steps": 3},
        )
    )
    assert others[0] == first != others[1]
    assert {run.fingerprint for run in CONTROLLED.runs({}) if run.system == "plain"} == {first}


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

    def store(system, validation):
        stored = {
            "system": system,
            "seed": 1,
            "fingerprint": "x",
            "tests": {},
            "validation": validation,
        }
        plan.result(system, 1).write_text(json.dumps(stored))

    assert names() == ["plain 1", "plain + a 1", "plain + b 1", "plain 2"]
    store("plain + a", [[5, 3.0], [10, 2.5]])
    assert plan.found() is None, "the other one may be better"
    store("plain + b", [[5, 2.4], [10, 2.6]])
    assert names() == ["plain 1", "plain + a 1", "plain + b 1", "plain 2", "plain + b 2"]
    store("plain", [[10, 2.7]])
    assert results_tables.search_table(plan).rows == [
        ["plain + b", 2.4],
        ["plain + a", 2.5],
        ["plain alone", 2.7],
    ]


def test_the_pages_say_what_the_results_say(tmp_path):
    for name in ("results", "docs"):
        shutil.copytree(ROOT / name, tmp_path / name)
    command = [sys.executable, ROOT / "benchmarks/results_page.py", "--root", tmp_path]
    subprocess.run(command, check=True, cwd=ROOT)
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
    assert not [one for one in results.lines if one.is_real and not one.difference.seeded]


NUMBER = re.compile(r"[+-]?\d+\.\d\d+")
# what a GPU adds is estimated from all runs, and in no table
OF_GPUS = re.compile(r"Allowing for system and seed[^;]*;")


def numbers(text):
    """Find the numbers with two decimals in a text, as their signs and digits."""
    return set(NUMBER.findall(text.replace("−", "-")))


def section(text, title):
    """Cut the part of a page from one heading to the next one of its level."""
    return text.partition(f"\n## {title}")[2].partition("\n## ")[0]


def test_the_numbers_in_the_sentences_are_those_of_the_tables():
    page, groups = (
        (ROOT / f"docs/{name}.md").read_text() for name in ("results", "results-by-group")
    )
    written, _, made = page.partition(BEGIN)
    made = made.partition(END)[0]
    claims = written.partition("\n- **")[2].partition("## How to read")[0]
    assert claims.partition("\n\n")[0] in (ROOT / "README.md").read_text()
    titles = "|".join(re.findall(r"^## (.*): all systems", made, flags=re.MULTILINE))
    _, *said = re.split(rf"\*({titles})\*:", OF_GPUS.sub("", re.sub(r"\s+", " ", claims)))
    for title, sentences in zip(said[::2], said[1::2], strict=True):
        tables = section(made, f"{title}: all systems") + section(groups, title)
        # a number without a sign is written so where a word says which one is larger
        known = numbers(tables) | {one.lstrip("+-") for one in numbers(tables)}
        assert not numbers(sentences) - known, title
        for name, gain in re.findall(r"`([^`]+)` \(?([+−]\d+\.\d+)(?!\d| to)", sentences):
            rows = re.findall(rf"^\| {re.escape(name)} +\|.*", tables, flags=re.MULTILINE)
            assert numbers(gain) <= numbers(" ".join(rows)), name
