"""`synmt analyze --robustness` on runs of small models."""

import json

import pytest
from small_run import PASCAL, TEXT, make_run, write_tests
from tiny import analyze, write_lines

from synmt.analysis.robustness.conditions import find_model_trees
from synmt.decode.translator import Translator
from synmt.parsing.parser import StanzaParser
from synmt.run_folder import Run
from synmt.syntax.conllu import format_conllu
from synmt.syntax.controls import Control

pytestmark = pytest.mark.journey

ENGLISH = [*TEXT[:3], ""]
GERMAN = [*TEXT[3:], ""]
UDD = {"name": "dependency_distribution", "kind": "udd", "layers": [1]}


def write_run(folder, *variants, hypothesis=None):
    """Write a finished run with translations of a test set, by default its own."""
    run = make_run(folder, *variants)
    return write_tests(run, ENGLISH, GERMAN, hypothesis or translations(run.folder)).folder


def translations(folder, *trees):
    return [
        one.text for one in Translator.load(Run(folder), device="cpu").translate(ENGLISH, *trees)
    ]


def write_trees(path, trees):
    """Write the trees of the lines that have words."""
    blocks = [
        format_conllu(tree, line, 1) for tree, line in zip(trees[:3], ENGLISH[:3], strict=True)
    ]
    path.write_text("".join(blocks), encoding="utf-8")
    return path


def ask(run, *arguments, code=0):
    return analyze("--robustness", "--run", run, *arguments, code=code)


def report(run, *arguments):
    """Return the report, and the row of each condition by its name, with its kind and share."""
    found = json.loads(ask(run, *arguments, "--json")[0])
    [table] = found["tables"]
    rows = [row | one for row, one in zip(table["rows"], found["conditions"], strict=True)]
    return found, {row["name"]: row for row in rows}


@pytest.fixture(scope="module")
def reader(tmp_path_factory):
    return write_run(tmp_path_factory.mktemp("runs") / "reader", PASCAL)


def test_the_test_set_is_translated_again_with_other_trees(reader, tmp_path):
    page, plot = tmp_path / "page.html", tmp_path / "plot.svg"
    given = [
        "--shares",
        "0,1",
        "--seed",
        "3",
        "--parser",
        "compact",
        "--html",
        page,
        "--plot",
        plot,
    ]
    found, rows = report(reader, *given)
    assert (found["system"], found["seed"], found["parser"]) == (
        "reader",
        3,
        "Stanza (compact, en)",
    )
    # the run's own translations are reproduced
    assert found["not_as_in_the_run"] == 0
    names = [
        "own",
        "100 % rewired",
        "random",
        "left",
        "right",
        "shuffled",
        "flat",
        "Stanza (compact, en)",
    ]
    assert list(rows) == names
    own, rewired, *_, again = rows.values()
    assert (own["uas"], own["difference"], again["uas"]) == (1, None, 1)
    assert (again["score"], again["changed"]) == (own["score"], 0)
    assert (rewired["kind"], rewired["share"]) == ("rewired", 1)
    assert rewired["uas"] < 0.5
    others = list(rows.values())[1:]
    steps = [(7 - rank) * p for rank, p in enumerate(sorted(row["p"] for row in others))]
    assert own["holm_p"] is None
    assert sorted(row["holm_p"] for row in others) == [
        min(1, max(steps[: rank + 1])) for rank in range(7)
    ]
    text = page.read_text(encoding="utf-8")
    assert "4 sentences with other trees, seed 3</h2>" in text
    assert "100 % rewired" in text
    assert "Words with a different parent" in plot.read_text(encoding="utf-8")


def test_the_table_is_explained(reader):
    path = reader / "tests" / "test" / "hypothesis.txt"
    # bytes: a model with random weights may produce carriage returns
    kept = path.read_bytes()
    path.write_bytes(kept.replace(b"\n", b" x\n", 1))
    try:
        printed, said = ask(reader, "--shares", "0", "--metric", "ter")
    finally:
        path.write_bytes(kept)
    assert "1 of 4 translations with the original trees differ from those stored in the run" in said
    assert printed.startswith("reader on the test set: 4 sentences with other trees, seed 1\n")
    assert "% rewired" not in printed
    assert "TER: lower is better" in printed


def test_impossible_options_are_refused_before_anything_is_parsed(reader, tmp_path):
    base = write_run(tmp_path / "base", hypothesis=GERMAN)
    for run, arguments, message in (
        (base, (), "the model reads no trees, so other trees change nothing"),
        (reader, ("--shares", "2"), "--shares: '2' is not a list of shares"),
        (reader, ("--plot", "x.txt"), "unsupported picture format"),
        (reader, ("--metric", "bleux"), "there is no metric 'bleux'"),
    ):
        printed, said = ask(run, *arguments, code=2)
        assert message in said
        assert "parsing" not in said
        assert printed == ""


