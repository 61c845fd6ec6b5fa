"""The command `synmt`: six subcommands, one file each.

Nothing heavy is imported here: torch and stanza load inside the commands that need them.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from synmt import __version__
from synmt.cli import console
from synmt.cli.analyze import analyze
from synmt.cli.command import StrictCommand, run
from synmt.cli.parse import parse
from synmt.cli.prepare import prepare
from synmt.cli.score import score
from synmt.cli.train import train
from synmt.cli.translate import translate
from synmt.evaluation.progress import show_progress_with
from synmt.parallel.threads import use_threads

_Threads = Annotated[
    int | None,
    typer.Option(
        min=1,
        metavar="N",
        help="Threads that compute. Default: $SYNMT_THREADS, else all cores that the process may use.",
        show_default=False,
    ),
]


def _with_threads(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the option `--threads`, which takes effect before the command loads torch."""

    @functools.wraps(command)
    def computing(*args: Any, threads: int | None = None, **values: Any) -> None:
        use_threads(threads)
        command(*args, **values)

    own = inspect.signature(command, eval_str=True)
    option = inspect.Parameter("threads", inspect.Parameter.KEYWORD_ONLY, default=None, annotation=_Threads)
    computing.__signature__ = own.replace(parameters=[*own.parameters.values(), option])  # type: ignore[attr-defined]
    computing.__annotations__ = {**command.__annotations__, "threads": _Threads}
    return computing


app = typer.Typer(
    name="synmt",
    help="Neural machine translation that uses syntax.",
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for subcommand in (parse, prepare, train, translate, score, analyze):
    app.command(cls=StrictCommand)(_with_threads(subcommand))


def _show_version(wanted: bool) -> None:
    if wanted:
        print(f"synmt {__version__}")
        raise typer.Exit


@app.callback(epilog="Example: [bold]synmt train quickstart[/]")
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version.")
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Show only warnings and errors.")] = False,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Show more details.")] = False,
    log_file: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Add every message, with its time, to this file.")
    ] = None,
    debug: Annotated[bool, typer.Option("--debug", help="Show the Python traceback of an error.")] = False,
) -> None:
    """Neural machine translation that uses syntax: raw text in, translations and scores out."""
    console.configure(quiet=quiet, verbose=verbose, debug=debug, log_file=log_file)
    show_progress_with(console.progress)


def main() -> None:
    """Run the command line; every mistake becomes a message and an exit code."""
    run(app)
