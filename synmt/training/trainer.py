"""The training loop: a generator that yields a record of each log interval and validation.

Every step draws its random numbers from (seed, step), so a run that continues from a checkpoint
ends where an uninterrupted one ends: on a CPU bit for bit, while some sums on a GPU have no fixed
order.
"""

from __future__ import annotations

import logging
import math
import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict, replace
from itertools import islice

import numpy as np
import torch
from torch import Tensor, nn

from synmt.arrays import SIDES, Values
from synmt.data.batch import Batch, Tensors, collate_filled
from synmt.data.stream import Position, Reader, prefetch
from synmt.errors import naming_lack_of_memory
from synmt.model.device import autocast
from synmt.model.seq2seq import Seq2Seq
from synmt.model.weights import named_weights
from synmt.recipe.schema import Recipe
from synmt.run_folder import Run
from synmt.speed import fast
from synmt.training.checkpoint import (
    TrainingState,
    drop_checkpoints,
    load_checkpoint,
    save_checkpoint,
)
from synmt.training.distributed import Processes
from synmt.training.loss import Objective
from synmt.training.meter import Meter, Update, perplexity
from synmt.training.optimizer import (
    exchange_averages,
    gather_state,
    learning_rate,
    local_part,
    make_optimizer,
    move_averages,
)
from synmt.training.records import EndRecord, LogRecord, ValidationRecord, ValidationScores

_logger = logging.getLogger(__name__)


