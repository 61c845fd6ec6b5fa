"""The comparison of all systems: its plans, its tables, the sentences about them, and pages that
stay the same."""

from __future__ import annotations

import itertools
import json
import re
import subprocess
import sys

import numpy as np
import pytest
import results_page
import results_tables
from places import ROOT
from results_compared import Results, plans
from results_page import BEGIN, END
from results_plan import Plan, file_name
from results_stored import packed

from synmt.reporting.values import Marked

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


LABELS = {"words": ["8"] * 10 + ["10"] * 20 + ["12"] * 10, "part": ["first"] * 30 + ["other"] * 10}


def make_test(seed, quality):
    """Invent the statistics of 40 sentences of ten words, each with `quality` of them right."""
    random = np.random.default_rng([seed, round(100 * quality)])
    right = random.binomial(10, quality, 40)
    counts = [np.maximum(right - n, 0) for n in range(4)]
    lengths = [np.full(40, 10 - n) for n in range(4)]
    counted = np.stack([np.full(40, 10), np.full(40, 10), *counts, *lengths], 1)
    return {
        "scores": {"bleu": {"score": 100 * quality, "signature": "nrefs:1"}},
        "statistics": packed(counted),
        "exact": packed((right == 10)[:, None]),
    }


class Folder:
    """A folder with a plan, its results, and pages."""

    def __init__(self, root):
        self.root, self.path = root, root / "results/multi30k.yaml"

    @property
    def found(self):
        return Results(Plan.load(self.path))

    def edit(self, old, new):
        text = self.path.read_text()
        assert old in text
        self.path.write_text(text.replace(old, new))

    def store(self, qualities, seeds=(1, 2), **more):
        """Store results of systems for each seed, for the recipes that they have in the plan."""
        prints = {run.system: run.fingerprint for run in Plan.load(self.path).runs({})}
        for (system, quality), seed in itertools.product(qualities.items(), seeds):
            result = {
                **{"system": system, "seed": seed, "fingerprint": prints.get(system, "x")},
                **{"weights": 1500 if system == "relative" else 1000, "steps": 10},
                "validation": [[5, 3.0], [10, 2.0 - quality]],
                "tests": {"test": make_test(seed, quality)},
            }
            path = self.path.with_suffix("") / f"{file_name(system)}-seed{seed}.json"
            path.write_text(json.dumps({**result, **more}))

    def add(self, systems, qualities, seeds=(1, 2)):
        """Add lines of YAML to the systems of the plan, with results."""
        self.edit("search:", "".join(f"  {line}\n" for line in systems) + "search:")
        self.store(qualities, seeds)

    def files(self):
        found = (path for path in self.root.rglob("*") if path.suffix in (".md", ".png"))
        return {path.name: path.read_bytes() for path in found}

    def pages(self):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(sys, "argv", ["results_page.py", "--root", str(self.root)])
            results_page.main()
        return self.files()


PLAN = """corpus: multi30k
title: Captions
test: test
seeds: [1, 2]
baselines: {transformer: plain}
pairs: [[relative + pascal, relative]]
systems:
  plain: multi30k-tiny
  pascal: multi30k-pascal
  'pascal, random trees': multi30k-pascal-random
  relative: multi30k-relative
search: {relative + pascal: multi30k-pascal}
groups:
- {test: test, by: words, metric: exact, without: {part: other}, meaning: {'8': short ones}}
"""


@pytest.fixture
def folder(tmp_path):
    """Make a folder with pages and with the results of two systems, a control and a mixture."""
    (tmp_path / "results/multi30k").mkdir(parents=True)
    (tmp_path / "docs/systems").mkdir(parents=True)
    (tmp_path / "docs/results.md").write_text(
        f"# Results\n\nBefore.\n\n{BEGIN}\n{END}\n\n## Speed\n\nFast.\n"
    )
    (tmp_path / "docs/systems/pascal.md").write_text(
        "# PASCAL\n\n## What we measured\n\nMuch.\n\n## Look inside\n\nHere.\n"
    )
    (tmp_path / "results/multi30k.yaml").write_text(PLAN)
    made = Folder(tmp_path)
    of_plan = {"plain": 0.7, "pascal": 0.9, "pascal, random trees": 0.7, "relative": 0.95}
    made.store({**of_plan, "relative + pascal": 0.96})
    (tmp_path / "results/multi30k/labels.json").write_text(json.dumps({"test": LABELS}))
    return made


