"""Which run, and which parser of a run, a command takes, and what it says of that."""

import pytest
from small_run import PASCAL, TEXT, flat_conllu, make_run, write_tests
from tiny import fail, succeed, synmt

from synmt.decode.records import format_number
from synmt.recipe.data import ParserRecipe

pytestmark = pytest.mark.journey


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """Make a plain run, the newest one, with a test set, and PASCAL runs."""
    folder = tmp_path_factory.mktemp("project")
    plain = write_tests(make_run(folder / "runs/plain", parser=False), TEXT[:3], TEXT[3:])
    plain.write_info(finished_at="2026-02-01T00:00:00+00:00")
    pascal = make_run(folder / "runs/pascal", PASCAL)
    gone = make_run(folder / "runs/gone", PASCAL)
    gone.write_info(parser={**pascal.info()["parser"], "model": "/where/it/was"})
    for name, control in CONTROLS.items():
        run = make_run(folder / "runs" / name, PASCAL)
        run.write_recipe(run.recipe().model_copy(update={"parser": ParserRecipe(**control)}))
    (folder / "flat").write_text(flat_conllu(TEXT[:1]))
    (folder / "trees").write_text(flat_conllu(TEXT[:3]))
    return folder


@pytest.fixture
def ask(project):
    """Run a command as it is typed."""

    def run(command, made=succeed):
        return made(*command.split(), text=f"{TEXT[0]}\n", cwd=project)

    return run


CONTROLS = {
    "gold": {"control": "gold"},
    "random": {"control": "random"},
    "both": {"control": "left", "rewire": 1.0},
}


@pytest.mark.parametrize(
    ("run", "said"),
    [
        ("random", "the model reads random trees"),
        ("both", "the model reads left, 100 % rewired trees"),
    ],
)
def test_other_trees_are_refused_where_a_control_replaces_them_and_given_ones_warned_of(
    ask, run, said
):
    command = f"translate --run runs/{run}"
    errors = ask(f"{command} --parse-override flat", lambda *typed, **how: fail(2, *typed, **how))
    assert "--parse-override: " in errors
    assert said in errors
    assert ask(f"{command} --parses flat").stderr.decode().count(said) == 1


def test_no_number_is_less_than_nothing_by_nothing_and_files_need_no_run(ask):
    for value, text in [(-0.00004, "0.0000"), (-0.0, "0.0000"), (-0.00006, "-0.0001")]:
        assert format_number(value) == text
    tests = "runs/plain/tests/test"
    files = f"--hypotheses {tests}/hypothesis.txt --references {tests}/reference.txt"
    assert b"run: " not in ask(f"analyze --by-length --side target {files}").stderr


def test_gold_trees_are_no_control_of_those_that_are_given(ask):
    done = ask("translate --run runs/gold --parses flat --parse-override flat")
    assert b"the run " not in done.stderr


def test_a_run_that_was_not_named_is_named_once_unless_all_is_quiet(ask):
    command = "translate"
    chosen = ask(command)
    assert chosen.stderr.decode().splitlines().count("run: runs/plain") == 1
    for other in (f"--quiet {command}", f"{command} --run runs/plain"):
        done = ask(other)
        assert done.stdout == chosen.stdout
        assert b"run: runs/plain" not in done.stderr


def test_a_parser_that_has_moved_is_named_by_an_option(ask):
    moved = "translate --no-parse-cache --run runs/gone"
    errors = ask(moved, synmt).stderr.decode()
    for part in ("/where/it/was", "--parses FILE.conllu", "--parser FOLDER"):
        assert part in errors
    done = ask(f"{moved} --parser compact")
    assert b"the parser is not the one" not in done.stderr
    assert done.stdout == ask("translate --no-parse-cache --run runs/pascal").stdout
