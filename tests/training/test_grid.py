"""The runs of a grid: their names and order, what is refused before the first begins, and the
systems in the tables."""

import re
from functools import partial
from pathlib import Path

import pytest
from small import small_recipe
from small_run import make_run, write_tests
from tiny import write_corpus, write_recipe

from synmt.errors import UsageError
from synmt.evaluation.systems import check_one_system, group_by_seed
from synmt.recipe.catalogue import split_overrides
from synmt.training import grid
from synmt.training.grid import FailedRun, GridRecord, compare_runs, plan_grid
from synmt.training.grid_runs import GridRun, check_grid, grid_runs, waits_for
from synmt.training.text_stages import TextStage


@pytest.fixture
def here(tmp_path, monkeypatch):
    """Go to a folder with two recipes of a tiny corpus."""
    monkeypatch.chdir(tmp_path)
    write_corpus(Path("text"))
    write_recipe(Path("plain.yaml"), Path("text"), syntax={})
    write_recipe(Path("pascal.yaml"), Path("text"))


def names_of(runs):
    return [run.folder.name for run in runs]


def recipe(name, seed=1):
    return small_recipe(name=name, training={"seed": seed})


# names and order


def test_the_own_seed_keeps_the_name_and_every_recipe_has_its_first_seed_first(here):
    runs = grid_runs(["plain", "pascal.yaml"], seeds=3, runs="out")
    seeds = ["", "-seed2", "-seed3"]
    assert names_of(runs) == [f"{name}{seed}" for seed in seeds for name in ("plain", "pascal")]
    assert [(run.recipe.name, run.recipe.training.seed) for run in runs[2:4]] == [
        ("plain-seed2", 2),
        ("pascal-seed2", 2),
    ]
    assert runs[0].folder == Path("out/plain")
    assert [run.system for run in runs[:2]] == ["plain", "pascal.yaml"]


@pytest.mark.parametrize(
    ("name", "own", "seeds", "names"),
    [
        ("pascal", 1, None, ["pascal"]),
        ("pascal", 7, 2, ["pascal", "pascal-seed8"]),
        ("pascal", 1, [9, 1, 5], ["pascal-seed9", "pascal", "pascal-seed5"]),
        ("pascal", 1, [5], ["pascal-seed5"]),
        # a name that has a seed does not get a second one
        ("pascal-seed2", 2, 2, ["pascal-seed2", "pascal-seed3"]),
    ],
)
def test_seeds_are_counted_from_the_own_one_or_named(name, own, seeds, names):
    assert names_of(grid_runs([recipe(name, own)], seeds=seeds)) == names


def test_score_finds_the_seeds_of_each_system_whatever_its_name():
    runs = grid_runs(
        [recipe(name) for name in ("plain", "ignore0.3", "ignore0.4", "b-seed4")], seeds=2
    )
    groups = group_by_seed([run.folder for run in runs])
    assert [[path.name for path in members] for _, members in groups] == [
        ["plain", "plain-seed2"],
        ["ignore0.3", "ignore0.3-seed2"],
        ["ignore0.4", "ignore0.4-seed2"],
        ["b-seed4", "b-seed2"],
    ]


def test_all_seeds_of_a_recipe_are_one_system_to_score(tmp_path):
    for run in grid_runs([recipe("a")], seeds=3, runs=tmp_path):
        make_run(run.folder, training={"seed": run.recipe.training.seed})
    check_one_system(sorted(tmp_path.iterdir()))


def test_overrides_begin_at_the_first_equals_sign_that_is_no_file(here):
    Path("a=b.yaml").touch()
    long = "corpus={train: " + "x" * 9000 + "}"
    given = ["plain", "a=b.yaml", "training.max_steps=3", long, "a=b.yaml"]
    assert split_overrides(given) == (given[:2], given[2:])
    assert split_overrides(["plain"]) == (["plain"], [])
    with pytest.raises(
        UsageError,
        match=r"'pascal' is not an override. Write all recipes before the first `key=value`",
    ):
        split_overrides(["plain", "name=x", "pascal"])


# what is refused


@pytest.mark.parametrize("seeds", [0, -1, [], [3, -1], [1 << 64]])
def test_seeds_that_are_none_are_refused(seeds):
    with pytest.raises(UsageError, match=r"^seeds: .* A number from 1, or different seeds from 0"):
        grid_runs([recipe("a")], seeds=seeds)


