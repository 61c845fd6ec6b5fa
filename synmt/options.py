"""What a command line shows of the fields of a record of options; the type and the default are the field's own."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass


@dataclass(frozen=True)
class Option:
    """Makes a field of a record an option of a command: `draw: Annotated[int, Option("…", minimum=0)] = 0`.

    help: its text on the help page.
    names: its spellings, if they do not follow from the name of the field.
    metavar: what stands for its value; one that ends in `…` has several.
    minimum: the lowest number allowed.
    asks: whether it asks a question of `synmt analyze`; other options only say how it is answered.
    is_argument: whether it is written without a name.
    show_default: whether the help page shows the default of the field.
    """

    help: str
    _: KW_ONLY
    names: str = ""
    metavar: str | None = None
    minimum: int | None = None
    asks: bool = False
    is_argument: bool = False
    show_default: bool = True
