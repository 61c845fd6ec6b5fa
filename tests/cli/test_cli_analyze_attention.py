"""`synmt analyze --attention` on runs of small models."""

import json

import numpy as np
import pytest
from small_run import LSTM, PASCAL, SIZE, TEXT, flat_conllu, make_run, write_tests
from tiny import analyze

from synmt.parsing.parser import StanzaParser
from synmt.syntax.conllu import format_conllu

pytestmark = pytest.mark.journey

SOURCE, REFERENCE = [*TEXT[:3], ""], [*TEXT[3:], "Ja."]


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """Runs with random weights and translations of a test set."""
    project = tmp_path_factory.mktemp("project")
    runs = [
        make_run(project / "runs" / "pascal", PASCAL),
        make_run(project / "runs" / "many", PASCAL, model={**SIZE, "encoder_layers": 5}),
        make_run(project / "runs" / "english", source="de", target="en", parser=False),
        make_run(project / "runs" / "lstm", {"name": "latent_tree"}, model=LSTM, parser=False),
        make_run(project / "runs" / "bare", model=LSTM, parser=False),
        make_run(project / "runs" / "lost", PASCAL, parser=False),
    ]
    for run in runs:
        source, reference = (
            (REFERENCE, SOURCE) if run.folder.name == "english" else (SOURCE, REFERENCE)
        )
        write_tests(run, source, reference, reference[1:] + reference[:1])
    return project


def output(project, name, *arguments, code=0):
    return analyze("--attention", "--run", f"runs/{name}", *arguments, code=code, cwd=project)


def report(project, name, *arguments):
    return json.loads(output(project, name, *arguments, "--json")[0])


def rows_of(found, key="name"):
    """Return the rows of the table with such a column."""
    return next(table["rows"] for table in found["tables"] if key in table["rows"][0])


def test_every_head_is_shown_with_the_name_of_its_variant_above_the_baselines(project):
    shown, said = output(project, "pascal")
    lines = shown.splitlines()
    assert lines[0] == "pascal: self-attention of the source"
    trees = "source of the test set, with trees of Stanza (compact, en), as the model reads it; "
    assert lines[2].startswith(trees)
    assert lines[2].endswith("pieces in 3 sentences; 20 words, neither punctuation nor roots")
    rows = [line.split() for line in lines]
    titles = [
        "head",
        "bits",
        "of max",
        "parent",
        "95 % interval",
        "weight",
        "mostly at",
        "share",
        "no word",
    ]
    assert " ".join(titles).split() in rows
    heads = [row[1] for row in rows if row[:1] == ["head"]]
    assert heads[1:] == ["1.1", "1.2", "1.3", "1.4", "2.1", "2.2", "2.3", "2.4"]
    assert "head 1.1 (pascal)" in shown
    assert any(row[:2] == ["previous", "word"] for row in rows)
    assert sum(line.startswith("head") and "*" in line for line in lines) == 1
    assert "compared with: source parsed by Stanza (compact, en)" in said
    assert "sentences left out: 1 without words" in said


def test_json_has_everything_in_the_table_and_the_map(project):
    found = report(project, "pascal", "--sentence", "2")
    assert (found["system"], found["attention"], found["of"]) == ("pascal", "source", "source")
    assert found["left_out"] == {"too_long": 0, "empty": 1}
    assert [head["variant"] for head in found["heads"][:3]] == ["pascal", "pascal", None]
    names, words = [head["name"] for head in found["heads"]], rows_of(found, "relation")
    rows = rows_of(found)[: len(names)]
    assert [row["name"] for row in rows] == names
    for row in rows:
        low, high = row["95 % interval"]
        assert 0 <= row["of max"] <= 1
        assert low <= row["parent"] <= high
        assert 0 <= row["weight"] <= 1 - row["no word"]
        agreed = sum(
            one["words"] * found["relations"][one["relation"]][row["name"]] for one in words
        )
        assert agreed == pytest.approx(found["words"] * row["parent"])
    shown = found["map"]
    assert shown["sentence"] == 2
    assert shown["rows"][0].startswith("▁A")
    assert list(shown["heads"]) == names
    for panel in shown["heads"].values():
        np.testing.assert_allclose(np.sum(panel, 1), 1, atol=1e-4)
    # a single head has the same statistics
    assert rows_of(report(project, "pascal", "--head", "1.2"))[0] == rows[1]


