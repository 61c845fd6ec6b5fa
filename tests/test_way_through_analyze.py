"""How many files of synmt an analysis goes through."""

from __future__ import annotations

import pytest
import typer
from entered import files_entered
from small_run import make_run
from typer.testing import CliRunner

from synmt.cli.analyze import analyze

pytestmark = pytest.mark.journey

APP = typer.Typer()
APP.command()(analyze)


def test_scores_by_length_of_three_sentences_go_through_few_files(tmp_path):
    run = make_run(tmp_path / "run")
    sentences = {"source": "The monkey eats\nHe sleeps\nYes\n", "reference": "Der Affe isst\nEr schläft\nJa\n"}
    for name, text in (sentences | {"hypothesis": sentences["reference"]}).items():
        path = run.test_folder("test") / f"{name}.txt"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    arguments = ["--by-length", "--run", str(run.folder)]
    # modules that are loaded for the first time call functions, too
    CliRunner().invoke(APP, arguments)
    results = []
    files = files_entered(lambda: results.append(CliRunner().invoke(APP, arguments)))
    assert "1-10 *" in results[0].stdout
    assert len(files) <= 20, sorted(files)
