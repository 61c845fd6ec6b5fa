"""Steps of the fast decoder on a GPU, recorded as CUDA graphs: one call then launches all operators of a step.

Without them, a GPU waits most of the time for the next of some hundred small operators. A graph computes with the same
memory whenever it is replayed, so the tensors of the state stay where they are, and places and positions are numbers on
the GPU. When sentences leave or the caches grow, the next step runs as it is, the one after it is recorded, and the
others replay it. To record a step takes the processor about as long as to run it.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor

from synmt.model.inference.fast_layers import FastState

_logger = logging.getLogger(__name__)

_Step = Callable[[FastState, Tensor], Tensor]


class Graph:
    """A function without arguments, recorded; each call replays it, and its result is in the same memory."""

    _streams: ClassVar[dict[torch.device, torch.cuda.Stream]] = {}
    """One on each GPU for all graphs: the memory that cuBLAS works in belongs to a stream."""

    def __init__(self, function: Callable[[], Tensor], pool: Any, device: torch.device) -> None:
        self._graph = torch.cuda.CUDAGraph()
        usual = torch.cuda.current_stream(device)
        # the default stream cannot be recorded
        if device not in self._streams:
            self._streams[device] = torch.cuda.Stream(device)
        stream = self._streams[device]
        stream.wait_stream(usual)
        with torch.cuda.stream(stream):
            # meanwhile another thread may copy the next batch
            self._graph.capture_begin(pool=pool, capture_error_mode="thread_local")
            try:
                self._output = function()
            finally:
                self._graph.capture_end()
        usual.wait_stream(stream)

    def __call__(self) -> Tensor:
        """Compute what the function computes from what is in its memory now."""
        self._graph.replay()
        return self._output


@dataclass
class RecordedState(FastState):
    """A state whose tensors stay in place from step to step, so that a recorded step can be replayed.

    seen: (B, K, T) for all T places that the caches have; -inf also at those that are not filled.
    steps: (B, T).
    pieces: (B, K) the newest ones.
    places: (K,) where their keys and values are.
    now: (1,) their position.
    filled: number of places that are filled.
    graph: the recorded step; None if the next one runs as it is.
    steady: whether the last step had the same tensors as the next one.
    """

    failed: ClassVar[bool] = False
    """Whether a step could not be recorded."""

    pieces: Tensor = field(default_factory=lambda: torch.empty(0, 0))
    places: Tensor = field(init=False)
    now: Tensor = field(init=False)
    filled: int = 0
    graph: Graph | None = None
    steady: bool = False

    def __post_init__(self) -> None:
        device = self.mask.device
        self._pool = torch.cuda.graph_pool_handle() if device.type == "cuda" else None
        # `append` moves it on
        self.position = self.now = torch.full((1,), -1, device=device)
        self._widen()

    def run(self, step: _Step, pieces: Tensor) -> Tensor:
        """Compute the logits of a step: as it is, recorded, or replayed."""
        length, beams = self.length, pieces.size(1)
        if pieces.shape != self.pieces.shape:
            self._change()
            self.pieces = torch.empty_like(pieces)
            self.newest = self.places = torch.arange(self.filled - beams, self.filled, device=pieces.device)
        if self.filled + beams > self.caches[0].places:
            self._change()
            self._renew(beams)
        self.pieces.copy_(pieces)
        # a recorded step is replayed as long as there is room
        self.ahead = self.caches[0].places
        if self.graph is None and self.steady and not self.failed:
            self._record(step)
        logits = self.graph() if self.graph else step(self, self.pieces)
        # a step that is replayed does not count itself
        self.length, self.filled, self.steady = length + 1, self.filled + beams, True
        return logits

    def append(self, beams: int) -> None:
        self.places += beams
        self.now += 1
        own = torch.full((beams, beams), -math.inf, device=self.seen.device).fill_diagonal_(0.0)  # (K, K)
        self.seen.index_copy_(2, self.places, own.expand(len(self.seen), -1, -1))
        self.steps.index_copy_(1, self.places, self.now.to(self.steps).expand(len(self.steps), beams))

    def select(self, sentences: Tensor | None, beams: Tensor) -> None:
        seen = self.seen
        super().select(sentences, beams)
        if self.seen.shape == seen.shape and sentences is None:
            self.seen = seen.copy_(self.seen)
        else:
            self._change()

    def _record(self, step: _Step) -> None:
        try:
            self.graph = Graph(lambda: step(self, self.pieces), self._pool, self.mask.device)
        except RuntimeError as error:
            RecordedState.failed = True
            _logger.warning("steps cannot be recorded as CUDA graphs, so translation is slower: %s", error)

    def _change(self) -> None:
        self.graph, self.steady = None, False

    def _renew(self, beams: int) -> None:
        room = 2 * max(self.caches[0].places, beams)
        past = torch.arange(self.filled, device=self.seen.device).expand(len(self.seen), -1)  # (B, P)
        self.caches = [cache.copied(past, room) for cache in self.caches]
        self._widen()

    def _widen(self) -> None:
        """Let `seen` and `steps` have all places of the caches."""
        more = self.caches[0].places - self.seen.size(2)
        self.seen = F.pad(self.seen, (0, more), value=-math.inf)  # (B, K, T)
        self.steps = F.pad(self.steps, (0, more))  # (B, T)
