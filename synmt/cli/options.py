"""Commands whose parameters are made from records of options (`synmt.options`)."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, is_dataclass
from functools import cache
from types import SimpleNamespace, UnionType
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

import typer

from synmt.cli.command import spelling
from synmt.errors import UsageError
from synmt.files.checksums import verify_large_files
from synmt.files.own_code import ALLOW, allowing_code
from synmt.options import Option
from synmt.parallel.threads import use_threads

T = TypeVar("T")

Values = dict[str, Any]
"""The values of options, by their parameters."""
Typed = Mapping[str, str]
"""The spelling of each option that the user typed, such as `--metrics/--metric`, by its
parameter."""


@dataclass(frozen=True)
class Declared:
    """An option of a command: its parameter, type, text and default."""

    name: str
    kind: Any
    option: Option
    default: Any = None

    def parameter(self, panel: str | None = None) -> inspect.Parameter:
        """Make the parameter that typer reads; `panel` is that of an option that names none."""
        option = self.option
        # a flag has no opposite, unless its names say so
        flag = [f"--{self.name.replace('_', '-')}"] if self.kind is bool else []
        make = typer.Argument if option.is_argument else typer.Option
        info = make(
            *(option.names.split() or flag),
            help=option.help,
            metavar=option.metavar or self._metavar(),
            rich_help_panel=None if option.is_argument else option.panel or panel,
            min=option.minimum,
            envvar=option.variable,
            show_default=option.show_default,
        )
        return inspect.Parameter(
            self.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=self.default,
            annotation=Annotated[_as_typed(self.kind, checked=option.metavar is None), info],
        )

    def _metavar(self) -> str | None:
        """Choose what stands for a value on the help page: nothing for a flag; None for names,
        which the page lists."""
        kinds = {self.kind, *get_args(self.kind)}
        return next((shown for kind, shown in _VALUES.items() if kind in kinds), None)


_VALUES = {bool: "", int: "N", float: "X", str: "TEXT"}


@cache
def declared(record: type) -> tuple[Declared, ...]:
    """List the options of a record: its fields that are annotated with one."""
    declarations = []
    for name, annotated in get_type_hints(record, include_extras=True).items():
        for option in getattr(annotated, "__metadata__", ()):
            if not isinstance(option, Option):
                continue
            none = inspect.Parameter.empty if option.is_argument else None
            default = getattr(record, name, none)
            if default == () or isinstance(option.show_default, str):
                default = None
            # what is annotated, without the annotation
            declarations.append(Declared(name, annotated.__origin__, option, default))
    return tuple(declarations)


def _as_typed(kind: Any, *, checked: bool) -> Any:
    """Return the type of a field as typer reads it: several values are a list, and typer may check
    names."""
    for part in get_args(kind) if get_origin(kind) in (Union, UnionType) else [kind]:
        if get_origin(part) is Sequence:
            return list[get_args(part)] | None
        if get_origin(part) is Literal and not checked:
            return str | None
    return kind


_Format = Literal["text", "json", "tsv", "latex", "markdown"]


@dataclass(frozen=True, kw_only=True)
class TableOptions:
    """How a command prints its tables."""

    kind: Annotated[
        _Format,
        Option(
            "Format of the tables. latex needs the package booktabs; tsv has notes on stderr.",
            names="--format",
        ),
    ] = "text"
    as_json: Annotated[bool, Option("Print JSON, as --format json does.", names="--json")] = False

    @property
    def format(self) -> _Format:
        """The format."""
        return "json" if self.as_json else self.kind


@dataclass(frozen=True, kw_only=True)
class _SharedOptions:
    """Options of every command."""

    threads: Annotated[
        int | None,
        Option(
            "Number of CPU threads. Default: $SYNMT_THREADS, else all cores that the process may "
            "use.",
            metavar="N",
            minimum=1,
            show_default=False,
        ),
    ] = None
    allow_code: Annotated[
        bool,
        Option(
            "Allow the code of modules that a recipe or run names, until it changes (synmt --docs "
            "security).",
            variable=ALLOW,
            show_default=False,
        ),
    ] = False
    verify: Annotated[
        bool,
        Option(
            "Compare large files of runs and prepared corpora with their checksums, and not only "
            "small ones."
        ),
    ] = False


def command(
    function: Callable[..., None], own: Sequence[inspect.Parameter] = ()
) -> Callable[..., None]:
    """Make a command of a function that takes records of options, and perhaps what the user has
    `typed`.

    own: parameters before those of the records; the function gets their `values`.
    """
    kinds = get_type_hints(function)
    records = {
        name: kind for name, kind in kinds.items() if isinstance(kind, type) and is_dataclass(kind)
    }
    options = [
        declaration.parameter()
        for record in [*records.values(), _SharedOptions]
        for declaration in declared(record)
    ]

    def run(context: typer.Context, **values: Any) -> None:
        # before the command loads torch
        use_threads(values["threads"])
        verify_large_files(values["verify"])
        arguments = {
            "values": {parameter.name: values[parameter.name] for parameter in own},
            "typed": typed_options(context),
        }
        with allowing_code(values["allow_code"]):
            for name, record in records.items():
                # what was not typed, and has no default, has that of the record
                arguments[name] = filled(record, SimpleNamespace(**values))
            function(**{name: arguments[name] for name in kinds if name != "return"})

    context = inspect.Parameter("context", inspect.Parameter.KEYWORD_ONLY, annotation=typer.Context)
    parameters = [context, *own, *options]
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    run.__name__, run.__module__ = function.__name__, function.__module__
    # the help wraps paragraphs to the width of the terminal, but keeps line breaks
    run.__doc__ = "\n\n".join(
        paragraph.replace("\n", " ")
        for paragraph in inspect.cleandoc(function.__doc__ or "").split("\n\n")
    )
    return run


def typed_options(context: typer.Context) -> Typed:
    """Map each parameter that the user typed to its spelling on the command line."""
    return {
        name: spelling(parameter)
        for parameter in context.command.params
        if (origin := context.get_parameter_source(name := str(parameter.name)))
        and origin.name == "COMMANDLINE"
    }


def filled(record: Callable[..., T], options: Any, **others: Any) -> T:
    """Make a record from the options of the same names that have a value, and from others."""
    values = {
        name: value
        for name in get_type_hints(record)
        if (value := getattr(options, name, None)) is not None
    }
    return record(**values, **others)


def refuse_typed(typed: Typed, names: Iterable[str], what: str, *, do: str) -> None:
    """Raise UsageError if the user typed one of these options; `what` is what the message says of
    it."""
    for name in names:
        if name in typed:
            raise UsageError(f"{typed[name]} {what}", do=do)


def piped(values: Values) -> list[str]:
    """Find the option that reads standard input, `-`: a list of its name. Raises UsageError if
    there are several."""
    names = [
        name
        for name, value in values.items()
        for path in (value if isinstance(value, list) else [value])
        if str(path) == "-"
    ]
    if len(names) > 1:
        raise UsageError(
            f"standard input can be read only once, not by {' and '.join(names)}",
            do="Give `-` for one of them",
        )
    return names
