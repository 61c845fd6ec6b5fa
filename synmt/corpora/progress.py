"""How far a long stage is."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Progress:
    """The progress of a stage: a download, or work on the lines of a file.

    stage: its name, such as `filter`, `trees of train` or `download dev.tgz`.
    total: None if it is not known.
    unit: what is counted, lines or bytes.
    """

    stage: str
    done: int
    total: int | None
    unit: str = "lines"
