"""Arguments that several commands share, and checks of what the user typed."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from synmt.errors import UsageError, did_you_mean

RecipeFile = Annotated[Path, typer.Argument(help="A recipe, such as recipes/quickstart.yaml.")]
Overrides = Annotated[
    list[str] | None, typer.Argument(metavar="KEY=VALUE", help="Values that replace those of the recipe.")
]
DataFolder = Annotated[Path, typer.Option(help="Folder of parses and prepared corpora.")]

CHECKPOINTS = ("final", "best", "last", "average")
"""The weights of a run that a user can choose."""


class StrictCommand(TyperCommand):
    """A command that refuses an option given twice, unless it takes several values; typer would use the last one."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the arguments; raise a UsageError for the first option that is repeated."""
        *_, parameters = self.make_parser(ctx).parse_args(args=list(args))
        single = [one for one in parameters if one.param_type_name == "option" and not one.multiple]
        for position, parameter in enumerate(single):
            if parameter in single[:position]:
                raise UsageError(f"{spelling(parameter)} is given more than once", do="Give it once")
        return super().parse_args(ctx, args)


def wrong_checkpoint(name: str) -> UsageError | None:
    """Make the error for a checkpoint name that does not exist; None if the name is valid."""
    if name in CHECKPOINTS:
        return None
    return UsageError(
        f"there are no weights '{name}'",
        where="--checkpoint",
        allowed=", ".join(CHECKPOINTS),
        do=did_you_mean(name, CHECKPOINTS),
    )


def typed_options(context: typer.Context, arguments: Mapping[str, str]) -> dict[str, str]:
    """Map each parameter that the user typed to its spelling on the command line, such as `--metrics/--metric`.

    arguments: names on the help page of the parameters that are not options.
    """
    return {
        name: arguments.get(name) or spelling(parameter)
        for parameter in context.command.params
        if (origin := context.get_parameter_source(name := str(parameter.name))) and origin.name == "COMMANDLINE"
    }


def spelling(parameter: Any) -> str:
    """Join the long forms of an option, such as `--metrics/--metric`."""
    return "/".join(form for form in parameter.opts + parameter.secondary_opts if form.startswith("--"))
