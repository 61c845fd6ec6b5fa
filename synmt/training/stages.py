"""Stages: what a command does on the way from a recipe to a trained run, in order.

A run of the command makes the stages that are not done; a dry run shows the same list.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, Literal, TypeVar

from synmt.errors import SynmtError, all_in_one
from synmt.reporting.values import Table, text_column

Result = TypeVar("Result")
_logger = logging.getLogger(__name__)
State = Literal["done", "to do", "missing", "changed"]


@dataclass(frozen=True)
class Estimate:
    """What a dry run shows of a stage, or of a part of it.

    what: begins with a verb.
    state: `done`, `to do`, or `missing` and `changed` if the command would stop here.
    amount: its size or estimated time: bytes, lines, hours, weights; for `changed`, what has
        changed.
    remark: what the amount is based on.
    problem: what the command would report where it would stop.
    """

    what: str
    state: State
    amount: str = ""
    remark: str = ""
    problem: SynmtError | None = None


class Stage(Generic[Result]):
    """A stage: what it makes is on disk, so it is done once. Later stages read `known` of earlier
    ones.

    known: the result; None as long as it is not made, or not looked for.
    """

    name = ""
    known: Result | None = None

    def find(self) -> Result | None:
        """Find the result; None if it has to be made, or an earlier stage is not done."""
        raise NotImplementedError

    def make(self) -> Result:
        """Make the result, after all earlier stages, and report the progress."""
        raise NotImplementedError

    def estimate(self) -> Iterable[Estimate]:
        """Describe the stage, and estimate what it would take; earlier stages have been
        estimated."""
        raise NotImplementedError

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

    def run(self) -> None:
        """Make the result."""
        self.known = self.make()


def run_stages(stages: Iterable[Stage]) -> bool:
    """Make what is not done; returns whether there was something to do.

    An error also names the problems of later stages, such as other missing files.
    """
    new, waiting = False, iter(stages)
    for stage in waiting:
        try:
            if not stage.is_done():
                stage.run()
                new = True
            elif isinstance(stage.known, Path):
                _logger.info("%s: %s exists already", stage.name, stage.known)
        except SynmtError as error:
            problems = {
                str(step.problem): step.problem for step in estimate_all(waiting) if step.problem
            }
            raise all_in_one([error, *problems.values()]) from error
    return new


def estimate_all(stages: Iterable[Stage]) -> Iterator[Estimate]:
    """Describe all stages for a dry run; nothing is made."""
    for stage in stages:
        try:
            stage.is_done()
            yield from list(stage.estimate())
        except SynmtError as error:
            yield Estimate(stage.name, "missing", problem=error)


def steps_table(steps: Iterable[Estimate]) -> Table:
    """Make the table of a dry run."""
    rows = [[step.what, step.state, step.amount] for step in steps]
    remarks = dict.fromkeys(step.remark for step in steps if step.remark)
    return Table(
        columns=[text_column(name) for name in ("step", "state", "amount")],
        rows=rows,
        notes=list(remarks),
    )
