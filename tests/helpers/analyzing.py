"""`synmt analyze` run in this process, and finished runs that have a recipe and no weights."""

import json

import typer
from typer.testing import CliRunner

from synmt.cli import ListCommand
from synmt.cli.analyze import analyze

APP = typer.Typer()
APP.command(cls=ListCommand)(analyze)


RECIPE = """
name: any
source: en
target: de
corpus: {folder: data}
evaluation: {tokenize: intl, lowercase: true}
"""


def finish(folder, when="2026-01-01T00:00:00", recipe=RECIPE, **info):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "run.json").write_text(
        json.dumps({"format": 1, "status": "finished", "finished_at": when, **info})
    )
    (folder / "recipe.yaml").write_text(recipe)


def run(*arguments):
    return CliRunner().invoke(APP, [str(argument) for argument in arguments])


def report(*arguments):
    result = run(*arguments, "--json")
    assert result.exit_code == 0, result.exception or result.output
    return json.loads(result.stdout)
