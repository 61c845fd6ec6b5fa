"""`synmt analyze --gates` on runs of small models."""

import json
import shutil

import pytest
from small_run import LSTM, TEXT, make_run, write_tests
from tiny import analyze

from synmt.parsing.models import COMPACT
from synmt.run_folder import Run
from synmt.training.tree_sources.requirements import make_analysis_parser

pytestmark = pytest.mark.journey

LONG, LANG = " ".join(TEXT[:3]), " ".join(TEXT[3:])
ENGLISH = [*TEXT[:3], "", "Yes!", LONG, "A dog."]
GERMAN = [*TEXT[3:], "Ja.", "", "Ein Hund.", LANG]
TREE = {"name": "latent_tree"}


def write_run(
    folder, *variants, model=LSTM, languages=("de", "en"), parser="compact", tests=("test",)
):
    """Write a finished run from German to English with random weights, and its translations of test
    sets."""
    source, target = languages
    target_parser = {"model": parser, "device": "cpu"}
    sections = {"source": source, "target": target, "target_parser": target_parser}
    run = make_run(folder, *variants, model=model, parser=False, max_pieces=40, **sections)
    for test in tests:
        write_tests(run, GERMAN, ENGLISH, test=test)
    return folder


def output(folder, *arguments, code=0):
    return analyze("--gates", "--run", folder, *arguments, code=code)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return write_run(tmp_path_factory.mktemp("runs") / "sa", TREE, tests=("other", "test"))


def test_the_report_the_page_and_the_figure_agree(run, tmp_path):
    page, plot = tmp_path / "gates.html", tmp_path / "gates.svg"
    printed, said = output(run, "--json", "--html", page, "--plot", plot)
    report = json.loads(printed)
    assert (report["system"], report["test"], report["of"]) == ("sa", "test", "reference")
    assert report["tagger"] == "Stanza (compact, en)"
    # line 4 has no target, line 5 no source; line 6 has too long a target, line 7 too long a source
    assert [line["target"] for line in report["lines"]] == TEXT[:3]
    assert report["left_out"] == {"too_long": 2, "empty": 2}
    assert "sentences left out: 2 with more pieces than the model takes, 2 without words\n" in said
    assert report["words_without_pieces"] == 0
    first = report["lines"][0]
    assert [word["word"] for word in first["words"]] == [
        "The",
        "monkey",
        "eats",
        "a",
        "banana",
        ".",
    ]
    assert [word["tag"] for word in first["words"]] == [
        "DET",
        "NOUN",
        "VERB",
        "DET",
        "NOUN",
        "PUNCT",
    ]
    assert all(0 < word["norm"] < 1 for line in report["lines"] for word in line["words"])
    assert report["sentences"] == 3
    [table] = report["tables"]
    assert sum(row["words"] for row in table["rows"]) == report["words"]
    assert report["words"] == sum(len(line["words"]) for line in report["lines"])
    text = page.read_text(encoding="utf-8")
    for word in first["words"]:
        assert (
            f'{word["word"]}<small dir="ltr" lang="en">{word["tag"]} {word["norm"]:.3f}</small>'
            in text
        )
    assert text.count("<img ") == 1
    drawn = plot.read_text(encoding="utf-8")
    for row in table["rows"]:
        assert f"{100 * row['highest']:.1f} ({100 * row['expected']:.1f})" in drawn
    assert f"plot: {plot}\npage: {page}\n" in said
    assert "gates are read while the model is forced to produce the references" in said
    assert "test set: test; choose another one with --test: other" in said


def test_the_table_is_for_people(run, tmp_path):
    page = tmp_path / "gates.htm"
    page.write_text("old", encoding="utf-8")
    printed, said = output(run, "--test", "other", "--html", page)
    lines = printed.splitlines()
    assert lines[0].startswith("sa on test set other: gates of ")
    assert " ".join(lines[2].split()) == "tag words share norm highest chance ratio 95 % no PUNCT"
    assert "norm: mean norm of the gate, 0 = closed, 1 = open" in printed
    assert "tags: Stanza (compact, en)" in printed
    assert "*: fewer than 10 words" in printed
    assert max(map(len, lines[2:10])) <= 80
    assert f"page: {page} (replaced)" in said
    assert "choose another one with --test" not in said


@pytest.mark.parametrize(
    ("option", "what"), [("--html", "not an HTML file name"), ("--plot", "unsupported picture")]
)
def test_a_wrong_file_ending_is_refused_before_anything_is_read(tmp_path, option, what):
    printed, said = output(tmp_path / "no-run", option, "gates.txt", code=2)
    assert printed == ""
    assert f"gates.txt: {what}" in said


