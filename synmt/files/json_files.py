"""Reads JSON that synmt wrote earlier, by a schema: the types of its keys and values, which
pydantic checks."""

from __future__ import annotations

from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Annotated, TypeVar

from pydantic import Field, TypeAdapter, ValidationError

from synmt.errors import RESTORE, SynmtError, plain_message

T = TypeVar("T")

Count = Annotated[int, Field(ge=0, lt=2**63)]
Amount = Annotated[float, Field(ge=0, le=1e18, allow_inf_nan=False)]
"""Seconds, joules or the like: sums of them stay finite."""


def read_json(path: Path, schema: type[T], *, do: str = RESTORE) -> T:
    """Read a JSON file; raises SynmtError if it is missing, or with the first key that does not fit
    the schema.

    do: what to do about a broken file.
    """
    value = read_json_if_there(path, schema, do=do)
    if value is None:
        raise SynmtError("is missing", where=path, do=do)
    return value


def read_json_if_there(path: Path, schema: type[T], *, do: str = RESTORE) -> T | None:
    """Read a JSON file as `read_json` does; None if there is no such file."""
    content = _content(path)
    return None if content is None else parse_json(content, schema, where=str(path), do=do)


def read_cached_json(path: Path, schema: type[T]) -> T | None:
    """Read a JSON file whose content can be made again; None if it is missing, or broken in any
    way."""
    with suppress(SynmtError):
        return read_json_if_there(path, schema)
    return None


def read_json_lines(path: Path, schema: type[T]) -> list[T]:
    """Read a file with JSON on each line as `read_json` does; an empty list if there is no such
    file."""
    # a process that was killed may leave half a line, without an end
    lines = (_content(path) or b"").split(b"\n")[:-1]
    return [
        parse_json(line, schema, where=f"{path}, line {number}")
        for number, line in enumerate(lines, start=1)
        if line
    ]


def _content(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        what = f"cannot read the file ({error.strerror})"
        raise SynmtError(what, where=path, do="Check its permissions") from None


def parse_json(text: str | bytes, schema: type[T], *, where: str, do: str = RESTORE) -> T:
    """Parse a JSON text; raises SynmtError with the first key that does not fit the schema."""
    try:
        # strict JSON turns lists into tuples, but never "3" or true into a number
        return _adapter(schema).validate_json(text, strict=True)
    except ValidationError as error:
        problem = error.errors(include_url=False)[0]
        key = ".".join(map(str, problem["loc"])) or "the content"
        raise SynmtError(f"broken: {key}: {plain_message(problem)}", where=where, do=do) from None


_adapter = cache(TypeAdapter)