def test_a_seed_that_is_given_as_their_number_is_told_from_it():
    said = refused(recipe("a"), seeds=20261122)
    assert said == (
        "seeds: 20261122 seeds are too many. At most 1000. For one run with the seed "
        "20261122, write "
        "`--seeds 20261122,` or, in Python, `seeds=[20261122]`"
    )
    assert names_of(grid_runs([recipe("a")], seeds=[20261122])) == ["a-seed20261122"]


def refused(*recipes, overrides=(), **options):
    with pytest.raises(UsageError) as caught:
        grid_runs(recipes, overrides, **options)
    return str(caught.value)


def test_a_recipe_that_is_given_twice_is_named(here):
    assert refused("plain", "pascal", "plain") == (
        "plain is given twice. Leave one out; `--seeds 3` trains three seeds of each recipe."
    )
    assert "plain and plain.yaml are the same recipe. Leave one out" in refused(
        "plain", "plain.yaml"
    )


def test_two_recipes_of_one_name_are_named(here):
    write_recipe(Path("other/plain.yaml"), Path("text"))
    said = refused("plain", "other/plain.yaml")
    assert said.startswith(
        "plain and other/plain.yaml would both train runs/plain. Give one of them another `name:`"
    )
    assert "the override name=… names all of them alike" in refused(
        "plain", "pascal", overrides=["name=x"]
    )
    write_recipe(Path("plain-seed2.yaml"), Path("text"), training={"seed": 5})
    said = refused("plain-seed2.yaml", "plain", seeds=2)
    assert said.startswith("plain-seed2.yaml and plain would both train runs/plain-seed2. ")
    said = refused("plain-seed2.yaml", seeds=[5, 2])
    assert said.startswith("seeds 5 and 2 of plain-seed2.yaml would both train runs/plain-seed2. ")


def test_what_is_wrong_with_all_recipes_is_one_message(here):
    write_recipe(Path("odd.yaml"), Path("text"), odd=1)
    said = refused("plain", "odd.yaml", "nowhere.yaml", overrides=["model.model_dim=x"])
    assert len(said.splitlines()) == 4
    for part in (
        "plain: model.model_dim: ",
        "odd.yaml: model.model_dim: ",
        "odd.yaml: a recipe has no key 'odd'",
    ):
        assert part in said
    assert "nowhere.yaml: file not found" in said


def test_an_override_that_one_recipe_cannot_have_names_it(here):
    assert refused("pascal", "plain", overrides=["syntax.variants.0.heads=1"]).startswith("plain: ")


def checked(*recipes, overrides=(), **options):
    runs = grid_runs(recipes, overrides, **options)
    with pytest.raises(UsageError) as caught:
        check_grid(runs, runs, overwrite=False)
    return str(caught.value).splitlines()


def test_values_of_all_recipes_are_checked_before_the_first_run(here):
    wrong = checked("plain", "pascal", overrides=["evaluation.tokenize=13b"], seeds=2)
    assert [line.partition(":")[0] for line in wrong] == ["plain", "pascal"]
    assert all("no tokenization '13b'" in line for line in wrong)


def test_a_run_of_another_recipe_is_found_before_the_first_begins(here):
    make_run(Path("runs/plain-seed2"))
    (said,) = checked("pascal", "plain", seeds=2)
    assert said.startswith("runs/plain-seed2: this run was started with a different recipe: ")


def test_a_run_that_needs_the_weights_of_another_one_waits_for_it(here):
    write_recipe(Path("tuned.yaml"), Path("text"), model={"init": "runs/plain"}, vocabulary={})
    runs = grid_runs(["plain", "tuned"])
    assert [waits_for(run, runs) for run in runs] == [None, Path("runs/plain")]
    check_grid(runs, runs, overwrite=False)
    tuned = plan_grid(["plain", "tuned"])[-1]
    assert (tuned.what, tuned.amount) == ("train runs/tuned", "with the weights of runs/plain")
    assert checked("tuned")[0].startswith("model.init, runs/plain: no such folder")
    make_run(Path("runs/plain"))
    assert waits_for(runs[1], runs) is None