def column(table, title):
    """Read the values of a column by the first value of each row."""
    place = [one.title for one in table.columns].index(title)
    cells = {row[0]: row[place] for row in table.rows}
    return {name: cell.value if isinstance(cell, Marked) else cell for name, cell in cells.items()}


def test_pages_say_what_the_results_say_and_are_the_same_each_time(folder):
    first = folder.pages()
    page, groups = first["results.md"].decode(), first["results-by-group.md"].decode()
    assert page.startswith(f"# Results\n\nBefore.\n\n{BEGIN}\n\n## Captions: all systems\n\n| ")
    assert page.endswith(f"\n\n{END}\n\n## Speed\n\nFast.\n")
    gain = column(results_tables.main_table(folder.found), "difference")["pascal"]
    [row] = re.findall(r"\n\| pascal +\| parser +\| plain +(\|.*)", page)
    assert f"| {gain:+.2f} \\* |" in re.sub(" +", " ", row)
    assert len(re.findall("^### Captions: ", page, flags=re.MULTILINE)) == 3
    assert groups.startswith(f"# Results by group\n\n{BEGIN}\n\n## Captions\n\nExact match in")
    assert "\n8: short ones\n" in groups
    before, after = f"# PASCAL\n\n## What we measured\n\nMuch.\n\n{BEGIN}\n\n", f"{END}\n\n## Look"
    page = first["pascal.md"].decode()
    assert page.startswith(f"{before}Captions ([the whole table]")
    assert after in page
    # in another process, sets have another order
    command = [sys.executable, str(ROOT / "benchmarks/results_page.py"), "--root", str(folder.root)]
    subprocess.run(command, check=True, cwd=ROOT)
    assert folder.files() == first
    for path in (folder.root / "results/multi30k").glob("*pascal*"):
        path.unlink()
    assert folder.pages()["pascal.md"].decode().startswith(before + after)


@pytest.mark.parametrize("kept", [r"plain-seed\d", r".*-seed1", r"(pascal|relative).*"])
def test_tables_are_made_of_what_there_is(folder, kept):
    for path in folder.path.with_suffix("").glob("*-seed*.json"):
        if not re.fullmatch(kept, path.stem):
            path.unlink()
    assert folder.pages()["results.md"]
    assert not [
        line for line in folder.found.bleu["test"] if line.is_real and not line.difference.seeded
    ]


def test_systems_are_compared_with_each_other_as_their_means_say(folder):
    found = folder.found
    means = {line.system: line.mean for line in found.bleu["test"]}
    compared = found.by_test["test"]
    for first, second in (("relative + pascal", "relative"), ("pascal", "plain")):
        contrast = compared.contrast({first: 1, second: -1})
        assert contrast.value == pytest.approx(means[first] - means[second])
        assert contrast.low < contrast.value < contrast.high
    # one comparison needs no correction
    single = compared.contrast({"pascal": 1, "pascal, random trees": -1})
    for _, table in results_tables.control_tables(found):
        [[_, value, interval, p]] = table.rows
        assert (value.value, interval.low, p) == (single.value, single.low, single.unadjusted_p())
    [[pair, value, _]] = results_tables.pair_table(found).rows
    assert pair == "relative + pascal minus relative"
    assert value == pytest.approx(means["relative + pascal"] - means["relative"])