def test_all_of_many_heads_are_listed(project):
    shown, _ = output(project, "many")
    assert sum(line.startswith("head ") for line in shown.splitlines()) == 1 + 20
    assert max(map(len, shown.splitlines()[3:])) <= 100


def test_on_the_target_only_parents_to_the_left_count(project):
    shown, _ = output(project, "english", "--side", "target")
    assert "words, neither punctuation nor roots, with a parent to the left (" in shown
    assert shown.startswith(
        "english: self-attention of the target\n\nreference of the test set, with trees of Stanza "
        "(compact, en); "
    )
    found = report(project, "english", "--side", "target")
    assert 0 < found["parents_in_sight"] < 1
    assert all(row["best offset"] < 0 for row in rows_of(found, "relation"))
    assert found["map"]["rows"][0] == "<s>"


def test_attention_to_the_source_uses_the_runs_own_translation_and_no_parser(project):
    found = report(project, "english", "--what", "cross")
    assert (found["attention"], found["of"], found["parser"]) == (
        "cross",
        "the run's own translation",
        None,
    )
    assert (found["words"], found["relations"], found["best"]) == (0, {}, None)
    # line 1 of the translations is line 2 of the references
    assert found["map"]["rows"][0].startswith("▁A")
    shown, said = output(project, "english", "--what", "cross")
    assert ["head", "bits", "of", "max", "no", "word"] in [
        line.split() for line in shown.splitlines()
    ]
    assert "parent" not in shown
    assert "parsed by" not in said


def test_an_lstm_reports_its_attention_to_the_source_and_logs_it(project):
    found = report(project, "bare")
    assert [head["name"] for head in found["heads"]] == ["attention"]
    assert rows_of(found)[0]["no word"] == 0
    assert (
        "an LSTM has no self-attention: this is its attention to the source\n"
        in output(project, "bare")[1]
    )
    assert "no self-attention" not in output(project, "bare", "--what", "cross")[1]


def test_an_lstm_with_latent_trees_shows_them(project):
    shown, said = output(project, "lstm")
    assert shown == output(project, "lstm", "--what", "parents")[0]
    assert (
        "these are the probable parents in its annotations; `--what cross` shows its attention to "
        "the source" in said
    )
    assert report(project, "lstm", "--what", "cross")["attention"] == "cross"
    _, said = output(project, "lstm", "--what", "bias", code=2)
    also = (
        "`--what cross` shows its attention to the source, `--what parents` the probable "
        "parents in its annotations"
    )
    assert also in said


def test_latent_trees_are_compared_with_the_parsers_trees(project):
    shown, said = output(project, "lstm", "--what", "parents", "--html", "parents.html")
    assert shown.startswith(
        "lstm: probable parents in the annotations of the source\n\nsource of the test set, with "
        "trees of"
    )
    assert [line[:26] for line in shown.splitlines() if line.startswith("latent")] == [
        "latent trees (latent_tree)"
    ]
    assert "no word: weight on task tags" in shown
    assert "compared with: source parsed by Stanza (compact, en)" in said
    page = (project / "parents.html").read_text(encoding="utf-8")
    assert "Rows: piece; columns: probable parent; on the diagonal: the root" in page
    found = report(project, "lstm", "--what", "parents")
    assert (found["attention"], found["words"], found["map"]["what"]) == ("parents", 20, "parents")
    [row] = found["map"]["heads"].values()
    np.testing.assert_allclose(np.array(row).sum(1), 1, atol=1e-5)


