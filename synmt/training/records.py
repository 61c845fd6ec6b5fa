"""The records that training yields, and the log of a run: one JSON object per line, and TensorBoard
if it is installed."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

from synmt.arrays import Pair, Values, json_text
from synmt.errors import SynmtError
from synmt.files.json_files import parse_json
from synmt.files.schemas import LogLine
from synmt.files.writing import reporting_os_errors, without_link, write_lines
from synmt.recipe.schema import TrainingRecipe


@dataclass(frozen=True)
class StartRecord:
    """The start of training.

    step: the step from which an interrupted run continues; 0 for a new one.
    weights: the number of parameters.
    frozen: how many of them are not trained.
    """

    step: int
    weights: int
    frozen: int
    device: str
    settings: TrainingRecipe


@dataclass(frozen=True)
class StepRecord:
    """The mean over the steps since the last record.

    loss: label-smoothed loss per target piece, in nats; `losses` holds the auxiliary losses,
        weighted.
    perplexity: without smoothing.
    memory: peak memory so far, in bytes.
    tokens: target pieces, of all processes.
    seconds: time of this process.
    processor_seconds: processor time, of all processes.

    These three count since the last record, or since training continued, without validation and
    checkpoints.

    skipped: steps of fp16 that changed no weights, because their gradients were not finite.
    """

    step: int
    loss: float
    perplexity: float
    losses: dict[str, float]
    learning_rate: float
    gradient_norm: float
    tokens_per_second: float
    memory: int
    seconds: float
    processor_seconds: float
    tokens: int
    skipped: int = 0


@dataclass(frozen=True)
class ValidationScores:
    """The validation text, translated and scored.

    scores: by metric.
    criterion: that of `training.best`; less is better.
    samples: the first references, each with its translation.
    """

    scores: dict[str, float]
    criterion: float
    samples: Sequence[Pair] = ()


@dataclass(frozen=True)
class ValidationRecord:
    """One validation.

    loss: per target piece, in nats, without smoothing.
    bleu: of detokenized text; None if the recipe leaves translations out.
    scores, samples: as in `ValidationScores`.
    decays: how often the schedule `plateau` has lowered the learning rate.
    """

    step: int
    loss: float
    perplexity: float
    bleu: float | None
    best: bool
    decays: int = 0
    scores: dict[str, float] = field(default_factory=dict)
    samples: Sequence[Pair] = ()


@dataclass(frozen=True)
class EndRecord:
    """Why training stopped: max_steps, patience, decays, or interrupted."""

    step: int
    reason: str


END_REASONS = {
    "max_steps": "all steps are done (training.max_steps)",
    "patience": "no improvement in the last validations (training.patience)",
    "decays": "no improvement after the last learning rate decay (training.max_decays)",
    "interrupted": "interrupted",
}
"""Descriptions of the reasons of an EndRecord, to follow the step."""


@dataclass(frozen=True)
class ScoreRecord:
    """The score of the final model on a test set."""

    test: str
    metric: str
    score: float
    signature: str


@dataclass(frozen=True)
class RunRecord:
    """The last record: where the run is, and whether it has finished or was interrupted after some
    steps."""

    folder: Path
    status: Literal["finished", "interrupted"]
    steps: int


LogRecord = StepRecord | ValidationRecord | EndRecord
"""What the trainer yields and the log stores."""


class Log:
    """Writes records of training; removes those that an interrupted run wrote after its last
    checkpoint.

    folder: the run folder.
    resumed_at: the step from which training continues.
    """

    def __init__(self, folder: Path, resumed_at: int) -> None:
        self.path = folder / "log.jsonl"
        _drop_after(self.path, resumed_at)
        self._board = _tensorboard(folder / "tensorboard", resumed_at)

    def write(self, record: LogRecord) -> None:
        """Append one record."""
        kind = type(record).__name__.removesuffix("Record").lower()
        path = without_link(self.path)
        with reporting_os_errors(path), open(path, "a", encoding="utf-8") as out:
            # the gradient norm of an fp16 step may be infinite
            out.write(json_text({"kind": kind, **asdict(record)}) + "\n")
        if self._board is not None and not isinstance(record, EndRecord):
            prefix = "validation" if isinstance(record, ValidationRecord) else "training"
            for name, value in _numbers(asdict(record)):
                self._board.add_scalar(f"{prefix}/{name}", value, record.step)
            for number, pair in enumerate(getattr(record, "samples", ()), 1):
                self._board.add_text(f"{prefix}/line {number}", "\n\n".join(pair), record.step)
            self._board.flush()


def _numbers(record: Values) -> list[tuple[str, float]]:
    return [
        (name, float(value))
        for name, value in {
            **record,
            **record.get("losses", {}),
            **record.get("scores", {}),
        }.items()
        if isinstance(value, int | float) and name not in ("step", "best")
    ]


def _drop_after(path: Path, step: int) -> None:
    lines_to_keep = []
    if not path.exists():
        return
    for line in path.read_text(encoding="utf-8", errors="replace").split("\n"):
        # an incomplete line, of a process that was killed or a machine that lost its power, is not
        # a record
        with suppress(SynmtError):
            record = parse_json(line, LogLine, where=str(path))
            if record["step"] <= step and record["kind"] != "end":
                lines_to_keep.append(line)
    write_lines(path, lines_to_keep)


def _tensorboard(folder: Path, resumed_at: int) -> Any:
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        return None
    # it hides what an interrupted run wrote after its last checkpoint
    return SummaryWriter(str(folder), purge_step=resumed_at + 1)
