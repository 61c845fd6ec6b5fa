"""Arguments that several commands share, and how what was typed is read."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer
from typer.core import TyperOption

from synmt.errors import UsageError, did_you_mean

RecipeFile = Annotated[Path, typer.Argument(help="A recipe, such as recipes/quickstart.yaml.")]
Overrides = Annotated[
    list[str] | None, typer.Argument(metavar="KEY=VALUE", help="Values that differ from the recipe's.")
]
DataFolder = Annotated[Path, typer.Option(help="Where trees and prepared corpora lie.")]

CHECKPOINTS = ("final", "best", "last", "average")
"""The weights of a run that can be asked for."""


def wrong_checkpoint(name: str) -> UsageError | None:
    """Find what is wrong with the weights asked for; None if nothing is."""
    if name in CHECKPOINTS:
        return None
    return UsageError(
        f"there are no weights '{name}'",
        where="--checkpoint",
        allowed=", ".join(CHECKPOINTS),
        do=did_you_mean(name, CHECKPOINTS),
    )


def typed_options(context: typer.Context, arguments: Mapping[str, str]) -> dict[str, str]:
    """Find the parameters that were typed, and how each is called there.

    arguments: what the help page calls those that are no options.
    """
    return {
        name: arguments.get(name)
        or "/".join(form for form in parameter.opts + parameter.secondary_opts if form.startswith("--"))
        for parameter in context.command.params
        if (origin := context.get_parameter_source(name := str(parameter.name))) and origin.name == "COMMANDLINE"
    }


def refuse_repeated(context: typer.Context) -> None:
    """Refuse an option that takes one value but was typed more than once; the last value would win silently."""
    command = str(context.info_name)
    arguments = sys.argv[sys.argv.index(command) + 1 :] if command in sys.argv else []
    *_, parameters = context.command.make_parser(context).parse_args(arguments)
    for one in parameters:
        single = isinstance(one, TyperOption) and not (one.multiple or one.is_flag)
        if single and parameters.count(one) > 1:
            raise UsageError("this option takes one value, but was given more than once", where=one.opts[0])
