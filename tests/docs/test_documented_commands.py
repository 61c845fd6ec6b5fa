"""The commands that pages, recipes and help texts show: their options and the recipes that they
name exist."""

import re

import pytest
import typer
from shipped import ROOT

from synmt.cli import app
from synmt.training.recipe_list import list_recipes

pytestmark = pytest.mark.journey

GROUP = typer.main.get_group(app)
FILES = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "recipes").glob("*.yaml")]
FILES += [*(ROOT / "synmt").rglob("*.py"), *(ROOT / "benchmarks").glob("*.py")]


def shown(text):
    """Find the commands in a text: the name of each, and what follows up to the end of its line or
    of its code."""
    joined = re.sub(r"\\\n\s*", " ", text)
    return re.findall(rf"\bsynmt ({'|'.join(GROUP.commands)})\b([^`\n|<>#;]*)", joined)


COMMANDS = {
    path.relative_to(ROOT).as_posix(): shown(path.read_text(encoding="utf-8")) for path in FILES
}
COMMANDS = {path: commands for path, commands in sorted(COMMANDS.items()) if commands}


@pytest.mark.parametrize("path", COMMANDS)
def test_the_options_of_a_command_that_is_shown_exist(path):
    for name, arguments in COMMANDS[path]:
        known = {
            option
            for one in GROUP.commands[name].params
            for option in (*one.opts, *one.secondary_opts)
        }
        known |= {option for one in GROUP.params for option in one.opts} | {"--help", "-h"}
        assert not set(re.findall(r"(?<![\w-])--?[a-zA-Z][\w-]*", arguments)) - known, (
            f"synmt {name}{arguments}"
        )


def test_every_recipe_that_a_command_names_is_shipped():
    recipes = {entry.name for entry in list_recipes([])}
    commands = [command for of_file in COMMANDS.values() for command in of_file]
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
