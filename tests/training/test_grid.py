"""The runs of a grid: their names and order, what is refused before the first begins, and the
systems in the tables."""

import json
import re
from functools import partial
from pathlib import Path

import pytest
from refusing import assert_refused
from small import small_recipe
from small_run import make_run, write_tests
from tiny import write_corpus, write_recipe

from synmt.evaluation.systems import check_one_system, group_by_seed
from synmt.recipe.catalogue import split_overrides
from synmt.training import grid
from synmt.training.grid import compare_runs, plan_grid
from synmt.training.grid_runs import GridRun, check_grid, grid_runs, waits_for


@pytest.fixture
def here(tmp_path, monkeypatch):
    """Go to a folder with two recipes of a tiny corpus."""
    monkeypatch.chdir(tmp_path)
    write_corpus(Path("text"))
    write_recipe(Path("plain.yaml"), Path("text"), syntax={})
    write_recipe(Path("pascal.yaml"), Path("text"))


def names_of(runs):
    return " ".join(run.folder.name for run in runs)


def recipe(name, seed=1):
    return small_recipe(name=name, training={"seed": seed})


# names and order


def test_every_recipe_has_its_first_seed_first(here):
    expected = """
        plain out/plain plain 1               pascal.yaml out/pascal pascal 1
        plain out/plain-seed2 plain-seed2 2   pascal.yaml out/pascal-seed2 pascal-seed2 2
    """
    assert " ".join(expected.split()) == " ".join(
        f"{run.system} {run.folder} {run.recipe.name} {run.recipe.training.seed}"
        for run in grid_runs(["plain", "pascal.yaml"], seeds=2, runs="out")
    )


@pytest.mark.parametrize(
    ("name", "first", "seeds", "names"),
    [
        ("pascal", 1, None, "pascal"),
        ("pascal", 7, 2, "pascal pascal-seed8"),
        ("pascal", 1, [9, 1, 5], "pascal-seed9 pascal pascal-seed5"),
        ("pascal", 1, [20261122], "pascal-seed20261122"),
        # a name that has a seed does not get a second one
        ("pascal-seed2", 2, 2, "pascal-seed2 pascal-seed3"),
    ],
)
def test_seeds_are_counted_from_that_of_the_recipe_or_listed(name, first, seeds, names):
    assert names_of(grid_runs([recipe(name, first)], seeds=seeds)) == names


def test_score_finds_the_seeds_of_each_system_whatever_its_name(tmp_path):
    recipes = [recipe(name) for name in ("plain", "ignore0.3", "ignore0.4", "b-seed4")]
    runs = grid_runs(recipes, seeds=2, runs=tmp_path)
    groups = group_by_seed([run.folder for run in runs])
    expected = "plain plain-seed2, ignore0.3 ignore0.3-seed2, ignore0.4 ignore0.4-seed2"
    found = ", ".join(" ".join(path.name for path in members) for _, members in groups)
    assert found == f"{expected}, b-seed4 b-seed2"
    for run in (runs[0], runs[4]):
        make_run(run.folder, training={"seed": run.recipe.training.seed})
    check_one_system([runs[0].folder, runs[4].folder])


def test_overrides_begin_at_the_first_equals_sign_that_is_no_file(here):
    Path("a=b.yaml").touch()
    recipes, overrides = (
        ["plain", "a=b.yaml"],
        ["training.max_steps=3", "x" * 9000 + "=1", "a=b.yaml"],
    )
    assert split_overrides(recipes + overrides) == (recipes, overrides)
    assert split_overrides(["plain"]) == (["plain"], [])


# what is refused


SAME = "Leave one out, or give one of them another `name:`; `--seeds 3` trains .*"
NO_SEEDS = "A number of seeds from 1 to 1,000, or a list of different seeds from 0"


ODD = "odd.yaml: model.model_dim: .*\\nodd.yaml: there is no key 'odd'.*"
# recipes; seeds; overrides; the message. All that is wrong is one message
REFUSED = f"""
plain; 0; ; seeds: 0 does not choose seeds. {NO_SEEDS}
plain; -1; ; {NO_SEEDS}
plain; []; ; {NO_SEEDS}
plain; [3, -1]; ; {NO_SEEDS}
plain; [{1 << 64}]; ; {NO_SEEDS}
plain; [1, 1]; ; or a list of different seeds from 0, below 2⁶⁴.$
plain; 20261122; ; A number of seeds from 1 to 1,000, .* For a single seed, write a comma after it
plain pascal plain; ; ; ^plain and plain would both train runs/plain. {SAME}$
plain other/plain.yaml; ; ; ^plain and other/plain.yaml would both train runs/plain. {SAME}$
plain pascal; ; name=x; ^plain and pascal would both train runs/x. {SAME}$
plain-seed2.yaml plain; 2; ; ^plain-seed2.yaml and plain would both train runs/plain-seed2.
plain odd.yaml no.yaml; ; model.model_dim=x; ^plain: model.model_dim: .*\\n{ODD}\\nthere is no file
pascal plain; ; syntax.variants.0.heads=1; ^plain:
"""


