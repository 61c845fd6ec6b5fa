"""Commands are made from records of options."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from typer.testing import CliRunner

from synmt.cli.options import declared, with_parameters
from synmt.options import Option


@dataclass(frozen=True, kw_only=True)
class Record:
    """Options of all kinds."""

    text: Annotated[Path | None, Option("A text.", is_argument=True)] = None
    runs: Annotated[Path | Sequence[Path] | None, Option("Runs.", names="--run")] = None
    side: Annotated[Literal["source", "target"], Option("A side.")] = "source"
    by_length: Annotated[bool, Option("By length.")] = False
    lowercase: Annotated[bool | None, Option("Case.", names="--lowercase/--cased")] = None
    top: Annotated[int, Option("How many.", minimum=1)] = 20
    inner: int = 5


def test_a_command_has_the_options_of_a_record_with_their_types_ranges_and_defaults():
    app, found = typer.Typer(), list[dict[str, Any]]()

    @app.command()
    @with_parameters([one.parameter("Panel" if one.name == "top" else None) for one in declared(Record)])
    def command(context: typer.Context, *, last: bool = False, **values: Any) -> None:
        found.append(values)

    run = CliRunner().invoke
    defaults = {"text": None, "runs": None, "side": "source", "by_length": False, "lowercase": None, "top": 20}
    typed = "--run a --run b --side other --by-length --cased --top 2 x"
    assert [run(app, line.split()).exit_code for line in ("", typed)] == [0, 0]
    # the library refuses a wrong name in its own words
    given = {"text": Path("x"), "runs": [Path("a"), Path("b")], "side": "other", "by_length": True, "lowercase": False}
    assert found == [defaults, {**given, "top": 2}]
    assert [run(app, [wrong]).exit_code for wrong in ("--top=0", "--no-by-length", "--inner=1")] == [2, 2, 2]
    shown = run(app, ["--help"]).stdout
    assert ("Panel" in shown, "How many." in shown, "--last" in shown) == (True, True, True)
