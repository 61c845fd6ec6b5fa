"""The records that training yields."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

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


@dataclass(frozen=True)
class ValidationRecord:
    """One validation.

    loss: per target piece, in nats, without smoothing.
    bleu: of detokenized text; None if the recipe leaves it out.
    decays: how often the schedule `plateau` has lowered the learning rate.
    """

    step: int
    loss: float
    perplexity: float
    bleu: float | None
    best: bool
    decays: int = 0


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
