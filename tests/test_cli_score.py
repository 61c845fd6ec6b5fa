"""`synmt score` as a person runs it."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest
import sacrebleu
import typer
from typer.testing import CliRunner

from synmt.cli.score import score

APP = typer.Typer()
APP.command()(score)

REFERENCES = ["Der Affe isst eine Banane.", "Er schläft heute lange.", "Ja."]
FIRST = ["Der Affe isst die Banane.", "Er schläft lange.", "Nein."]
SECOND = ["Der Affe isst eine Banane.", "Er schläft heute.", "Ja."]


@pytest.fixture
def files(tmp_path):
    for name, lines in (("ref.de", REFERENCES), ("one.de", FIRST), ("two.de", SECOND)):
        (tmp_path / name).write_text("\n".join(lines) + "\n", encoding="utf-8")
    return tmp_path


def run(*arguments, stdin=None):
    return CliRunner().invoke(APP, [str(argument) for argument in arguments], input=stdin)


def test_the_table_has_every_number_and_its_signature(files):
    result = run("-r", files / "ref.de", files / "one.de")
    assert result.exit_code == 0, result.output
    bleu = sacrebleu.corpus_bleu(FIRST, [REFERENCES]).score
    rows = [line.split() for line in result.stdout.splitlines()]
    assert rows[0] == ["system", "metric", "score"]
    assert ["one.de", "BLEU", f"{bleu:.2f}"] in rows
    for start in ("BLEU|nrefs:1|case:mixed|eff:no|tok:13a|", "chrF2|nrefs:1|", "TER|nrefs:1|"):
        assert any(line.startswith(start) for line in result.stdout.splitlines())


def test_json_compares_every_further_system_with_the_first(files):
    result = run("-r", files / "ref.de", files / "one.de", files / "two.de", "--json", "-m", "chrf,bleu")
    report = json.loads(result.stdout)
    first, second = report["systems"]
    assert report["segments"] == 3
    assert report["bootstrap"] == {"samples": 1000, "seed": 12345, "base": "one.de"}
    assert list(first["scores"]) == ["chrf", "bleu"]
    assert second["scores"]["bleu"]["score"] == sacrebleu.corpus_bleu(SECOND, [REFERENCES]).score
    assert "comparison" not in first["scores"]["bleu"]
    found = second["scores"]["chrf"]["comparison"]
    assert found["difference"] == second["scores"]["chrf"]["score"] - first["scores"]["chrf"]["score"]
    assert found["low"] <= found["difference"] <= found["high"]


def test_seed_and_samples_choose_the_resamples(files):
    def interval(*options):
        result = run("-r", files / "ref.de", files / "one.de", files / "two.de", "-m", "ter", "--json", *options)
        return json.loads(result.stdout)["systems"][1]["scores"]["ter"]["comparison"]

    assert interval("--seed", 3) == interval("--seed", 3)
    assert interval("--samples", 1)["p_value"] in (0.5, 1.0)


def test_standard_input_is_a_system(files):
    result = run("-r", files / "ref.de", "-", "--json", "-m", "bleu", stdin="\n".join(SECOND))
    assert json.loads(result.stdout)["systems"][0]["system"] == "standard input"


def test_case_and_tokenisation_change_the_signature(files):
    result = run("-r", files / "ref.de", files / "one.de", "--lowercase", "--tokenize", "char", "-m", "bleu")
    assert "case:lc|eff:no|tok:char" in result.stdout


def test_text_cut_into_words_earns_a_warning_on_stderr(files):
    (files / "cut.de").write_text("Der Affe .\nEr .\nJa .\n")
    result = run("-r", files / "ref.de", files / "cut.de", "-m", "bleu")
    assert "cut.de looks tokenised" in result.stderr
    assert "tokenised" not in result.stdout
    assert "tokenised" not in run("-r", files / "ref.de", files / "cut.de", "--tokenize", "none").stderr


def test_systems_named_alike_are_told_apart_by_their_paths(files):
    (files / "sub").mkdir()
    (files / "sub" / "one.de").write_text("\n".join(SECOND))
    result = run("-r", files / "ref.de", files / "one.de", files / "sub" / "one.de", "-m", "bleu", "--json")
    assert [one["system"] for one in json.loads(result.stdout)["systems"]] == [
        str(files / "one.de"),
        str(files / "sub" / "one.de"),
    ]


SCRIPT = """
import typer
from synmt.cli import console
from synmt.cli.score import score
app = typer.Typer(pretty_exceptions_enable=False)
app.command()(score)
console.run(app)
"""


@pytest.mark.parametrize(
    ("content", "code", "message"),
    [
        (b"eins\nzwei\n", 1, "bad.de: 2 lines, but"),
        (b"", 1, "bad.de: 0 lines, but"),
        (b"eins\nzwei\xff\ndrei\n", 1, "bad.de: line 2 is not UTF-8"),
        (None, 1, "bad.de: cannot read the file"),
    ],
)
def test_bad_input_is_one_line_on_stderr(files, content, code, message):
    if content is not None:
        (files / "bad.de").write_bytes(content)
    command = [sys.executable, "-c", SCRIPT, "-r", str(files / "ref.de"), str(files / "bad.de")]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "NO_COLOR": "1"}, check=False)
    assert (done.returncode, done.stdout) == (code, "")
    assert done.stderr.startswith("synmt: error: ")
    assert message in done.stderr
    assert done.stderr.count("\n") == 1


def test_an_unknown_metric_is_wrong_usage(files):
    result = run("-r", files / "ref.de", files / "one.de", "--metrics", "bleu,tre")
    assert result.exception.exit_code == 2
    assert "Did you mean 'ter'?" in str(result.exception)


def test_the_help_page_has_an_example():
    assert "Example: synmt score -r" in run("--help").stdout
