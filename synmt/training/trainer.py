"""The training loop: a generator that yields a record of what has happened; it prints nothing.

Every step draws its random numbers from (seed, step), so a run that goes on from a checkpoint ends, bit for bit,
where an uninterrupted one ends.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from synmt.data.batch import Batch
from synmt.data.stream import Position, Reader, prefetch
from synmt.data.vocabulary import PAD
from synmt.errors import SynmtError
from synmt.model.device import autocast, is_out_of_memory
from synmt.model.seq2seq import Seq2Seq
from synmt.recipe.schema import Recipe
from synmt.run import Run, broken, drop_checkpoints, load_checkpoint, save_checkpoint
from synmt.training.distributed import Processes
from synmt.training.loss import smoothed_cross_entropy
from synmt.training.records import EndRecord, Meter, Record, Step, ValidationRecord, perplexity
from synmt.training.schedule import learning_rate


@dataclass
class State:
    """Where training stands; all of it is in a checkpoint."""

    step: int = 0
    epoch: int = 0
    batch: int = 0
    best_step: int = 0
    best_value: float | None = None
    waited: int = 0
    decays: int = 0
    """Validations on a plateau; a checkpoint written before that schedule was there has none."""
    scaler: dict[str, Any] = field(default_factory=dict)
    unlogged: list[dict[str, Any]] = field(default_factory=list)
    """Steps since the last record, so that the next one tells of them too when training goes on."""


class Trainer:
    """Trains one model into one run folder.

    score: translates the validation text and gives its BLEU; None leaves BLEU out.
    """

    def __init__(
        self,
        run: Run,
        recipe: Recipe,
        model: Seq2Seq,
        *,
        train: Reader,
        valid: Reader,
        device: torch.device,
        score: Callable[[Seq2Seq], float] | None = None,
        processes: Processes | None = None,
    ) -> None:
        self.run, self.recipe, self.settings = run, recipe, recipe.training
        self.model = model.to(device)
        self.train_reader, self.valid_reader, self.score = train, valid, score
        self.device, self.processes = device, processes or Processes()
        self.optimizer = torch.optim.AdamW(
            self.model.parameters(),
            betas=self.settings.betas,
            eps=self.settings.epsilon,
            weight_decay=self.settings.weight_decay,
            fused=True,
        )
        self.scaler = torch.amp.GradScaler(device.type, enabled=self.settings.precision == "fp16")
        self.state = State()
        self.stop_requested = False
        self._stopping = False
        self._meter = Meter(device)
        if self.settings.compile:
            self.model.compile(dynamic=True)

    def resume(self) -> int:
        """Go on from the newest checkpoint, where there is one; returns the step."""
        steps = self.run.checkpoints()
        if steps:
            self.state = _state(load_checkpoint(steps[-1], self.model, self.optimizer), steps[-1])
            self.scaler.load_state_dict(self.state.scaler)
            self._meter.steps = [Step(**step) for step in self.state.unlogged]
        return self.state.step

    def train(self) -> Iterator[Record]:
        """Train until max_steps, patience, the last decay or a request to stop, and yield what happens."""
        self._meter.start()
        stream = prefetch(self.train_reader.forever(Position(self.state.epoch, self.state.batch)))
        try:
            while (reason := self._reason_to_stop()) is None:
                batches, positions = zip(*islice(stream, self.settings.accumulate), strict=True)
                self._meter.add(self.update(batches))
                self.state.epoch, self.state.batch = positions[-1].epoch, positions[-1].batch
                if self.state.step % self.settings.log_every == 0:
                    yield self._meter.record(self.state.step)
                with self._meter.paused():
                    yield from self._validate_and_save()
        finally:
            stream.close()
        self._save()
        yield EndRecord(self.state.step, reason)

    def update(self, batches: tuple[Batch, ...]) -> Step:
        """Make one step from the gradients of a few batches; returns what the log wants to know."""
        self.state.step += 1
        torch.manual_seed(_seed(self.settings.seed, self.state.step, self.processes.rank))
        self.model.train()
        mine = sum(batch.target_tokens for batch in batches)
        # all processes stop at the same step, whichever of them was asked to
        tokens, stops = self.processes.sum(mine, int(self.stop_requested))
        self._stopping = stops > 0
        sums: dict[str, float] = {"loss": 0.0, "nll": 0.0}
        for batch in batches:
            with _naming_shape_when_full(batch):
                self._accumulate(batch, tokens, sums)
        model_dim, decays = self.recipe.model.model_dim, self.state.decays
        rate = learning_rate(self.state.step, self.settings, model_dim, decays=decays)
        norm = self._step_optimizer(rate, batches)
        means = {name: value / mine for name, value in sums.items()}
        return Step(means, mine, tokens, rate, norm)

    def validate(self) -> float:
        """Compute the mean negative log-likelihood of a target piece of the validation text, in nats."""
        self.model.eval()
        total, tokens = 0.0, 0
        with torch.inference_mode(), autocast(self.device, self.settings.precision):
            for batch in self.valid_reader.once():
                with _naming_shape_when_full(batch):
                    _, nll = self._losses(self.model(batch.to(self.device)).states, batch)
                total += float(nll)
                tokens += batch.target_tokens
        return total / max(1, tokens)

    def _accumulate(self, batch: Batch, tokens: int, sums: dict[str, float]) -> None:
        batch = batch.to(self.device)
        with autocast(self.device, self.settings.precision):
            output = self.model(batch)
            loss, nll = self._losses(output.states, batch)
        total = loss + sum(output.losses.values())
        self.scaler.scale(total / tokens).backward()
        # only now: to read a number is to wait for the GPU
        for name, value in {"loss": loss, "nll": nll, **output.losses}.items():
            sums[name] = sums.get(name, 0.0) + float(value.detach())
        if not math.isfinite(sums["loss"]):
            raise self._not_finite("loss", (batch,))

    def _not_finite(self, what: str, batches: tuple[Batch, ...]) -> SynmtError:
        lines = [str(line + 1) for batch in batches for line in batch.lines]
        more = f" and {len(lines) - 20} more" if len(lines) > 20 else ""
        return SynmtError(
            f"the {what} of step {self.state.step} is not a finite number",
            where=f"{self.run.folder}, training lines {', '.join(lines[:20])}{more}",
            do="Look at these lines, or lower training.learning_rate; clip_norm or float32 may help too. "
            "The last checkpoint is kept",
        )

    def _losses(self, states: Tensor, batch: Batch) -> tuple[Tensor, Tensor]:
        targets = batch.target_output.to(self.device)  # (B, T)
        real = targets != PAD  # (B, T)
        weight = self.model.output_weight
        return smoothed_cross_entropy(states[real], weight, targets[real], smoothing=self.settings.label_smoothing)

    def _step_optimizer(self, rate: float, batches: tuple[Batch, ...]) -> float:
        self.processes.sum_gradients(self.model)
        self.scaler.unscale_(self.optimizer)
        limit = self.settings.clip_norm or math.inf
        norm = float(torch.nn.utils.clip_grad_norm_(self.model.parameters(), limit))
        # in fp16 the scaler leaves such a step out, and tries a smaller scale
        if not math.isfinite(norm) and not self.scaler.is_enabled():
            raise self._not_finite("gradient", batches)
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        self.scaler.step(self.optimizer)
        self.scaler.update()
        self.optimizer.zero_grad()
        return norm

    def _validate_and_save(self) -> Iterator[ValidationRecord]:
        if self.state.step % self.settings.validate_every == 0 or self.state.step == self.settings.max_steps:
            # before the checkpoint: what is logged after the newest one is dropped, what is missing is lost
            yield self._validated()
            self._save()
        elif self.state.step % self.settings.save_every == 0:
            self._save()

    def _validated(self) -> ValidationRecord:
        loss = self.validate()
        bleu = self.score(self.model) if self.score else None
        value = -bleu if self.settings.best == "bleu" and bleu is not None else loss
        found = math.isfinite(value) and (self.state.best_value is None or value < self.state.best_value)
        # the first process decides: were the last bits of a loss to differ, so would the learning rates
        best = self.processes.sum(int(found and self.processes.rank == 0))[0] > 0
        if best:
            self.state.best_value, self.state.best_step, self.state.waited = value, self.state.step, 0
        else:
            self.state.waited += 1
            self.state.decays += self.settings.schedule == "plateau"
        return ValidationRecord(self.state.step, loss, perplexity(loss), bleu, best, self.state.decays)

    def _reason_to_stop(self) -> str | None:
        if self.state.step >= self.settings.max_steps:
            return "max_steps"
        if self.settings.patience and self.state.waited >= self.settings.patience:
            return "patience"
        if self.settings.schedule == "plateau" and self.state.decays > self.settings.max_decays:
            return "decays"
        alone = self.processes.count == 1
        return "interrupted" if (self.stop_requested if alone else self._stopping) else None

    def _save(self) -> None:
        if self.processes.rank:
            return
        unlogged = [asdict(step) for step in self._meter.steps]
        state = replace(self.state, scaler=self.scaler.state_dict(), unlogged=unlogged)
        if not self.run.checkpoint(state.step).exists():
            save_checkpoint(self.run, state.step, self.model, self.optimizer, asdict(state))
        drop_checkpoints(self.run, self.settings, best_step=state.best_step)


@contextlib.contextmanager
def _naming_shape_when_full(batch: Batch) -> Iterator[None]:
    try:
        yield
    except (RuntimeError, MemoryError) as error:
        if not is_out_of_memory(error):
            raise
        sentences, source = batch.source.ids.shape
        target = batch.target_input.size(1)
        raise SynmtError(
            f"out of memory with a batch of {sentences} sentences, {source} source and {target} target pieces",
            do="Lower training.batch_tokens and raise training.accumulate by as much, or filter long lines "
            "(filters.max_pieces)",
        ) from error


def _state(values: dict[str, Any], checkpoint: Path) -> State:
    try:
        return State(**values)
    except TypeError:
        raise broken(checkpoint, "state.json is of another synmt") from None


def _seed(*parts: int) -> int:
    return int(np.random.SeedSequence(parts).generate_state(1, np.uint64)[0] >> 1)
