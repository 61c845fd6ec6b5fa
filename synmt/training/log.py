"""The log of a run: one JSON object per line, and TensorBoard if it is installed."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from synmt.arrays import json_text
from synmt.errors import SynmtError
from synmt.files.json_files import parse_json
from synmt.files.links import in_place, place_of
from synmt.files.schemas import LogLine
from synmt.files.writing import reporting_os_errors, write_atomically
from synmt.training.records import EndRecord, LogRecord, ValidationRecord


class Log:
    """Writes records of training; removes those that an interrupted run wrote after its last
    checkpoint.

    folder: the run folder.
    resumed_at: the step from which training continues.
    """

    def __init__(self, folder: Path, resumed_at: int) -> None:
        self.path = folder / "log.jsonl"
        _drop_after(self.path, resumed_at)
        self._board = _tensorboard(folder / "tensorboard")

    def write(self, record: LogRecord) -> None:
        """Append one record."""
        kind = type(record).__name__.removesuffix("Record").lower()
        with reporting_os_errors(self.path), open(self.path, "a", encoding="utf-8") as out:
            # the gradient norm of an fp16 step may be infinite
            out.write(json_text({"kind": kind, **asdict(record)}) + "\n")
        if self._board is not None and not isinstance(record, EndRecord):
            prefix = "validation" if isinstance(record, ValidationRecord) else "training"
            for name, value in _numbers(asdict(record)):
                self._board.add_scalar(f"{prefix}/{name}", value, record.step)
            self._board.flush()


def _numbers(record: dict[str, Any]) -> list[tuple[str, float]]:
    flat = {**record, **record.get("losses", {})}
    return [
        (name, float(value))
        for name, value in flat.items()
        if isinstance(value, int | float) and name not in ("step", "best")
    ]


def _drop_after(path: Path, step: int) -> None:
    lines_to_keep = []
    if not path.exists():
        in_place(path)
        return
    for line in path.read_text(encoding="utf-8", errors="replace").split("\n"):
        # an incomplete line, of a process that was killed or a machine that lost its power, is not
        # a record
        with suppress(SynmtError):
            record = parse_json(line, LogLine, where=str(path))
            if record["step"] <= step and record["kind"] != "end":
                lines_to_keep.append(line)
    with write_atomically(path) as out:
        out.writelines(f"{line}\n" for line in lines_to_keep)


def _tensorboard(folder: Path) -> Any:
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        return None
    return SummaryWriter(str(place_of(folder / "events").parent))
