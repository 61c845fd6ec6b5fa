"""`synmt analyze --robustness` on runs of small models."""

import json
import shutil

import pytest
from small_run import PASCAL, TEXT, make_run, write_tests
from tiny import analyze, write_lines

from synmt.decode.translator import Translator
from synmt.evaluation.significance import holm
from synmt.parsing.parser import StanzaParser
from synmt.syntax.conllu import format_conllu

pytestmark = pytest.mark.journey

ENGLISH = [*TEXT[:3], ""]
GERMAN = [*TEXT[3:], ""]
PARSER = "Stanza (compact, en)"
CONTROLS = ["random", "left", "right", "shuffled", "flat"]


def write_run(folder, *variants, control="none", trees=(), parser=True):
    """Write a finished run with its own translations of a test set, and these changes."""
    run = make_run(folder, *variants, parser=parser)
    recipe = run.recipe()
    section = recipe.parser.model_copy(update={"control": control})
    run.write_recipe(recipe.model_copy(update={"parser": section}))
    translator = Translator.load(run, device="cpu")
    hypothesis = [one.text for one in translator.translate(ENGLISH, *trees)]
    return write_tests(run, ENGLISH, GERMAN, hypothesis).folder


def write_trees(path, trees):
    """Write the trees of the lines that have words."""
    pairs = zip(trees[:3], ENGLISH[:3], strict=True)
    return write_lines(path, ["".join(format_conllu(tree, line, 1) for tree, line in pairs)])


def ask(run, *arguments, code=0):
    return analyze("--robustness", "--run", run, *arguments, code=code)


def report(run, *arguments):
    """Return the report, and the row of each condition by its name."""
    found = json.loads(ask(run, *arguments, "--json")[0])
    [table] = found["tables"]
    return found, {row["name"]: row for row in table["rows"]}


@pytest.fixture(scope="module")
def reader(tmp_path_factory):
    return write_run(tmp_path_factory.mktemp("runs") / "reader", PASCAL)


def test_the_test_set_is_translated_again_with_other_trees(reader, tmp_path):
    page, plot = tmp_path / "page.html", tmp_path / "plot.svg"
    options = ["--shares", "0,1", "--seed", "3", "--parser", "compact", "--html"]
    found, rows = report(reader, *options, page, "--plot", plot)
    # the run's own translations are reproduced
    assert found["not_as_in_the_run"] == 0
    assert f"original trees: {PARSER}" in found["notes"]
    assert list(rows) == ["own", "100 % rewired", *CONTROLS, PARSER]
    own, *others = rows.values()
    rewired, again = others[0], others[-1]
    assert (again["score"], again["changed"], again["uas"]) == (own["score"], 0, 1)
    assert rewired["uas"] < 0.5
    assert [row["holm_p"] for row in others] == holm(found["p"][1:])
    assert "4 sentences with other trees, seed 3</h1>" in page.read_text(encoding="utf-8")
    assert "Words with a different parent" in plot.read_text(encoding="utf-8")


def test_other_translations_than_those_of_the_run_are_counted(reader, tmp_path):
    run = shutil.copytree(reader, tmp_path / "reader")
    path = run / "tests" / "test" / "hypothesis.txt"
    # bytes: a model with random weights may produce carriage returns
    path.write_bytes(path.read_bytes().replace(b"\n", b" x\n", 1))
    found, _ = report(run, "--shares", "0", "--metric", "ter")
    assert found["not_as_in_the_run"] == 1
    assert "TER: lower is better" in found["tables"][0]["notes"]


def test_impossible_options_are_refused_before_anything_is_parsed(reader):
    for option, value, words in (
        ("--shares", "2", "--shares: '2' is not a list of shares"),
        ("--plot", "x.txt", "unsupported picture format"),
        ("--metric", "bleux", "there is no metric 'bleux'"),
    ):
        printed, errors = ask(reader, option, value, code=2)
        assert words in errors
        assert (printed, "parsing" in errors) == ("", False)


def test_a_model_of_arc_probabilities_also_reads_certain_arcs(tmp_path):
    variant = {"name": "dependency_distribution", "kind": "udd", "layers": [1]}
    run = write_run(tmp_path / "udd", variant)
    found, rows = report(run, "--shares", "0", "--parser", "compact")
    assert (found["probabilities_of_arcs"], found["not_as_in_the_run"]) == (True, 0)
    own, certain, *_, again = rows.values()
    assert (certain["name"], certain["uas"]) == ("own, but certain", 1)
    # trees of another parser have probabilities; here it is the same parser
    assert (again["name"], again["uas"], again["changed"], own["uas"]) == (PARSER, 1, 0, 1)
    path = write_trees(tmp_path / "test.conllu", StanzaParser("en").parse(ENGLISH))
    assert "tree has no probabilities of arcs" in ask(run, "--parses", path, code=1)[1]


def test_a_model_of_gold_trees_is_measured_with_trees_from_a_file(tmp_path):
    trees = StanzaParser("en").parse(ENGLISH)
    run = write_run(tmp_path / "gold", PASCAL, trees=[trees], parser=False)
    assert "with `--parses FILE.conllu`" in ask(run, "--shares", "1", code=2)[1]
    options = ("--shares", "1", "--parses", write_trees(tmp_path / "test.conllu", trees))
    found, rows = report(run, *options, "--parser", "compact")
    assert ("original trees: test.conllu" in found["notes"], found["not_as_in_the_run"]) == (
        True,
        0,
    )
    assert list(rows)[-1] == PARSER
    assert rows[PARSER]["uas"] == 1
    # it can be combined with other analyses
    ask(run, "--by-length", *options)


def test_a_model_of_random_trees_is_also_measured_with_the_parsers_trees(tmp_path):
    run = write_run(tmp_path / "random", PASCAL, control="random")
    found, rows = report(run, "--shares", "1", "--parser", "compact")
    assert found["not_as_in_the_run"] == 0
    # no row `random`: the original trees are these random trees
    unchanged = f"{PARSER}, unchanged"
    assert list(rows) == ["own (random)", "100 % rewired", *CONTROLS[1:], unchanged, PARSER]
    # it is the same parser, and neither row has the control
    assert rows[PARSER] | {"name": unchanged} == rows[unchanged]
    assert rows[unchanged]["uas"] < 1
    # a control of another seed has a row
    assert "random" in report(run, "--shares", "1", "--seed", "2")[1]
