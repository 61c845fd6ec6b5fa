"""What a person did that cannot work, said so that they can mend it."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path


class SynmtError(Exception):
    """A mistake of the user or of their machine: what is wrong, where, what is allowed, what to do.

    what: one sentence, without the full stop at its end.
    where: file, line, key or sentence.
    allowed: the values that would have been accepted.
    do: the next step.
    """

    exit_code = 1

    def __init__(self, what: str, *, where: str = "", allowed: str = "", do: str = "") -> None:
        self.what, self.where, self.allowed, self.do = what, where, allowed, do
        super().__init__(str(self))

    def __str__(self) -> str:
        parts = [f"{self.where}: {self.what}" if self.where else self.what, self.allowed, self.do]
        *before, last = [part for part in parts if part]
        sentences = [part if part.endswith((".", "?", "!")) else part + "." for part in before]
        # a command at the end is easier to copy without a full stop
        return " ".join([*sentences, last if last.endswith((".", "?", "!", "`")) else last + "."])


class UsageError(SynmtError):
    """Wrong arguments or a wrong recipe: nothing has been started."""

    exit_code = 2


def all_in_one(errors: list[SynmtError]) -> SynmtError:
    """Join several mistakes into one error, a line each, so that all can be mended at once."""
    if len(errors) == 1:
        return errors[0]
    kind = UsageError if any(isinstance(error, UsageError) for error in errors) else SynmtError
    return kind("\n".join(str(error) for error in errors))


@contextmanager
def naming(file: Path) -> Iterator[None]:
    """Put the file that a person wrote before every error of the block, which knows only its keys."""
    try:
        yield
    except SynmtError as error:
        if "\n" in error.what:
            raise type(error)("\n".join(f"{file}: {line}" for line in error.what.splitlines())) from error
        where = f"{file}: {error.where}" if error.where else str(file)
        raise type(error)(error.what, where=where, allowed=error.allowed, do=error.do) from error


def did_you_mean(name: str, names: Iterable[str]) -> str:
    """Name the nearest valid name as a question; empty where none is near."""
    near = difflib.get_close_matches(name, list(names), n=1, cutoff=0.6)
    return f"Did you mean '{near[0]}'?" if near else ""
