"""The command `synmt`: six subcommands, one file each.

Nothing heavy is imported here: torch and stanza load inside the commands that need them.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from itertools import pairwise, takewhile
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from synmt import __version__
from synmt.cli import console
from synmt.cli.analyze import analyze
from synmt.cli.command import AtOnce, run
from synmt.cli.options import spelling
from synmt.cli.parse import parse
from synmt.cli.prepare import prepare
from synmt.cli.score import score
from synmt.cli.train import train
from synmt.cli.translate import translate
from synmt.errors import UsageError, did_you_mean
from synmt.reporting.progress import show_progress_with

_VALUES = {
    "int": "N",
    "int range": "N",
    "float": "X",
    "float range": "X",
    "str": "TEXT",
    "list[str]": "TEXT",
}


_WIDEST_VALUE = 20
"""The widest value that a help page of 80 columns shows in one line."""


class _PlainHelp:
    """A help page with a letter or word for values, where typer would show types of Python."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Show the help page."""
        for one in ctx.command.get_params(ctx):
            shown = one.display_type(ctx).strip("<>")
            if one.param_type_name == "argument":
                one.display_type_rich = lambda ctx: None
            elif one.metavar is None:
                one.metavar = "" if one.is_flag else _VALUES.get(shown, shown or None)
            values = one.metavar or ""
            if len(values) > _WIDEST_VALUE:
                # a narrow terminal breaks lines at spaces only
                one.metavar = re.sub(r"\s*\|\s*", " | ", values)
        super().format_help(ctx, formatter)  # type: ignore[misc]


class Group(_PlainHelp, TyperGroup):
    """synmt itself."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the arguments; `--docs` may lack its value."""
        return super().parse_args(ctx, [*args, ""] if args[-1:] == ["--docs"] else args)


class StrictCommand(_PlainHelp, TyperCommand):
    """A command with options of several values, `--run A B C`. Options without their value or
    repeated are refused."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the arguments; raise a UsageError for the first option that lacks its value or is
        repeated."""
        if ctx.resilient_parsing:  # a shell completes a line that is not finished
            return super().parse_args(ctx, self._repeat_names(args))
        self._refuse_names_as_values(ctx, args)
        args = self._repeat_names(args)
        *_, parameters = self.make_parser(ctx).parse_args(args=list(args))
        for parameter, times in Counter(parameters).items():
            if times > 1 and parameter.param_type_name == "option" and not parameter.multiple:
                raise UsageError(
                    f"{spelling(parameter)} is given more than once", do="Give it once"
                )
        return super().parse_args(ctx, args)

    def _refuse_names_as_values(self, ctx: Any, args: Sequence[str]) -> None:
        options: list[Any] = [
            one for one in self.get_params(ctx) if one.param_type_name == "option"
        ]
        names = {name for one in options for name in (*one.opts, *one.secondary_opts)}
        with_value = {
            name for one in options if not (one.is_flag or one.count) for name in one.opts
        }
        for name, following in pairwise(takewhile(lambda one: one != "--", args)):
            following = following.partition("=")[0]
            if name in with_value and following in names:
                raise UsageError(
                    f"{name} has no value", do=f"Write one between {name} and {following}"
                )

    def _repeat_names(self, args: Sequence[str]) -> list[str]:
        """Write `--run A B` as `--run A --run B`, for the options whose values end in `…` on the
        help page."""
        several = {
            name: str(one.metavar)
            for one in self.params
            for name in one.opts
            if str(getattr(one, "metavar", None)).endswith("…")
        }
        written, option, first = [], "", True
        for argument in args:
            if argument.startswith("-") and argument != "-" and option != "--":
                # the first value may follow an equals sign, `--run=A B`
                option, equals, _ = argument.partition("=")
                first = not equals
            elif option in several:
                if not first and _continues(argument, several[option]):
                    written.append(option)
                elif not first:
                    option = ""
                first = False
            written.append(argument)
        return written


def _continues(argument: str, metavar: str) -> bool:
    """Return whether an argument is one more value of the option before it, and not the argument of
    the command."""
    is_file = argument == "-" or (os.path.exists(argument) and not os.path.isdir(argument))
    # labels end in .tsv
    return not argument.endswith(".tsv") and not (is_file and metavar == "RUN …")


app = typer.Typer(
    name="synmt",
    cls=Group,
    help="Neural machine translation that uses syntax.",
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for subcommand in (parse, prepare, train, translate, score, analyze):
    app.command(cls=StrictCommand)(subcommand)


def _show_version(wanted: bool) -> None:
    if wanted:
        print(f"synmt {__version__}")
        raise typer.Exit


def _show_page(name: str | None) -> None:
    if name is None:
        return
    from synmt.recipe.catalogue import shipped_folder

    folder = shipped_folder("docs")
    pages = {
        path.relative_to(folder).with_suffix("").as_posix(): path
        for path in sorted(folder.rglob("*.md"))
    }
    wanted = name.removeprefix("docs/").removesuffix(".md")
    path = pages.get(wanted) or pages.get(f"systems/{wanted}")
    if name and not path:
        raise UsageError(
            f"there is no page '{name}'",
            where="--docs",
            do=did_you_mean(wanted, pages) or "`synmt --docs` lists all",
        )
    if path:
        print(path.read_text(encoding="utf-8"), end="")
    else:
        for page in sorted(pages, key=lambda page: ("/" in page, page)):
            print(
                f"{page:32}{pages[page].read_text(encoding='utf-8').partition(chr(10))[0].lstrip('# ')}"
            )
    raise typer.Exit


@app.callback(epilog="Example: [bold]synmt train quickstart[/]")
def options(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version."),
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
    console.configure(quiet=quiet, verbose=verbose, debug=debug, log_file=log_file)
    show_progress_with(console.progress)


def main() -> None:
    """Run the command line; every mistake becomes a message and an exit code."""
    with suppress(AtOnce):
        run(app)
    # by now, what the error held is gone, such as processes
    os._exit(1)
