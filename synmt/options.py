"""What a command line shows of the fields of a record of options; the type and the default are the
field's own."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass
from typing import Any, get_type_hints

from synmt.errors import UsageError

MAX_BEAM = 10_000
"""A wider beam does not fit into memory, and finds nothing better."""
MAX_PENALTY = 10
"""With a larger alpha, the length penalty of a long translation overflows float32."""


@dataclass(frozen=True)
class Range:
    """The numbers that a field of a record may be, all finite:
    `beam_size: Annotated[int, Range(1, MAX_BEAM)] = 4`.

    is_open: whether the minimum itself is not allowed.
    """

    minimum: int
    maximum: float = math.inf
    _: KW_ONLY
    is_open: bool = False

    def __contains__(self, value: float) -> bool:
        too_low = value <= self.minimum if self.is_open else value < self.minimum
        return math.isfinite(value) and not too_low and value <= self.maximum

    def __str__(self) -> str:
        lowest = f"{'above' if self.is_open else 'from'} {self.minimum}"
        return lowest if math.isinf(self.maximum) else f"{lowest} up to {self.maximum:,}"


def out_of_range(record: Any) -> Iterator[UsageError]:
    """Make an error for each field that is not in its range, named as on the command line."""
    for name, kind in get_type_hints(type(record), include_extras=True).items():
        value = getattr(record, name)
        for allowed in getattr(kind, "__metadata__", ()):
            if isinstance(allowed, Range) and value not in allowed:
                yield UsageError(
                    f"--{name.replace('_', '-')} cannot be {value}", allowed=f"Allowed: {allowed}"
                )


@dataclass(frozen=True)
class Option:
    """Makes a field of a record an option of a command:
    `draw: Annotated[int, Option("…", minimum=0)] = 0`.

    help: its text on the help page.
    names: its spellings, if they do not follow from the name of the field.
    metavar: what stands for its value; one that ends in `…` has several. With it, the library
        checks names.
    panel: its panel on the help page; by default that of all other options.
    minimum: the lowest number allowed, if it is not that of its `Range`.
    variable: the environment variable that it is read from otherwise.
    asks: whether it asks a question of `synmt analyze`; other options only say how it is answered.
    is_argument: whether it is written without a name.
    show_default: whether the help page shows the default of the field; or what it shows in its
        place, where the value of an option that was not typed is None.
    """

    help: str = ""
    _: KW_ONLY
    names: str = ""
    metavar: str | None = None
    panel: str | None = None
    minimum: int | None = None
    variable: str | None = None
    asks: bool = False
    is_argument: bool = False
    show_default: bool | str = True
