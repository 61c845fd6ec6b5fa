"""Stages: what a command does on the way from a recipe to a trained run, in order.

A run of the command makes the stages that are not done; a dry run shows the same list.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Generic, TypeVar

from synmt.corpora.resolve import Estimate
from synmt.errors import SynmtError
from synmt.reporting.values import Table, text_column

Result = TypeVar("Result")


class Stage(Generic[Result]):
    """A stage: what it makes is on disk, so it is done once. Later stages read `known` of earlier
    ones.

    known: the result; None as long as it is not made, or not looked for.
    parts: the stages that come before it unless it is done.
    is_idle: whether the recipe needs nothing of it, so that a dry run does not show it.
    """

    name = ""
    known: Result | None = None
    parts: Sequence[Stage[Any]] = ()
    is_idle = False

    def find(self) -> Result | None:
        """Find the result; None if it has to be made, or an earlier stage is not done."""
        raise NotImplementedError

    def make(self) -> Result:
        """Make the result, after all earlier stages, and report the progress."""
        raise NotImplementedError

    def size(self) -> str:
        """Return how much it is, or where the result is."""
        return str(self.known) if isinstance(self.known, Path) else ""

    def estimates(self) -> Iterable[Estimate]:
        """Describe the stage; earlier stages have been described."""
        return [] if self.is_idle else [Estimate(self.name, self.known is not None, self.size())]

    @property
    def result(self) -> Result:
        """The result of a stage that is done."""
        assert self.known is not None, self.name
        return self.known

    def is_done(self) -> bool:
        """Return whether the result is there."""
        if self.known is None:
            self.known = self.find()
        return self.known is not None


def run_stages(stages: Iterable[Stage[Any]]) -> bool:
    """Make what is not done; returns whether there was something to do."""
    new = False
    for stage in stages:
        if not stage.is_done():
            run_stages(stage.parts)
            stage.known, new = stage.make(), True
    return new


def estimate_all(stages: Iterable[Stage[Any]]) -> Iterator[Estimate]:
    """Describe all stages for a dry run; nothing is made."""
    for stage in stages:
        try:
            if not stage.is_done():
                yield from estimate_all(stage.parts)
            yield from list(stage.estimates())
        except SynmtError as error:
            yield Estimate(stage.name, problem=error)


def steps_table(steps: Iterable[Estimate]) -> Table:
    """Make the table of a dry run."""
    return Table(
        columns=[text_column(title) for title in ("step", "state", "size or place")],
        rows=[[step.what, step.state, step.size] for step in steps],
    )
