"""`synmt analyze --attention` on runs of small models."""

import json

import numpy as np
import pytest
from cases import cases
from small_run import LSTM, PASCAL, TEXT, flat_conllu, make_run, write_tests
from tiny import analyze

from synmt.parsing.parser import StanzaParser
from synmt.syntax.conllu import format_conllu

pytestmark = pytest.mark.journey

SOURCE, REFERENCE = [*TEXT[:3], ""], [*TEXT[3:], "Ja."]
PARSER = "Stanza (compact, en)"


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """Runs with random weights and translations of a test set."""
    project = tmp_path_factory.mktemp("project")
    for name, variants, model in (
        ("pascal", [PASCAL], {}),
        ("english", [], {"source": "de", "target": "en", "parser": False}),
        ("lstm", [{"name": "latent_tree"}], {"model": LSTM, "parser": False}),
        ("bare", [], {"model": LSTM, "parser": False}),
        ("lost", [PASCAL], {"parser": False}),
    ):
        run = make_run(project / "runs" / name, *variants, **model)
        lines = (REFERENCE, SOURCE) if name == "english" else (SOURCE, REFERENCE)
        write_tests(run, *lines, lines[1][1:] + lines[1][:1])
    return project


def output(project, name, *arguments, code=0):
    return analyze("--attention", "--run", f"runs/{name}", *arguments, code=code, cwd=project)


def report(project, name, *arguments):
    return json.loads(output(project, name, *arguments, "--json")[0])


def rows_of(found, key="name"):
    """Return the rows of the table with such a column."""
    return next(table["rows"] for table in found["tables"] if key in table["rows"][0])


def test_heads_are_compared_with_parents_and_everything_is_in_the_json(project):
    plot, page = project / "factor.svg", project / "page.html"
    drawn = ("--what", "factor", "--plot", plot, "--html", page)
    shown, remarks = output(project, "pascal", *drawn)
    assert f"\ntrees: {PARSER}, as the model reads it\n" in shown
    assert "sentences left out: 0 too long, 1 empty" in remarks
    assert "sentence 1, source" in plot.read_text(encoding="utf-8")
    assert page.read_text(encoding="utf-8").count("<img ") == 1

    found = report(project, "pascal", "--sentence", "2")
    assert found["left_out"] == {"too_long": 0, "empty": 1}
    words, rows = rows_of(found, "relation"), rows_of(found)[:8]
    assert [row["name"] for row in rows[1:3]] == ["head 1.2 (pascal)", "head 1.3"]
    for row in rows:
        shares = [found["relations"][one["relation"]][row["name"]] for one in words]
        agreed = np.dot([one["words"] for one in words], shares)
        assert agreed == pytest.approx(found["words"] * row["parent"])
    assert (found["map"]["sentence"], found["map"]["rows"][0][:2]) == (2, "▁A")
    # a single head has the same statistics
    assert rows_of(report(project, "pascal", "--head", "1.2"))[0] == rows[1]


def test_on_the_target_only_parents_to_the_left_count(project):
    found = report(project, "english", "--side", "target")
    assert found["parents_out_of_sight"] > 0
    assert all(row["best offset"] < 0 for row in rows_of(found, "relation"))


def test_attention_to_the_source_uses_the_runs_own_translation_and_no_parser(project):
    found = report(project, "english", "--what", "cross")
    assert {"attention": "cross", "words": 0, "relations": {}}.items() <= found.items()
    assert not any("trees" in note for note in found["notes"])
    # line 1 of the translations is line 2 of the references
    assert found["map"]["rows"][0].startswith("▁A")


def test_an_lstm_shows_its_latent_trees_or_its_attention_to_the_source(project):
    found = report(project, "lstm")
    assert found == report(project, "lstm", "--what", "parents")
    assert (found["attention"], found["words"]) == ("parents", 20)
    assert report(project, "lstm", "--what", "cross")["attention"] == "cross"
    assert report(project, "bare")["attention"] == "cross"


def test_trees_of_a_file_are_read_and_compared_with(project):
    trees = StanzaParser("en").parse(SOURCE)
    blocks = [format_conllu(tree, line, 1) for tree, line in zip(trees, SOURCE, strict=True)]
    given = project / "test.conllu"
    given.write_text("".join(blocks))
    own = report(project, "pascal")
    found = report(project, "pascal", "--parses", given)
    assert "trees: test.conllu, as the model reads it" in found.pop("notes")
    assert found == {name: value for name, value in own.items() if name != "notes"}
    given.write_text(flat_conllu(SOURCE))
    assert report(project, "pascal", "--parses", given)["map"] != own["map"]
    # this run does not know its parser
    found = report(project, "lost", "--parses", given, "--what", "cross")
    assert found["attention"] == "cross"


IMPOSSIBLE = """
pascal => --side sources => 'sources' is not one of 'source', 'target'
pascal => --what factors => 'factors' is not one of 'weights',
pascal => --plot x.gif => x.gif: unsupported picture format
lstm => --what bias => --what bias: no chosen head of the source has a bias
lost => => UNKNOWN, or give the trees of the text with `--parses FILE.conllu`
lost => --side target => UNKNOWN
""".replace(
    "UNKNOWN", "its run does not say which parser makes them. Use a run that records its parser"
)


@pytest.mark.parametrize(("name", "arguments", "words"), cases(IMPOSSIBLE))
def test_impossible_options_are_refused_with_one_sentence(project, name, arguments, words):
    printed, errors = output(project, name, *arguments.split(), code=2)
    assert printed == ""
    assert words in errors
