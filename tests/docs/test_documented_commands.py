"""The commands that pages, recipes and help texts show: their options and the recipes that they
name exist."""

import re

import pytest
import typer
from shipped import ROOT

from synmt.cli import COMMANDS, app, load
from synmt.training.recipe_list import recipe_table

pytestmark = pytest.mark.journey

SHARED = typer.main.get_group(app).params
PARAMETERS = {name: [*load(name).params, *SHARED] for name in COMMANDS}
FILES = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "recipes").glob("*.yaml")]
FILES += [*(ROOT / "synmt").rglob("*.py"), *(ROOT / "benchmarks").glob("*.py")]


def shown(text):
    """Find the commands in a text: the name of each, and what follows up to the end of its line or
    of its code."""
    joined = re.sub(r"\\\n\s*", " ", text)
    return re.findall(rf"\bsynmt ({'|'.join(PARAMETERS)})\b([^`\n|<>#;]*)", joined)


SHOWN = {
    path.relative_to(ROOT).as_posix(): shown(path.read_text(encoding="utf-8")) for path in FILES
}
SHOWN = {path: commands for path, commands in sorted(SHOWN.items()) if commands}


@pytest.mark.parametrize("path", SHOWN)
def test_the_options_of_a_command_that_is_shown_exist(path):
    for name, arguments in SHOWN[path]:
        options = (
            option for one in PARAMETERS[name] for option in (*one.opts, *one.secondary_opts)
        )
        known = {"--help", "-h", *options}
        assert not set(re.findall(r"(?<![\w-])--?[a-zA-Z][\w-]*", arguments)) - known, (
            f"synmt {name}{arguments}"
        )


def test_every_recipe_that_a_command_names_is_shipped():
    recipes = {row[0] for row in recipe_table().rows}
    commands = [command for of_file in SHOWN.values() for command in of_file]
    assert len(commands) > 200
    named = [
        word for name, words in commands if name in ("train", "prepare") for word in words.split()
    ]
    named = [
        word
        for word in named
        if re.fullmatch(r"(multi30k|nc11|wmt16|controlled|tanaka)-[\w-]*\w", word)
    ]
    assert len(named) > 20
    assert not set(named) - recipes
