"""Which run, and which parser of a run, a command takes, and what it says of that."""

import pytest
from small_run import PASCAL, TEXT, flat_conllu, make_run
from tiny import fail, succeed, synmt

from synmt.decode.records import format_number
from synmt.recipe.data import ParserRecipe

pytestmark = pytest.mark.journey

INPUT = f"{TEXT[0]}\n"
NEEDED = ("translate", "--no-parse-cache", "--run")


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """Make a plain run, the newest one, with a test set, and PASCAL runs."""
    folder = tmp_path_factory.mktemp("project")
    plain = make_run(folder / "runs/plain", parser=False)
    plain.write_info(finished_at="2026-02-01T00:00:00+00:00")
    plain.test_folder("test").mkdir(parents=True)
    for name, lines in (("source", TEXT[:3]), ("reference", TEXT[3:]), ("hypothesis", TEXT[3:])):
        (plain.test_folder("test") / f"{name}.txt").write_text(
            "".join(f"{line}\n" for line in lines)
        )
    pascal = make_run(folder / "runs/pascal", PASCAL)
    gone = make_run(folder / "runs/gone", PASCAL)
    gone.write_info(parser={**pascal.info()["parser"], "model": "/where/it/was"})
    (folder / "flat.conllu").write_text(flat_conllu(TEXT[:1]))
    return folder


def controlled(project, **parser):
    """Make a run whose trees are replaced by others."""
    run = make_run(project / "runs" / "-".join(map(str, parser.values())), PASCAL)
    run.write_recipe(run.recipe().model_copy(update={"parser": ParserRecipe(**parser)}))
    return run.folder


@pytest.mark.parametrize(
    ("parser", "said"),
    [
        ({"control": "random"}, "the run replaces every tree by a random tree (parser.control)"),
        ({"rewire": 0.3}, "the run gives 30 % of the words another parent (parser.rewire)"),
        (
            {"control": "left", "rewire": 1.0},
            "left-branching chain (parser.control) and gives 100 % of the words",
        ),
    ],
    ids=str,
)
def test_other_trees_are_refused_where_a_control_replaces_them_and_given_ones_warned_of(
    project, parser, said
):
    run = controlled(project, **parser)
    errors = fail(
        2, "translate", "--run", run, "--parse-override", project / "flat.conllu", text=INPUT
    )
    assert said in errors
    assert "--parse-override: " in errors
    warned = succeed("translate", "--run", run, "--parses", project / "flat.conllu", text=INPUT)
    assert warned.stderr.decode().count(said) == 1


def test_gold_trees_are_no_control_of_those_that_are_given(project):
    run = controlled(project, control="gold")
    both = ("--parses", project / "flat.conllu", "--parse-override", project / "flat.conllu")
    done = succeed("translate", "--run", run, *both, text=INPUT)
    assert b"the run " not in done.stderr


@pytest.mark.parametrize(
    ("value", "sign", "written"),
    [
        (-0.00004, "", "0.0000"),
        (-0.0, "+", "+0.0000"),
        (-0.00006, "", "-0.0001"),
        (1.25, "+", "+1.2500"),
    ],
)
def test_no_number_is_less_than_nothing_by_nothing(value, sign, written):
    assert format_number(value, sign) == written


@pytest.mark.parametrize(
    "command",
    [
        ("translate",),
        ("analyze", "--by-length"),
        ("analyze", "--by-length", "--by-distance", "--parses", "t.conllu"),
    ],
    ids=str,
)
def test_a_run_that_was_not_named_is_named_once_unless_all_is_quiet(project, command):
    (project / "t.conllu").write_text(flat_conllu(TEXT[:3]))
    chosen = succeed(*command, text=INPUT, cwd=project)
    assert chosen.stderr.decode().splitlines().count("run: runs/plain") == 1
    for arguments in (("--quiet", *command), (*command, "--run", "runs/plain")):
        other = synmt(*arguments, text=INPUT, cwd=project)
        assert other.stdout == chosen.stdout
        assert b"run: runs/plain" not in other.stderr


def test_translations_in_files_need_no_run_and_name_none(project):
    folder = project / "runs/plain/tests/test"
    files = ("--hypotheses", folder / "hypothesis.txt", "--references", folder / "reference.txt")
    done = succeed("analyze", "--by-length", "--side", "target", *files, cwd=project)
    assert b"run: " not in done.stderr


def test_a_run_that_is_not_there_is_likened_to_one_beside_it(project):
    errors = fail(1, "translate", "--run", "runs/pascall", text=INPUT, cwd=project)
    assert "runs/pascall: no such folder. Did you mean 'runs/pascal'?" in errors


def test_a_parser_that_has_moved_is_named_by_an_option(project):
    errors = fail(1, *NEEDED, "runs/gone", text=INPUT, cwd=project)
    for part in ("/where/it/was", "--parses FILE.conllu", "--parser FOLDER"):
        assert part in errors
    moved = succeed(*NEEDED, "runs/gone", "--parser", "compact", text=INPUT, cwd=project)
    assert b"the parser is not the one" not in moved.stderr
    assert moved.stdout == synmt(*NEEDED, "runs/pascal", text=INPUT, cwd=project).stdout


def test_a_parser_is_of_no_use_to_a_model_that_reads_no_trees(project):
    done = succeed(
        "translate", "--run", "runs/plain", "--parser", "compact", text=INPUT, cwd=project
    )
    assert b"the model reads no trees, so --parser has no effect" in done.stderr
