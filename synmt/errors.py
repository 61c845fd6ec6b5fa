"""User errors: what is wrong, where, what is allowed, what to do next."""

from __future__ import annotations

import difflib
import errno
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from typing_extensions import Self


class SynmtError(Exception):
    """A problem that the user can fix: what is wrong, where, what is allowed, what to do.

    what: one sentence, without its final full stop.
    where: file, line, key or sentence.
    allowed: the values that would have been accepted.
    do: the next step.
    """

    exit_code = 1

    def __init__(
        self, what: str, *, where: str | Path = "", allowed: str = "", do: str = ""
    ) -> None:
        self.what, self.where, self.allowed, self.do = what, str(where), allowed, do
        super().__init__(str(self))

    def __str__(self) -> str:
        text = _sentences(
            f"{self.where}: {self.what}" if self.where else self.what, self.allowed, self.do
        )
        # a command at the end is easier to copy without a full stop
        return text[:-1] if text.endswith("`.") else text

    def with_(self, **parts: str) -> Self:
        """Copy the error with some of its parts replaced:
        `raise error.with_(do="…") from error`."""
        return type(self)(**(vars(self) | parts))

    def with_advice(self, more: str) -> Self:
        """Copy the error with one more sentence of what to do; an empty one changes nothing."""
        return self.with_(do=_sentences(self.do, more))


def _sentences(*parts: str) -> str:
    """Join parts that are not empty as sentences."""
    return " ".join(
        part if part.endswith((".", "?", "!")) else f"{part}." for part in parts if part
    )


class UsageError(SynmtError):
    """Wrong arguments or a wrong recipe: nothing has been started."""

    exit_code = 2


def all_in_one(errors: list[SynmtError]) -> SynmtError:
    """Join several errors into one, a line each, so that the user can fix all of them at once."""
    if len(errors) == 1:
        return errors[0]
    kind = UsageError if any(isinstance(error, UsageError) for error in errors) else SynmtError
    return kind("\n".join(str(error) for error in errors))


_NO_MEMORY = re.compile(
    r"can(no|')t allocate memory|out of memory|not enough memory|MemoryError|bad_alloc|os "
    r"error 12\b"
    r"|can't start new thread|resource temporarily unavailable$"
    r"|could not (create|execute) a primitive$|failed to map segment from shared object$",
    re.IGNORECASE,
)
"""What libraries say where they raise no MemoryError: PyTorch, oneDNN, safetensors, the loader of
Linux, threads."""


_MOST_CAUSES = 10


class OutOfMemory(SynmtError):
    """Memory ran out."""


def is_out_of_memory(error: BaseException | None) -> bool:
    """Check whether memory ran out: in this error, or in one that led to it."""
    for _ in range(_MOST_CAUSES):
        if isinstance(error, MemoryError | OutOfMemory):
            return True
        if isinstance(error, OSError) and error.errno == errno.ENOMEM:
            return True
        # an OSError has its number, and a message of synmt's may quote a text
        quotes = isinstance(error, SynmtError | OSError)
        if not quotes and _NO_MEMORY.search(f"{type(error).__name__}: {error}"):
            return True
        error = error and (error.__cause__ or error.__context__)
    return False


@contextmanager
def naming_lack_of_memory() -> Iterator[None]:
    """Raise OutOfMemory in place of an error that lack of memory led to: its message may blame a
    file."""
    try:
        yield
    except Exception as error:
        if isinstance(error, OutOfMemory) or not is_out_of_memory(error):
            raise
        do = (
            "Free some, or raise the limit (ulimit -v); smaller batches (training.batch_tokens, "
            "with more training.accumulate) and --threads 1 need less"
        )
        raise OutOfMemory("out of memory", do=do) from error


RESTORE = "Restore the folder from a copy, or remove it, and prepare or train again"
"""What to do about a damaged file that prepared corpora and runs have."""

RETRANSLATE = (
    "Remove the folder of this test set, and run the same `synmt train` again: it "
    "translates the test set"
)
"""What to do about a damaged file in the folder of a test set's translations."""


def broken_run(path: Path, what: str) -> SynmtError:
    """Make the error for a file of a run folder that cannot be used."""
    return SynmtError(
        f"the run folder is broken: {what}",
        where=path,
        do="Restore it from a copy, or remove it and train again",
    )


@contextmanager
def naming(file: Path) -> Iterator[None]:
    """Prefix an error raised in the block with the user's file; the code inside knows only its
    keys."""
    try:
        yield
    except SynmtError as error:
        raise error.with_(where=f"{file}: {error.where}" if error.where else str(file)) from error


@contextmanager
def adding_advice(more: str) -> Iterator[None]:
    """Add a sentence to the advice of every error raised in the block; an empty one changes
    nothing."""
    try:
        yield
    except SynmtError as error:
        raise error.with_advice(more) from error


def unknown_name(what: str, name: str, names: Iterable[str], *, where: str = "") -> UsageError:
    """Make the error for a name that does not exist; `what` says what has such names, for example
    `metric`."""
    names = list(names)
    allowed = f"{what.capitalize()}s: {', '.join(names)}"
    return UsageError(
        f"there is no {what} '{name}'", where=where, allowed=allowed, do=did_you_mean(name, names)
    )


def listed(names: Iterable[str], most: int | None = None) -> str:
    """Write a list as in a sentence: `a, b and c`; of more than `most` names the first ones:
    `a, b and 7 more`."""
    names = list(names)
    if most is not None and len(names) > most:
        names[most:] = [f"{len(names) - most:,} more"]
    return " and ".join(filter(None, [", ".join(names[:-1]), *names[-1:]]))


def did_you_mean(name: str, names: Iterable[str | Path]) -> str:
    """Suggest the closest valid name, or path with such a name, as a question; empty if none is
    close."""
    choices = {getattr(choice, "name", str(choice)).lower(): choice for choice in names}
    near = difflib.get_close_matches(name.lower(), choices, n=1, cutoff=0.6)
    return f"Did you mean '{choices[near[0]]}'?" if near else ""


def plain_message(problem: Mapping[str, Any]) -> str:
    """Describe what is wrong with a value: `problem` is an item of `ValidationError.errors()`."""
    message = str(problem["msg"]).removeprefix("Value error, ").replace("Input should", "must")
    return message[0].lower() + message[1:]


_CONTROL = re.compile("[\\x00-\\x08\\x0b-\\x1f\\x7f-\\x9f\\u202a-\\u202e\\u2066-\\u2069]")
"""Characters that would control the terminal or turn text around."""


def visible(text: str) -> str:
    """Show control characters, which names and texts may have, as `\\x1b` in place of sending them
    to a terminal."""
    return _CONTROL.sub(lambda match: match[0].encode("unicode_escape").decode(), text)
