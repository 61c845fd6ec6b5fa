"""`synmt analyze --gates` on runs of small models."""

import json
import shutil

import pytest
from cases import cases
from small_run import LSTM, TEXT, make_run, write_tests
from tiny import analyze

from synmt.parsing.models import COMPACT
from synmt.run_folder import Run
from synmt.training.tree_sources import make_parser

pytestmark = pytest.mark.journey

ENGLISH = [*TEXT[:3], "", "Yes!", " ".join(TEXT[:3]), "A dog."]
GERMAN = [*TEXT[3:], "Ja.", "", "Ein Hund.", " ".join(TEXT[3:])]
TREE = {"name": "latent_tree"}


def write_run(folder, *variants, languages=("de", "en"), parser="compact", tests=("test",)):
    """Write a finished run from German to English with random weights, and its translations of test
    sets."""
    source, target = languages
    sections = {"source": source, "target": target}
    sections["target_parser"] = {"model": parser, "device": "cpu"}
    run = make_run(folder, *variants, model=LSTM, parser=False, max_pieces=40, **sections)
    for test in tests:
        write_tests(run, GERMAN, ENGLISH, test=test)
    return folder


def output(folder, *arguments, code=0):
    return analyze("--gates", "--run", folder, *arguments, code=code)


def test_the_report_the_page_and_the_figure_agree(tmp_path):
    run = write_run(tmp_path / "sa", TREE, tests=("other", "test"))
    page, plot = tmp_path / "gates.html", tmp_path / "gates.svg"
    report = json.loads(output(run, "--json", "--html", page, "--plot", plot)[0])
    assert "tags: Stanza (compact, en)" in report["tables"][0]["notes"]
    # line 4 has no target, line 5 no source; line 6 has too long a target, line 7 too long a source
    assert [line["target"] for line in report["lines"]] == TEXT[:3]
    assert report["left_out"] == {"too_long": 2, "empty": 2}
    first = report["lines"][0]
    assert first["words"] == ["The", "monkey", "eats", "a", "banana", "."]
    assert first["tags"] == ["DET", "NOUN", "VERB", "DET", "NOUN", "PUNCT"]
    text, drawn = page.read_text(encoding="utf-8"), plot.read_text(encoding="utf-8")
    for tag, norm in zip(first["tags"], first["norms"], strict=True):
        assert f'lang="en">{tag} {norm:.3f}</small>' in text
    for row in report["tables"][0]["rows"]:
        assert f">{row['tag']}<" in drawn
    other = json.loads(output(run, "--test", "other", "--json")[0])
    assert "on test set other" in other["title"]


GERMAN_TARGET = """
1 => => Stanza models for 'de'
1 => --parser none => or in the recipe, as `target_p
2 => --parser compact => Name a model with `--parser FOLDER`
2 => --html x.txt => x.txt: not an HTML file name
2 => --plot x.txt => x.txt: unsupported picture
2 => --test tset => no test set 'tset'. Test sets: other, test. Did you mean 'test'?
"""


def test_what_cannot_be_read_is_refused(tmp_path, monkeypatch):
    monkeypatch.setenv("SYNMT_OFFLINE", "1")
    monkeypatch.setenv("STANZA_RESOURCES_DIR", str(tmp_path / "none"))
    german = write_run(tmp_path / "german", TREE, languages=("en", "de"), tests=("other", "test"))
    asked = [(german, *case) for case in cases(GERMAN_TARGET)]
    for name, options, words in (
        ("bare", {"tests": ()}, "the run has no test translations"),
        ("none", {"parser": "none"}, "Stanza models for 'en'"),
    ):
        asked.append((write_run(tmp_path / name, TREE, **options), "1", "", words))
    for run, code, arguments, words in asked:
        printed, errors = output(run, *arguments.split(), code=int(code))
        assert printed == ""
        assert words in errors


def test_a_run_without_a_parser_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("synmt.analysis.inputs.parse_lines", None)
    run = write_run(tmp_path / "run", TREE, {"name": "tag_embedding"})
    assert "Use a run that records its parser" in output(run, code=2)[1]


def test_the_parser_of_the_target_is_stanzas_official_one_or_the_chosen_one(tmp_path, monkeypatch):
    shutil.copytree(COMPACT / "en", tmp_path / "de")
    listed = json.loads((COMPACT / "resources.json").read_text(encoding="utf-8"))
    (tmp_path / "resources.json").write_text(json.dumps({"de": listed["en"]}), encoding="utf-8")
    monkeypatch.setenv("STANZA_RESOURCES_DIR", str(tmp_path))
    recipe = Run(write_run(tmp_path / "sa", TREE, languages=("en", "de"))).recipe()
    target = make_parser(recipe, "target")
    assert (target.language, target.model, target.device) == ("de", "official", "cpu")
    assert target.folder == tmp_path
    # a chosen one replaces that of the recipe, and its package
    other = recipe.target_parser.model_copy(update={"model": "compact", "package": "ewt"})
    recipe = recipe.model_copy(update={"target": "en", "target_parser": other})
    for model, package in (("compact", "ewt"), (str(COMPACT), "default")):
        assert make_parser(recipe, "target", model=model).package == package


def test_the_chosen_parser_tags_and_is_named_in_the_report(tmp_path):
    shutil.copytree(COMPACT, tmp_path / "copied")
    folder = write_run(tmp_path / "sa", TREE, parser=str(tmp_path / "none"))
    report = json.loads(output(folder, "--parser", tmp_path / "copied", "--json")[0])
    assert "tags: Stanza (copied, en)" in report["tables"][0]["notes"]
    assert report["lines"][0]["tags"][:3] == ["DET", "NOUN", "VERB"]
