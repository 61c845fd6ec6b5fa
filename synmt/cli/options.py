"""Commands whose parameters are made from records of options (`synmt.options`)."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from dataclasses import MISSING, dataclass, fields
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

import typer

from synmt.options import Option

_Command = TypeVar("_Command", bound=Callable[..., None])


@dataclass(frozen=True)
class Declared:
    """An option of a command: its parameter, type, text and default."""

    name: str
    kind: Any
    option: Option
    default: Any = None

    def parameter(self, panel: str | None) -> inspect.Parameter:
        """Make the parameter that typer reads, in a panel of the help page; None: in that of all other options."""
        option, shown = self.option, dict[str, Any](help=self.option.help, metavar=self.option.metavar, path_type=Path)
        if option.is_argument:
            info = typer.Argument(**shown)
        else:
            shown.update(rich_help_panel=panel, min=option.minimum, show_default=option.show_default)
            # a flag has no opposite, unless its names say so
            flag = f"--{self.name.replace('_', '-')}" if self.kind is bool else ""
            info = typer.Option(*(option.names or flag).split(), **shown)
        kind = Annotated[_as_typed(self.kind), info]
        return inspect.Parameter(self.name, inspect.Parameter.KEYWORD_ONLY, default=self.default, annotation=kind)


def declared(record: type) -> Iterator[Declared]:
    """Yield the options of a record: its fields that are annotated with one."""
    kinds, annotated = get_type_hints(record), get_type_hints(record, include_extras=True)
    for field in fields(record):
        default = None if field.default in (MISSING, ()) else field.default
        for option in getattr(annotated[field.name], "__metadata__", ()):
            yield Declared(field.name, kinds[field.name], option, default)


def _as_typed(kind: Any) -> Any:
    """Return the type of a field as typer reads it: several values are a list, and the library checks names."""
    for part in get_args(kind) if get_origin(kind) in (Union, UnionType) else [kind]:
        if get_origin(part) is Sequence:
            return list[get_args(part)] | None
        if get_origin(part) is Literal:
            return str | None
    return kind


def with_parameters(made: Sequence[inspect.Parameter]) -> Callable[[_Command], _Command]:
    """Put parameters after the first one of a command, which takes their values as `**values`."""

    def put(command: _Command) -> _Command:
        own = inspect.signature(command, eval_str=True)
        first, *others = (one for one in own.parameters.values() if one.kind is not inspect.Parameter.VAR_KEYWORD)
        parameters = [first, *made, *others]
        command.__signature__ = own.replace(parameters=parameters)  # type: ignore[attr-defined]
        command.__annotations__ = {one.name: one.annotation for one in parameters}
        return command

    return put