@pytest.mark.parametrize("line", REFUSED.strip("\n").splitlines())
def test_recipes_and_seeds_that_make_no_grid_are_refused(here, line):
    recipes, seeds, overrides, message = line.split("; ", 3)
    write_recipe(Path("other/plain.yaml"), Path("text"))
    write_recipe(Path("plain-seed2.yaml"), Path("text"), training={"seed": 5})
    write_recipe(Path("odd.yaml"), Path("text"), odd=1)
    assert_refused(
        message, grid_runs, recipes.split(), overrides.split(), seeds=json.loads(seeds or "null")
    )


def test_recipes_and_folders_are_checked_before_the_first_run(here):
    make_run(Path("runs/plain-seed2"))
    runs = grid_runs(["plain", "pascal"], ["evaluation.tokenize=13b"], seeds=2)
    message = r"^plain: .*no tokenization '13b'.*\npascal: .*no tokenization '13b'.*$"
    assert_refused(message, check_grid, runs, overwrite=False)
    runs = grid_runs(["plain", "pascal"], seeds=2)
    started = "^runs/plain-seed2: this run was started with a different recipe: "
    assert_refused(started, check_grid, runs, overwrite=False)


def test_a_run_that_needs_the_weights_of_another_one_waits_for_it(here):
    write_recipe(Path("tuned.yaml"), Path("text"), model={"init": "runs/plain"}, vocabulary={})
    runs = grid_runs(["plain", "tuned"])
    assert [waits_for(run, runs) for run in runs] == [None, Path("runs/plain")]
    check_grid(runs, overwrite=False)
    tuned = plan_grid(["plain", "tuned"])[-1]
    assert (tuned.what, tuned.size) == ("train runs/tuned", "with the weights of runs/plain")
    assert_refused(
        r"^model\.init, runs/plain: not a run folder", check_grid, runs[1:], overwrite=False
    )
    make_run(Path("runs/plain"))
    assert waits_for(runs[1], runs) is None


def test_a_plan_lists_what_runs_share_once(here):
    write_recipe(Path("random.yaml"), Path("text"), parser={"control": "random"})
    write_recipe(Path("parsed.yaml"), Path("text"), parser={})
    write_corpus(Path("other"))
    write_recipe(Path("third.yaml"), Path("other"), syntax={})
    steps = plan_grid(["plain", "parsed", "random", "third"], seeds=2)
    expected = """
        find the text, prepare, train runs/plain, test, parse the source,
        add trees to the source, train runs/parsed, test, train runs/random, test,
        find the text, prepare, train runs/third, test, train runs/plain-seed2, test,
        train runs/parsed-seed2, test, train runs/random-seed2, test, train runs/third-seed2, test
    """
    test = re.compile(r"translate the test sets of .*")
    listed = [test.sub("test", step.what) for step in steps]
    assert listed == [step.strip() for step in expected.split(",")]


# tables


@pytest.fixture
def tested(tmp_path, monkeypatch):
    """Make runs with the translations of some test sets; tables are small."""
    options = {"metrics": ["bleu"], "samples": 10}
    monkeypatch.setattr(grid, "compare_systems", partial(grid.compare_systems, **options))
    lines = [f"Der Affe {number} isst ." for number in range(4)]

    def make(name, tests="", seed="", references=()):
        run = make_run(tmp_path / f"{name}{seed}")
        for test in tests.split():
            write_tests(run, lines, references or lines, hypothesis=lines, test=test)
        return GridRun(name, run.recipe(), run.folder)

    return make


def test_every_test_set_that_systems_share_has_a_table(tested):
    # the order of training: the first seed of all comes first
    runs = [tested("a", "one two own"), tested("b", "one two"), tested("c", "two"), tested("d")]
    comparisons = compare_runs([*runs, tested("a", "one two own", "-seed2")])
    found = [
        (test, *(f"{Path(system.name).name}{len(system.seeds)}" for system in comparison.systems))
        for test, comparison in comparisons.items()
    ]
    assert found == [("one", "a2", "b1"), ("own", "a2"), ("two", "a2", "b1", "c1")]


def test_runs_without_a_test_set_that_can_be_compared_have_no_table(tested, caplog):
    assert not compare_runs([tested("a")])
    assert not caplog.text
    b, c = tested("b", "test"), tested("c", "test", references=["Ein anderer Satz ."] * 4)
    assert not compare_runs([b, c])
    assert "no table for the test set test: c: its test set 'test' is not that of b" in caplog.text
    # one system has a table of its own
    assert [*compare_runs([b])] == ["test"]