# system, kind and baseline
KINDS = """
plain | none | plain
pascal | parser | plain
relative | none | plain
modern | none | relative
tree-attention | induced | plain
pascal, random trees | control | plain
plain, bf16 | repeat | plain
ldd, bf16 | parser | plain, bf16
relative + pascal | mixture | plain
"""


def test_only_systems_that_someone_would_use_are_tested(folder):
    more = ["'plain, bf16': {recipe: multi30k-tiny, set: {training.precision: bf16}}"]
    more += [
        "tree-attention: multi30k-tree-attention",
        "modern: {recipe: multi30k-modern-base, baseline: relative}",
    ]
    more += [
        "'ldd, bf16': {recipe: multi30k-ldd, set: {training.precision: bf16}, baseline: "
        "'plain, bf16'}"
    ]
    folder.add(more, dict.fromkeys(("plain, bf16", "ldd, bf16", "tree-attention", "modern"), 0.8))
    found = folder.found
    systems, lines = found.systems, found.bleu["test"]
    kinds = {one.system: [systems.kind(one.system), systems.baseline(one.system)] for one in lines}
    rows = (row.split(" | ") for row in KINDS.strip().splitlines())
    assert kinds == {system: row for system, *row in rows}
    untested = {line.system for line in lines if line.difference and line.difference.p is None}
    assert untested == {"pascal, random trees", "plain, bf16"}


def test_unstable_systems_are_neither_tested_nor_compared(folder):
    for system in ("pascal, random trees", "relative"):
        folder.store({system: 0.1}, seeds=[2])
        found = folder.found
        assert found.design.unstable == {system}
        assert column(results_tables.main_table(found), "p (Holm)")[system] == "unstable"
        assert bool(found.other_trees) == (system == "relative")
        assert bool(results_tables.pair_table(found).rows) == (system != "relative")
        folder.store({system: 0.7})


NUMBER = re.compile(r"[+-]?\d+\.\d\d+")
# what a GPU adds is estimated from all runs, and in no table
OF_GPUS = re.compile(r"Allowing for system and seed[^;]*;")


def numbers(text):
    """Find the numbers with two decimals in a text, as their signs and digits."""
    return set(NUMBER.findall(text.replace("−", "-")))


def section(text, title):
    """Cut the part of a page from one heading to the next one of its level."""
    return text.partition(f"\n## {title}")[2].partition("\n## ")[0]


def test_the_numbers_in_the_sentences_are_those_of_the_tables_and_these_those_of_the_results():
    everything = [Results(plan) for plan in plans(ROOT / "results")]
    page, groups = (
        (ROOT / f"docs/{name}.md").read_text() for name in ("results", "results-by-group")
    )
    written, _, made = page.partition(BEGIN)
    made = made.partition(END)[0]
    of_groups = groups.partition(BEGIN)[2].partition(END)[0]
    for stored, parts in ((made, results_page.comparison), (of_groups, results_page.groups)):
        report = results_page.Report(title="", parts=list(parts(everything)))
        found = results_page.render({"": report}, "markdown")
        assert stored.strip() == found.strip(), "run `make results`"
    claims = written.partition("\n- **")[2].partition("## How to read")[0]
    assert claims.partition("\n\n")[0] in (ROOT / "README.md").read_text()
    titles = "|".join(results.plan.title for results in everything)
    _, *said = re.split(rf"\*({titles})\*:", OF_GPUS.sub("", re.sub(r"\s+", " ", claims)))
    for title, sentences in zip(said[::2], said[1::2], strict=True):
        tables = section(made, f"{title}: all systems") + section(groups, title)
        # a number without a sign is written so where a word says which one is larger
        known = numbers(tables) | {one.lstrip("+-") for one in numbers(tables)}
        assert not numbers(sentences) - known, title
        for name, gain in re.findall(r"`([^`]+)` \(?([+−]\d+\.\d+)(?!\d| to)", sentences):
            rows = re.findall(rf"^\| {re.escape(name)} +\|.*", tables, flags=re.MULTILINE)
            assert numbers(gain) <= numbers(" ".join(rows)), name
