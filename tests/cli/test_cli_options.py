"""Commands are made from records of options."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from typer.testing import CliRunner

from synmt.cli.options import Declared, Typed, command
from synmt.options import Option


@dataclass(frozen=True, kw_only=True)
class Record:
    """Options of all kinds."""

    text: Annotated[Path | None, Option("A text.", is_argument=True, metavar="TEXT")] = None
    runs: Annotated[Path | Sequence[Path], Option("Runs.", names="--run")] = ()
    side: Annotated[Literal["source", "target"], Option("A side.", metavar="source|target")] = (
        "source"
    )
    form: Annotated[Literal["short", "long"], Option("A form.")] = "short"
    by_length: Annotated[bool, Option("By length.")] = False
    lowercase: Annotated[bool | None, Option("Case.", names="--lowercase/--cased")] = None
    top: Annotated[int, Option("How many.", minimum=1, panel="Panel", variable="SOME_TOP")] = 20
    inner: int = 5


def test_a_command_has_the_options_of_a_record_with_their_types_ranges_and_defaults(monkeypatch):
    app, found = typer.Typer(), list[Any]()

    @app.command()
    @partial(command, own=[Declared("other", bool, Option("Other."), False).parameter()])
    def some(values: dict[str, Any], record: Record, typed: Typed) -> None:
        found.extend([values, record, typed])

    run = CliRunner().invoke
    assert run(app, []).exit_code == 0
    assert found == [{"other": False}, Record(), {}]
    line = "--other --run a --run b --side other --form long --by-length --cased --top 2 x"
    assert run(app, line.split()).exit_code == 0
    # the library refuses a wrong name in its own words, where the help page names a value
    made: Any = {
        "text": Path("x"),
        "side": "other",
        "form": "long",
        "by_length": True,
        "lowercase": False,
        "top": 2,
    }
    spellings = {
        "other": "--other",
        "text": "TEXT",
        "runs": "--run",
        "lowercase": "--lowercase/--cased",
    }
    same = {name: f"--{name.replace('_', '-')}" for name in ("side", "form", "by_length", "top")}
    assert found[3:] == [
        {"other": True},
        Record(runs=[Path("a"), Path("b")], **made),
        spellings | same,
    ]
    wrong = ("--top=0", "--no-by-length", "--inner=1", "--form=wide")
    assert [run(app, [one]).exit_code for one in wrong] == [2, 2, 2, 2]
    shown = run(app, ["--help"]).stdout
    assert all(part in shown for part in ("Panel", "How many.", "--threads", "--verify"))
    monkeypatch.setenv("SOME_TOP", "7")
    run(app, [])
    assert found[7].top == 7