def test_a_plan_lists_what_runs_share_once(here):
    write_recipe(Path("random.yaml"), Path("text"), parser={"control": "random"})
    write_recipe(Path("parsed.yaml"), Path("text"), parser={})
    steps = [
        re.sub(r"data/\S*/", "", step.what)
        for step in plan_grid(["plain", "parsed", "random"], seeds=2)
    ]
    prepare = next(step for step in steps if step.startswith("prepare"))
    parsed = ["parse train.en", "parse valid.en", "add trees to the source"]
    tested = "translate and score test"
    first = [
        "find the text: text",
        prepare,
        "train runs/plain",
        tested,
        *parsed,
        "train runs/parsed",
        tested,
    ]
    runs = ["random", "plain-seed2", "parsed-seed2", "random-seed2"]
    assert steps == [*first, *(step for name in runs for step in (f"train runs/{name}", tested))]


def test_a_text_is_planned_once_for_all_runs_that_read_it(here, monkeypatch):
    write_corpus(Path("other"))
    write_recipe(Path("third.yaml"), Path("other"))
    found = []
    find = TextStage.find
    monkeypatch.setattr(
        TextStage, "find", lambda stage: found.append(stage.where[0].folder.name) or find(stage)
    )
    steps = plan_grid(["plain", "pascal", "third"], seeds=3)
    assert found == ["text", "other"]
    assert [step.what for step in steps].count("find the text: text") == 1


# tables


@pytest.fixture
def tested(tmp_path, monkeypatch):
    """Make runs with the translations of some test sets, given as name=references; tables are
    small."""
    monkeypatch.setattr(
        grid, "compare_systems", partial(grid.compare_systems, metrics=["bleu"], samples=10)
    )
    lines = [f"Der Affe {number} isst ." for number in range(4)]

    def make(name, *seeds, **tests):
        for seed in seeds or [""]:
            run = make_run(tmp_path / f"{name}{seed}")
            for test, references in tests.items():
                write_tests(run, lines, references or lines, hypothesis=lines, test=test)
            yield GridRun(name, run.recipe(), run.folder)

    return lambda name, *seeds, **tests: list(make(name, *seeds, **tests))


def systems_of(comparisons):
    return {test: [system.name for system in one.systems] for test, one in comparisons.items()}


def test_every_test_set_that_systems_share_has_a_table_and_the_log_names_who_lacks_it(
    tested, caplog
):
    a, b = tested("a", "", "-seed2", one=[], two=[], own=[]), tested("b", one=[], two=[])
    c, d = tested("c", two=[]), tested("d")
    # the order of training: the first seed of all comes first
    comparisons = compare_runs([a[0], *b, *c, *d, a[1]])
    assert [Path(name).name for name in systems_of(comparisons)["one"]] == ["a", "b"]
    assert systems_of(comparisons) == {"one": ["a", "b"], "two": ["a", "b", "c"]}
    assert [len(system.seeds) for system in comparisons["one"].systems] == [2, 1]
    for said in (
        "one is missing from c, d",
        "two is missing from d",
        "own is missing from b, c, d",
    ):
        assert f"test set {said}" in caplog.text


def test_runs_without_test_sets_have_no_table(tested, caplog):
    assert not compare_runs(tested("a"))
    assert "no recipe has a test set, so there is no table" in caplog.text
    caplog.clear()
    assert not compare_runs([])
    assert not caplog.text


def test_one_system_has_a_table_of_its_own(tested):
    assert systems_of(compare_runs(tested("a", test=[]))) == {"test": ["a"]}


def test_test_sets_of_one_name_with_other_references_have_no_table(tested, caplog):
    runs = [*tested("a", test=[]), *tested("b", test=["Ein anderer Satz ."] * 4)]
    assert not compare_runs(runs)
    assert "there is no table for the test set: " in caplog.text
    assert "its test set 'test' is not that of a: line 1" in caplog.text


def test_a_reason_that_runs_share_is_said_once():
    failed = [
        FailedRun(Path(name), reason)
        for name, reason in (("a", "no text"), ("b", "no room"), ("c", "no text"))
    ]
    assert GridRecord("finished", [], failed, {}).reasons() == ["a, c: no text", "b: no room"]
