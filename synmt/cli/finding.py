"""What one kind of `synmt analyze` has found, before it is shown: for people, for machines, or on a page."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from synmt.analysis.html import Section


@dataclass(frozen=True)
class AnalysisReport:
    """The result of one kind of analysis.

    system: the run or file that it is about.
    values: gives all of it, as plain values for JSON.
    show: prints it for people, on stdout.
    sections: gives it as parts of a page.
    runs: the folders of the runs that it is about.
    """

    system: str
    values: Callable[[], dict[str, Any]]
    show: Callable[[], None]
    sections: Callable[[], Sequence[Section]]
    runs: tuple[Path, ...] = ()
