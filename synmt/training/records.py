"""What training tells: records of steps, validations and the end, and the meter that gathers steps for one."""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Iterator
from dataclasses import dataclass

import torch

from synmt.model.device import peak_memory


@dataclass(frozen=True)
class StepRecord:
    """The mean over the steps since the last record.

    loss: label-smoothed loss of a target piece, in nats; `losses` holds the auxiliary ones, weighted.
    perplexity: without smoothing.
    memory: the most held so far, in bytes.
    """

    step: int
    loss: float
    perplexity: float
    losses: dict[str, float]
    learning_rate: float
    gradient_norm: float
    tokens_per_second: float
    memory: int


@dataclass(frozen=True)
class ValidationRecord:
    """Loss in nats for a target piece, without smoothing; BLEU of detokenised text where it is asked for.

    decays: how often the schedule `plateau` has lowered the rate.
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


Record = StepRecord | ValidationRecord | EndRecord


@dataclass(frozen=True)
class Step:
    """What one step did: means over this process's tokens, tokens of this and of all processes."""

    means: dict[str, float]
    tokens: int
    all_tokens: int
    learning_rate: float
    gradient_norm: float


class Meter:
    """Gathers steps until somebody asks for their mean."""

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self.steps: list[Step] = []
        self.start()

    def start(self) -> None:
        """Begin to measure the speed."""
        self.tokens, self.began = 0, time.monotonic()

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        """Leave the time of a block out of the speed."""
        stopped = time.monotonic()
        yield
        self.began += time.monotonic() - stopped

    def add(self, step: Step) -> None:
        """Add one step."""
        self.steps.append(step)
        self.tokens += step.all_tokens

    def record(self, number: int) -> StepRecord:
        """Give the means and begin anew."""
        seconds = time.monotonic() - self.began
        tokens = sum(step.tokens for step in self.steps)
        means = {
            name: sum(step.means[name] * step.tokens for step in self.steps) / tokens for name in self.steps[0].means
        }
        loss, nll = means.pop("loss"), means.pop("nll")
        record = StepRecord(
            step=number,
            loss=loss,
            perplexity=perplexity(nll),
            losses=means,
            learning_rate=self.steps[-1].learning_rate,
            gradient_norm=self.steps[-1].gradient_norm,
            tokens_per_second=self.tokens / seconds,
            memory=peak_memory(self.device),
        )
        self.steps = []
        self.start()
        return record


def perplexity(nll: float) -> float:
    """Turn nats for a piece into a perplexity, as long as it can be written."""
    return math.exp(min(nll, 700.0))