class Trainer:
    """Trains one model and writes its checkpoints into one run folder.

    score: translates the validation text and scores it; None leaves that out.
    stop: set it to save and stop after the current step.
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
        score: Callable[[Seq2Seq], ValidationScores] | None = None,
        processes: Processes | None = None,
    ) -> None:
        self.run, self.recipe, self.settings = run, recipe, recipe.training
        self.model = model.to(device)
        # with its index: `cuda` alone is another GPU in the thread that reads ahead
        self.device = self.model.output_weight.device
        self.train_reader, self.valid_reader, self.score = train, valid, score
        self.processes = (processes or Processes()).for_training()
        self._objective = Objective(self.model, self.settings.label_smoothing)
        if self.settings.cuda_graphs:
            self.train_reader = replace(train, collate=collate_filled)
            self._objective.run = fast("training_graphs").RecordedPasses(self.model)
        self._shared_objective = self.processes.share_gradients(self._objective, self.device)
        matrices = [
            one.weight
            for one in self.model.modules()
            if isinstance(one, nn.Linear) and one.weight is not self.model.output_weight
        ]
        self.optimizer = make_optimizer(
            _groups(self.model, run, self.settings.pretrained_rate),
            self.settings,
            self.processes,
            matrices,
        )
        self.scaler = torch.amp.GradScaler(device.type, enabled=self.settings.precision == "fp16")
        self.state = TrainingState(step=0, epoch=0, batch=0, best_step=0, best_value=None, waited=0)
        self.stop = threading.Event()
        self._stopping = False
        variants = [variant for side in SIDES for variant in self.model.variants[side]]
        self._timed = [variant for variant in variants if variant.loss_steps or variant.warm]
        # a model that is trained for no step is the one without their edits
        self._enter_step(1)
        if any(variant.warm > self.settings.max_steps > 0 for variant in variants):
            _logger.warning("training ends before every variant is blended in (`warm`)")
        self._autocast = autocast(device, self.settings.precision)
        self._meter = Meter(
            self.device, overflow=self.scaler.is_enabled(), processes=self.processes
        )
        if self.settings.compile:
            self.model.compile(dynamic=True)

    def resume(self) -> int:
        """Continue from the newest checkpoint if there is one; returns the step."""
        checkpoints = self.run.checkpoints()
        if checkpoints:
            self.state = load_checkpoint(checkpoints[-1], self.model, self.optimizer)
            exchange_averages(self.optimizer)
            self.scaler.load_state_dict(self.state.scaler)
            self._meter.restore(self.state.unlogged, self.state.unlogged_cost)
        return self.state.step

    def train(self) -> Generator[LogRecord, None, None]:
        """Train until max_steps, patience, the last decay or a request to stop."""
        stream = self._batches()
        with closing(stream), naming_lack_of_memory():
            if self._reason_to_stop() is None:
                self.try_longest()
            while (reason := self._reason_to_stop()) is None:
                is_logged = (self.state.step + 1) % self.settings.log_every == 0
                with self._meter.measuring(), self.processes.reporting_lost_processes():
                    batches, positions = zip(*islice(stream, self.settings.accumulate), strict=True)
                    self._meter.add(self.update(batches))
                    if is_logged:
                        self._meter.read()
                self.state.epoch, self.state.batch = positions[-1].epoch, positions[-1].batch
                if is_logged:
                    yield self._meter.record(self.state.step)
                yield from self._validate_and_save()
        self._save()
        yield EndRecord(self.state.step, reason)

    def _batches(self) -> Generator[tuple[Batch, Position], None, None]:
        """Read batches and copy them to the device, a few ahead of training."""
        batches = self.train_reader.forever(Position(self.state.epoch, self.state.batch))
        # while passes are recorded, no other thread may copy
        recorded = self.settings.cuda_graphs
        read = prefetch(batches) if recorded else batches
        copied = ((batch.to(self.device), after) for batch, after in read)
        return copied if recorded else prefetch(copied)

    def try_longest(self) -> None:
        """Compute the gradients of the longest sentences, and drop them, so that lack of memory
        ends training at its beginning.

        With its first gradients, DDP chooses the order in which it adds them up. Otherwise the
        first step after a checkpoint would have another order than the same step without one.
        """
        # what Adam will need from the first step on
        mine = local_part(self.optimizer)
        averages = [
            torch.empty_like(weight)
            for group in mine.param_groups
            for weight in (*group["params"], *group["params"])
            if not mine.state
        ]
        self._enter_step(1)
        self._accumulate(self.train_reader.longest().to(self.device), 1, last=True)
        self.optimizer.zero_grad()
        del averages

    def update(self, batches: Sequence[Batch]) -> Update:
        """Update the weights once with the gradients of a few batches, which are on the device
        already."""
        self.state.step += 1
        seed = np.random.SeedSequence((self.settings.seed, self.state.step, self.processes.rank))
        torch.manual_seed(int(seed.generate_state(1, np.uint64)[0]) >> 1)
        self._enter_step(self.state.step)
        mine = sum(len(batch.target_positions) for batch in batches)
        # the same message tells all processes to stop if one of them was asked to
        tokens, stops = self.processes.sum(mine, int(self.stop.is_set()))
        self._stopping = stops > 0
        losses = [self._accumulate(batch, tokens) for batch in batches[:-1]]
        losses.append(self._accumulate(batches[-1], tokens, last=True))
        rate = learning_rate(
            self.state.step, self.settings, self.recipe.model.model_dim, decays=self.state.decays
        )
        norm = self._step_optimizer(rate, losses)
        lines = [line for batch in batches for line in batch.lines]
        return Update(self.state.step, losses, lines, mine, tokens, rate, norm)

    def _enter_step(self, step: int) -> None:
        self.model.train()
        for variant in self._timed:
            variant.enter_step(step)

    def validate(self) -> float:
        """Compute the mean negative log-likelihood of a target piece of the validation text, in
        nats."""
        self.model.eval()
        total, tokens = torch.zeros((), device=self.device), 0
        with torch.inference_mode(), self._autocast:
            for batch in self.valid_reader.once():
                total = total + self._objective(batch.to(self.device))["nll"]
                tokens += len(batch.target_positions)
        return float(total) / max(1, tokens)

    def _accumulate(self, batch: Batch, tokens: int, *, last: bool = False) -> Tensors:
        """Add the gradients of a batch; with the last batch of a step, the processes sum theirs."""
        objective = self._shared_objective if last else self._objective
        with self._autocast:
            losses = objective(batch)
        # times 0 rather than left out, so that every process of a training has a gradient for every
        # weight
        counts = self.state.step > self.settings.pretraining
        total = counts * losses["loss"] + sum(
            loss for name, loss in losses.items() if name not in ("loss", "nll")
        )
        # gradients are averaged over the processes, and the loss is a mean over the pieces of all
        self.scaler.scale(self.processes.count * total / tokens).backward()
        return losses

    def _step_optimizer(self, rate: float, losses: Sequence[Tensors]) -> Tensor:
        self.scaler.unscale_(self.optimizer)
        norm = torch.nn.utils.clip_grad_norm_(
            self.model.parameters(), self.settings.clip_norm or math.inf
        )
        for group in self.optimizer.param_groups:
            group["lr"] = rate * group.get("share", 1.0)
        if not self.scaler.is_enabled():
            # the fused optimizer then leaves the weights alone; the error is raised when the
            # numbers are read
            finite = (
                torch.stack([norm, *(batch["loss"].detach() for batch in losses)]).isfinite().all()
            )
            local_part(self.optimizer).found_inf = (~finite).float()  # type: ignore[attr-defined]
        self.scaler.step(self.optimizer)
        self.scaler.update()
        self.optimizer.zero_grad()
        if self.settings.ema:
            move_averages(local_part(self.optimizer), self.state.step)
        return norm

    def _validate_and_save(self) -> Iterator[ValidationRecord]:
        if (
            self.state.step % self.settings.validate_every == 0
            or self.state.step == self.settings.max_steps
        ):
            # validate before saving: on resuming, log lines after the newest checkpoint are
            # dropped, and a validation that was not logged is not repeated
            yield self._validated()
            self._save()
        elif self.state.step % self.settings.save_every == 0:
            self._save()

    def _validated(self) -> ValidationRecord:
        # a loss or gradient that is not finite ends training before its weights are validated or
        # stored
        self._meter.read()
        with self._averaged():
            loss = self.validate()
            found = self.score(self.model) if self.score else ValidationScores({}, loss)
        value = loss if self.settings.best == "loss" else found.criterion
        better = math.isfinite(value) and (
            self.state.best_value is None or value < self.state.best_value
        )
        # the first process decides: if the last bits of the loss differed, so could the learning
        # rates
        [best] = self.processes.sum(int(better and self.processes.rank == 0))
        if best:
            self.state.best_value, self.state.best_step = value, self.state.step
            self.state.waited = 0
        elif self.state.step > self.settings.pretraining:
            self.state.waited += 1
            self.state.decays += self.settings.schedule == "plateau"
        return ValidationRecord(
            self.state.step,
            loss,
            perplexity(loss),
            found.scores.get("bleu"),
            best > 0,
            self.state.decays,
            found.scores,
            found.samples,
        )

    @contextmanager
    def _averaged(self) -> Iterator[None]:
        """Put the moving averages, if there are any, in the place of the weights for a block."""
        exchange_averages(self.optimizer)
        try:
            yield
        finally:
            exchange_averages(self.optimizer)

    def _reason_to_stop(self) -> str | None:
        # first: after a request to stop in the last step, no test set is translated
        if self.stop.is_set() if self.processes.count == 1 else self._stopping:
            return "interrupted"
        if self.state.step >= self.settings.max_steps:
            return "max_steps"
        if self.settings.patience and self.state.waited >= self.settings.patience:
            return "patience"
        if self.settings.schedule == "plateau" and self.state.decays > self.settings.max_decays:
            return "decays"
        return None

    def _save(self) -> None:
        self._meter.read()
        with self.processes.reporting_lost_processes():
            gather_state(self.optimizer)
        if self.processes.rank:
            return
        state = replace(self.state, scaler=self.scaler.state_dict(), **self._meter.unlogged())
        if not self.run.checkpoint(state.step).exists():
            with self._averaged():
                save_checkpoint(self.run, state.step, self.model, self.optimizer, asdict(state))
        drop_checkpoints(self.run, self.settings, best_step=state.best_step)


def _groups(model: Seq2Seq, run: Run, share: float) -> list[Values]:
    """Group the weights that are trained; those of `model.init` come last, with their share of the
    learning rate."""
    pretrained = run.info().get("pretrained_weights", []) if share < 1 else []
    named = named_weights(model)
    slow = {id(named[name]) for name in pretrained}
    trained = [weight for weight in model.parameters() if weight.requires_grad]
    groups = [
        {"params": [weight for weight in trained if id(weight) not in slow], "share": 1.0},
        {"params": [weight for weight in trained if id(weight) in slow], "share": share},
    ]
    return [group for group in groups if group["params"]]