def test_a_model_of_arc_probabilities_also_reads_certain_arcs(tmp_path):
    run = write_run(tmp_path / "udd", UDD)
    given = ("--shares", "0", "--parser", "compact")
    assert "the model reads arc probabilities" in ask(run, *given)[1]
    found, rows = report(run, *given)
    assert (found["probabilities_of_arcs"], found["not_as_in_the_run"]) == (True, 0)
    own, certain, *_, again = rows.values()
    assert (certain["name"], certain["share"], certain["uas"]) == ("own, but certain", 0, 1)
    # trees of another parser have probabilities; here it is the same parser
    assert (again["kind"], again["uas"], again["changed"], own["uas"]) == ("parser", 1, 0, 1)
    path = write_trees(tmp_path / "test.conllu", StanzaParser("en").parse(ENGLISH))
    printed, said = ask(run, "--parses", path, code=1)
    assert printed == ""
    assert (
        "line 1: the tree has no probabilities of arcs, and a variant reads them. Parse the "
        "text again" in said
    )


def test_a_model_of_gold_trees_is_measured_with_trees_from_a_file(tmp_path):
    run = write_run(tmp_path / "gold", PASCAL, hypothesis=GERMAN)
    trees = StanzaParser("en").parse(ENGLISH)
    write_lines(run / "tests" / "test" / "hypothesis.txt", translations(run, trees))
    info = json.loads((run / "run.json").read_text())
    del info["checksum"]
    (run / "run.json").write_text(json.dumps(info | {"parser": None}))
    _, said = ask(run, "--shares", "1", code=2)
    assert (
        "does not say which parser makes them. Give the trees of the test set with `--parses "
        "FILE.conllu`" in said
    )
    given = ("--parses", write_trees(tmp_path / "test.conllu", trees))
    found, rows = report(run, "--shares", "1", *given, "--parser", "compact")
    assert (found["parser"], found["not_as_in_the_run"]) == ("test.conllu", 0)
    assert list(rows)[-1] == "Stanza (compact, en)"
    assert rows["Stanza (compact, en)"]["uas"] == 1
    # it can be combined with other analyses
    ask(run, "--by-length", "--shares", "1", *given)
    said = analyze("--by-length", "--run", run, *given, code=2)[1]
    assert "no chosen analysis uses --parses. Add `--by-depth`" in said


def test_a_model_of_random_trees_is_also_measured_with_the_parsers_trees(tmp_path):
    controlled = Run(write_run(tmp_path / "random", PASCAL, hypothesis=GERMAN))
    recipe = controlled.recipe()
    parser = recipe.parser.model_copy(update={"control": "random"})
    controlled.write_recipe(recipe.model_copy(update={"parser": parser}))
    write_lines(
        controlled.folder / "tests" / "test" / "hypothesis.txt", translations(controlled.folder)
    )
    found, rows = report(controlled.folder, "--shares", "1", "--parser", "compact")
    assert (found["parser"], found["control"], found["not_as_in_the_run"]) == (
        "Stanza (compact, en)",
        "random",
        0,
    )
    unchanged, named = "Stanza (compact, en), unchanged", "Stanza (compact, en)"
    # no row `random`: the original trees are these random trees
    others = ["100 % rewired", "left", "right", "shuffled", "flat"]
    assert list(rows) == ["own (random)", *others, unchanged, named]
    # it is the same parser, and neither row has the control
    assert rows[named] | {"name": unchanged} == rows[unchanged]
    trees = StanzaParser("en").parse(ENGLISH)
    own = find_model_trees(Translator.load(controlled, device="cpu"), ENGLISH, trees)
    words = kept = 0
    for tree, read, key in zip(own.before_control, own.trees, own.keys, strict=True):
        drawn = Control("random", seed=recipe.parser.seed).apply(tree, key)
        assert drawn.parents.tolist() == read.parents.tolist()
        words += len(tree)
        kept += sum(drawn.parents == tree.parents)
    assert rows[unchanged]["uas"] == pytest.approx(kept / words)
    # a control of another seed has a row
    printed, _ = ask(controlled.folder, "--shares", "1", "--seed", "2")
    made = "random trees made from those of Stanza (compact, en)"
    assert f"own: the original trees, which the model reads ({made}); '{unchanged}': " in printed
    assert "\nrandom  " in printed
