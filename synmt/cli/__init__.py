"""The command `synmt`: six subcommands, one file each.

Nothing heavy is imported here: a command is loaded when it is run, torch and stanza inside the
commands that need them.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from pkgutil import resolve_name
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command_from_info
from typer.models import CommandInfo

from synmt import __version__
from synmt.cli import console
from synmt.cli.command import run
from synmt.errors import UsageError, did_you_mean
from synmt.reporting.progress import show_progress_with

COMMANDS = {
    "parse": "Parse raw text: one dependency tree for each line, in CoNLL-U.",
    "prepare": "Prepare the training data of a recipe: filter, segment into subwords, parse; print "
    "the folder.",
    "train": "Train a model from a recipe: parse, prepare, train, translate the test sets, score "
    "them.",
    "translate": "Translate raw text: each input line gives one output line, as soon as it is "
    "ready.",
    "score": "Score translations and compare each system with the first, or let models score given "
    "texts by probability.",
    "analyze": "Show where a system gains, which trees it has learned, what its heads attend to, "
    "which words use syntax.",
}
"""Each command with the first paragraph of its help page."""


class Group(TyperGroup):
    """synmt itself; of commands that are not run it knows what they are for."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands = {name: TyperCommand(name, help=text) for name, text in COMMANDS.items()}

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the arguments; `--docs` may lack its value."""
        return super().parse_args(ctx, [*args, ""] if args[-1:] == ["--docs"] else args)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Load the command that is run."""
        if args[0] in COMMANDS:
            self.commands[args[0]] = load(args[0])
        return super().resolve_command(ctx, args)


class ListCommand(TyperCommand):
    """A command with options of several values, `--run A B C`: those whose values end in `…` on the
    help page."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the arguments, with `--run A B` as `--run A --run B`."""
        lists = {
            name: str(parameter.metavar)
            for parameter in self.get_params(ctx)
            if parameter.param_type_name == "option" and str(parameter.metavar).endswith("…")
            for name in parameter.opts
        }
        written, option, is_first = list[str](), "", False
        for argument in args:
            if option == "--":
                pass
            elif argument.startswith("-") and argument != "-":
                option, equals, _ = argument.partition("=")
                is_first = not equals
            elif option in lists and not is_first and _continues(argument, lists[option]):
                written.append(option)
            else:
                # the first value of an option, or the argument of the command
                option = option if is_first else ""
                is_first = False
            written.append(argument)
        return super().parse_args(ctx, written)


def _continues(argument: str, metavar: str) -> bool:
    """Return whether an argument is one more value of the option before it, and not the argument of
    the command."""
    is_file = argument == "-" or (os.path.exists(argument) and not os.path.isdir(argument))
    # labels end in .tsv
    return not argument.endswith(".tsv") and not (is_file and metavar == "RUN …")


def load(name: str) -> ListCommand:
    """Make a command from the function of its name."""
    loaded: Any = get_command_from_info(
        CommandInfo(callback=resolve_name(f"synmt.cli.{name}:{name}"), cls=ListCommand),
        pretty_exceptions_short=False,
        rich_markup_mode="rich",
    )
    return loaded


app = typer.Typer(
    name="synmt",
    cls=Group,
    help="Neural machine translation that uses syntax.",
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _show_version(wanted: bool) -> None:
    if wanted:
        if "--json" in sys.argv:
            from synmt.machine import machine

            console.print_json(machine())
        else:
            print(f"synmt {__version__}")
        raise typer.Exit


def _show_page(name: str | None) -> None:
    if name is None:
        return
    from synmt.recipe.catalogue import shipped_folder

    folder = shipped_folder("docs")
    pages = {
        path.relative_to(folder).with_suffix("").as_posix(): path.read_text(encoding="utf-8")
        for path in sorted(folder.rglob("*.md"))
    }
    titles = [f"{page:32}{text.splitlines()[0].lstrip('# ')}\n" for page, text in pages.items()]
    wanted = name.removeprefix("docs/").removesuffix(".md")
    shown = pages | {"": "".join(titles)}
    text = shown.get(wanted) or shown.get(f"systems/{wanted}")
    if text is None:
        raise UsageError(
            f"there is no page '{name}'",
            where="--docs",
            do=did_you_mean(wanted, pages) or "`synmt --docs` lists all",
        )
    print(text, end="")
    raise typer.Exit


@app.callback(epilog="Example: [bold]synmt train quickstart[/]")
def options(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version."),
    ] = False,
    as_json: Annotated[
        bool,
        typer.Option(
            "--json",
            help="With --version: also those of packages, the commit, the processor and GPUs, for "
            "reports of faults.",
        ),
    ] = False,
    docs: Annotated[
        str | None,
        typer.Option(
            "--docs",
            callback=_show_page,
            is_eager=True,
            metavar="PAGE",
            help="Show a page of the documentation; without PAGE, list all.",
        ),
    ] = None,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="Show only warnings and errors.")
    ] = False,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Show more details.")] = False,
    log_file: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Add every message, with its time, to this file."),
    ] = None,
    debug: Annotated[
        bool, typer.Option("--debug", help="Show the Python traceback of an error.")
    ] = False,
) -> None:
    """Neural machine translation that uses syntax: raw text in, translations and scores out."""
    if as_json:
        raise UsageError(
            "--json needs --version here", do="Put it after the command, `synmt score --json …`"
        )
    console.configure(quiet=quiet, verbose=verbose, debug=debug, log_file=log_file)
    show_progress_with(console.progress)


def main() -> None:
    """Run the command line; every mistake becomes a message and an exit code."""
    run(app)
