"""What a command line shows of the fields of a record of options; the type and the default are the field's own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass


@dataclass(frozen=True)
class Option:
    """Makes a field of a record an option of a command: `draw: Annotated[int, Option("…", minimum=0)] = 0`.

    help: its text on the help page.
    names: its spellings, if they do not follow from the name of the field.
    metavar: what stands for its value; one that ends in `…` has several. With it, the library checks names.
    panel: its panel on the help page; by default that of all other options.
    minimum: the lowest number allowed.
    variable: the environment variable that it is read from otherwise.
    complete: lists what a shell may complete.
    asks: whether it asks a question of `synmt analyze`; other options only say how it is answered.
    is_argument: whether it is written without a name.
    is_hidden: whether the help page leaves it out.
    show_default: whether the help page shows the default of the field; or what it shows in its place.
    """

    help: str = ""
    _: KW_ONLY
    names: str = ""
    metavar: str | None = None
    panel: str | None = None
    minimum: int | None = None
    variable: str | None = None
    complete: Callable[[str], list[str]] | None = None
    asks: bool = False
    is_argument: bool = False
    is_hidden: bool = False
    show_default: bool | str = True