def test_plots_and_pages_are_written(project):
    for ending in ("png", "svg", "pdf"):
        said = output(project, "pascal", "--what", "factor", "--plot", f"factor.{ending}")[1]
        assert f"plot: factor.{ending}" in said
        assert (project / f"factor.{ending}").stat().st_size > 1000
    assert "sentence 1, source" in (project / "factor.svg").read_text(encoding="utf-8")
    output(project, "pascal", "--html", "page.html")
    page = (project / "page.html").read_text(encoding="utf-8")
    assert "pascal: self-attention of the source</h2>" in page
    assert page.count("<img ") == 2
    assert "Framed: heads of pascal." in page
    assert '<p class="faint">mostly at: most frequent offset of the highest weight' in page
    assert "All heads share one scale." in page
    output(project, "lstm", "--html", "page.html")
    assert (project / "page.html").read_text(encoding="utf-8").count("<img ") == 1


def test_trees_of_a_file_are_read_and_compared_with(project):
    trees = StanzaParser("en").parse(SOURCE)
    blocks = [
        format_conllu(tree, line, number)
        for number, (tree, line) in enumerate(zip(trees, SOURCE, strict=True), 1)
    ]
    (project / "test.conllu").write_text("".join(blocks))
    own, given = (
        report(project, "pascal", *arguments) for arguments in ((), ("--parses", "test.conllu"))
    )
    assert (own.pop("parser"), given.pop("parser")) == (
        "Stanza (compact, en), as the model reads it",
        "test.conllu, as the model reads it",
    )
    assert given == own
    (project / "flat.conllu").write_text(flat_conllu(SOURCE))
    flat = report(project, "pascal", "--parses", "flat.conllu")
    assert (flat["map"], flat["words"]) != (own["map"], own["words"])
    # this run does not know its parser
    shown, said = output(project, "lost", "--parses", "test.conllu", "--what", "factor")
    assert "\nsource of the test set, with trees of test.conllu, as the model reads it; " in shown
    assert "compared with" not in said
    across = report(project, "lost", "--parses", "test.conllu", "--what", "cross")
    assert (across["attention"], across["parser"]) == ("cross", None)


@pytest.mark.parametrize(
    ("name", "arguments", "said"),
    [
        (
            "pascal",
            "--side sources",
            "there is no side 'sources'. Sides: source, target. Did you mean 'source'?",
        ),
        (
            "pascal",
            "--what factors",
            "heat maps do not show 'factors'. They show weights, factor, bias, cross, parents.",
        ),
        ("pascal", "--head 9.1", "'9.1' is not a head. LAYER.HEAD: 1.1 to"),
        ("pascal", "--head best", "'best' is not a head"),
        (
            "pascal",
            "--sentence 5",
            "--sentence 5: the test set has no such sentence. Sentences 1 to 4",
        ),
        (
            "pascal",
            "--sentence 4",
            "--sentence 4: the source or the target of this sentence is empty",
        ),
        ("pascal", "--what bias", "no head of the source has a bias to show"),
        ("pascal", "--plot x.gif", "x.gif: unsupported picture format"),
        ("lstm", "--what bias", "an LSTM has no self-attention, and so no bias"),
        ("lstm", "--what parents --side target", "--what parents: only the source has annotations"),
        ("lstm", "--what parents --head 1.1", "--head: annotations of the source have no heads"),
        (
            "pascal",
            "--what parents",
            "the source of this model has no annotations with probable parents",
        ),
        ("lstm", "--head 1.1", "--head: annotations of the source have no heads"),
        ("bare", "--head 1.1", "an LSTM has a single attention to the source, without heads"),
        (
            "lost",
            "",
            "its run does not say which parser makes them. Give the trees of the test set with "
            "`--parses",
        ),
        (
            "pascal",
            "--parses x --side target",
            "--parses: trees of the source are no trees of the target. Leave out",
        ),
        (
            "lost",
            "--side target",
            "its run does not say which parser makes them. Use a run that records its parser.",
        ),
        (
            "bare",
            "--parses x",
            "--parses: nothing is compared with trees, and the model reads none. Leave out "
            "`--parse",
        ),
        ("pascal", "--parses x --parser y", "`--parses` has the trees, and no parser is needed"),
    ],
)
def test_impossible_options_are_refused_with_one_sentence(project, name, arguments, said):
    printed, errors = output(project, name, *arguments.split(), code=2)
    assert printed == ""
    assert said in errors