def test_an_unknown_test_set_and_a_run_without_translations_are_errors(run, tmp_path):
    assert "the run has no test set 'tset'" in output(run, "--test", "tset", code=2)[1]
    untranslated = write_run(tmp_path / "sa", TREE, tests=())
    assert "the run has no test translations" in output(untranslated, code=1)[1]


@pytest.mark.parametrize(
    ("model", "variants"),
    [
        ({"size": "tiny", "model_dim": 16, "feedforward_dim": 16}, []),
        (LSTM, []),
        (LSTM, [{**TREE, "sets": 1}]),
    ],
    ids=["transformer", "lstm", "one set"],
)
def test_a_run_without_gates_is_refused_with_the_models_that_have_them(tmp_path, model, variants):
    printed, said = output(write_run(tmp_path / "plain", *variants, model=model), code=2)
    assert printed == ""
    assert said.count("\n") == 1
    assert "plain: this model has no gates." in said
    assert "latent_tree (`sets: 2`) have gates" in said


def test_a_language_without_a_compact_parser_is_parsed_by_stanzas_official_one(
    tmp_path, monkeypatch
):
    shutil.copytree(COMPACT / "en", tmp_path / "de")
    listed = json.loads((COMPACT / "resources.json").read_text(encoding="utf-8"))
    (tmp_path / "resources.json").write_text(json.dumps({"de": listed["en"]}), encoding="utf-8")
    monkeypatch.setenv("STANZA_RESOURCES_DIR", str(tmp_path))
    recipe = Run(write_run(tmp_path / "sa", TREE, languages=("en", "de"))).recipe()
    source, target = (make_analysis_parser(recipe, side) for side in ("source", "target"))
    assert (source.language, source.model, source.device) == ("en", "compact", "auto")
    assert (target.language, target.model, target.device) == ("de", "official", "cpu")
    assert target.folder == tmp_path


def test_a_language_without_a_parser_is_an_error_with_its_purpose(tmp_path, monkeypatch):
    monkeypatch.setenv("SYNMT_OFFLINE", "1")
    monkeypatch.setenv("STANZA_RESOURCES_DIR", str(tmp_path / "none"))
    printed, said = output(write_run(tmp_path / "sa", TREE, languages=("en", "de")), code=1)
    assert printed == ""
    assert said.startswith("synmt: error: no Stanza model for 'de' to tag the target (")
    assert "Name one with `--parser FOLDER` (or `target_parser.model` in the recipe)" in said
    assert "stanza.download('de')" in said


@pytest.mark.parametrize("model", ["none", "compact"])
def test_a_chosen_parser_without_the_language_is_an_error(tmp_path, model):
    folder = write_run(tmp_path / "sa", TREE, languages=("en", "de"))
    printed, said = output(folder, "--parser", model, code=2 if model == "compact" else 1)
    assert printed == ""
    assert said.startswith("synmt: error: no Stanza model for 'de' to tag the target (")
    assert "Name one with `--parser FOLDER`" in said
    assert "--model" not in said


def test_the_chosen_parser_tags_and_is_named_in_the_report(tmp_path):
    (tmp_path / "copied").mkdir()
    for path in COMPACT.iterdir():
        (tmp_path / "copied" / path.name).symlink_to(path)
    folder = write_run(tmp_path / "sa", TREE, parser=str(tmp_path / "none"))
    # the missing parser of the recipe is not replaced by another
    assert "target_parser.model" in output(folder, code=1)[1]
    report = json.loads(output(folder, "--parser", tmp_path / "copied", "--json")[0])
    assert report["tagger"] == "Stanza (copied, en)"
    assert [word["tag"] for word in report["lines"][0]["words"]][:3] == ["DET", "NOUN", "VERB"]


def test_a_chosen_parser_replaces_the_recipes_and_its_package(tmp_path):
    recipe = Run(write_run(tmp_path / "sa", TREE, parser="official")).recipe()
    named = make_analysis_parser(recipe, "target", model="compact")
    assert (named.model, named.language, named.device) == ("compact", "en", "cpu")
    other = {"model": "compact", "package": "ewt"}
    changed = recipe.model_copy(
        update={"target_parser": recipe.target_parser.model_copy(update=other)}
    )
    packages = [
        make_analysis_parser(changed, "target", model=model).package
        for model in ("compact", str(COMPACT))
    ]
    assert packages == ["ewt", "default"]


def test_a_run_without_a_recorded_parser_is_refused_before_anything_is_tagged(
    tmp_path, monkeypatch
):
    monkeypatch.setattr("synmt.analysis.gates.report.parse_lines", None)
    run = write_run(tmp_path / "run", TREE, {"name": "tag_embedding"})
    _, said = output(run, code=2)
    assert "Use a run that records its parser" in said
