"""A model, of synmt or of another tool, whose training steps are timed."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterable, Sequence

import measuring
import torch
from marian import marian_loss, marian_model
from recurrent_peers import joeynmt_loss, joeynmt_model, opennmt_loss, opennmt_model
from systems import LSTMS, batch_for, model_of, recipe_of
from torch import Tensor, nn
from transformer_peers import (
    eole_transformer,
    eole_transformer_loss,
    joeynmt_transformer,
    joeynmt_transformer_loss,
    opennmt_transformer,
    opennmt_transformer_loss,
)

from synmt.data.batch import Batch
from synmt.data.corpus import Example
from synmt.data.stream import prefetch
from synmt.model.device import autocast, choose_device
from synmt.model.seq2seq import Seq2Seq
from synmt.training.loss import smoothed_cross_entropy

PEERS = {
    "marian": ("plain", "transformers", marian_model, marian_loss),
    "eole": ("plain", "eole", eole_transformer, eole_transformer_loss),
    "opennmt-transformer": ("plain", "onmt", opennmt_transformer, opennmt_transformer_loss),
    "joeynmt-transformer": ("plain", "joeynmt", joeynmt_transformer, joeynmt_transformer_loss),
    "joeynmt": ("lstm", "joeynmt", joeynmt_model, joeynmt_loss),
    "opennmt": ("lstm", "onmt", opennmt_model, opennmt_loss),
}
"""Other tools: the system whose size they have, the module they need, their model, and its loss."""


def synmt_loss(model: Seq2Seq) -> Callable[[Batch], Tensor]:
    """Compute the loss of a batch for each target piece."""

    def loss(batch: Batch) -> Tensor:
        output, positions = model(batch), batch.target_positions
        states, targets = (x.flatten(0, 1).index_select(0, positions) for x in (output.states, batch.target_output))
        total, _ = smoothed_cross_entropy(states, model.output_weight, targets, smoothing=0.1, products=model.products)
        return (total + sum(output.losses.values())) / len(targets)

    return loss


def base_of(name: str) -> str:
    """Give the system that a system is compared with."""
    return PEERS[name][0] if name in PEERS else "lstm" if name in LSTMS else "plain"


class System:
    """One model with its optimiser, and how long its rounds took.

    steps, fed: seconds of processor time of each round, with batches ready and with collation beside the steps.
    wall: seconds of wall time of each round with batches ready.
    busy: seconds of processor time of each round beside other processes.
    first_loss: before the first step.
    """

    def __init__(self, name: str, options: argparse.Namespace) -> None:
        torch.manual_seed(1)
        self.device = choose_device(options.device)
        self.precision = options.peer_precision if name in PEERS else options.precision
        if name in PEERS:
            base, _, build_model, loss_of = PEERS[name]
            rates = {} if base == "lstm" else options.rates
            model: nn.Module = build_model(recipe_of(base, options.size, rates).model, options.pieces)
            self.reads, self.loss = None, loss_of(model)
        else:
            model = self.reads = model_of(name, options.size, options.pieces, {} if name in LSTMS else options.rates)
            self.loss = synmt_loss(model)
        model.to(self.device).train()
        self.weights = sum(weight.numel() for weight in model.parameters())
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
        self.first_loss: float | None = None
        self.steps: list[float] = []
        self.wall: list[float] = []
        self.busy: list[float] = []
        self.fed: list[float] = []
        self.collating: list[float] = []

    def step(self, batch: Batch) -> None:
        with autocast(self.device, self.precision):
            loss = self.loss(batch)
        if self.first_loss is None:
            self.first_loss = loss.item()
        loss.backward()
        self.optimizer.step()
        self.optimizer.zero_grad()

    def round(self, corpus: Sequence[list[Example]], busy: int = 0) -> None:
        """Run all batches once with batches ready, once with other processes, once from the thread."""
        began = time.perf_counter()
        batches = [batch_for(self.reads, examples) for examples in corpus]
        self.collating.append(time.perf_counter() - began)
        wall, processor = self._run(batches)
        self.wall.append(wall)
        self.steps.append(processor)
        if busy:
            with measuring.busy(busy):
                self.busy.append(self._run(batches)[1])
        if self.reads is not None:
            began = time.perf_counter()
            self._run(prefetch(batch_for(self.reads, examples) for examples in corpus))
            self.fed.append(time.perf_counter() - began)

    def _run(self, batches: Iterable[Batch]) -> tuple[float, float]:
        wall, processor = time.perf_counter(), time.process_time()
        for batch in batches:
            self.step(batch.to(self.device))
        if self.device.type != "cpu":
            torch.cuda.synchronize()
        wall, processor = time.perf_counter() - wall, time.process_time() - processor
        # a GPU works while the processor waits
        return wall, processor if self.device.type == "cpu" else wall

    def forget(self) -> None:
        """Drop what has been measured so far."""
        for times in (self.steps, self.wall, self.busy, self.fed, self.collating):
            times.clear()
