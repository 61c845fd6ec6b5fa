"""Steps of the fast decoder on a GPU, recorded as CUDA graphs: one call then launches all operators
of a step.

Without them, a GPU waits most of the time for the next of some hundred small operators. A graph
computes with the same memory whenever it is replayed, so the tensors of the state stay where they
are, and places and positions are numbers on the GPU. When sentences leave or the caches grow, the
next step runs as it is, the one after it is recorded, and the others replay it. To record a step
takes the processor about as long as to run it.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor

from synmt.fast.layers import FastState, Step, only_itself

_logger = logging.getLogger(__name__)

_Function = Callable[[], Tensor]


class Graph:
    """A function without arguments, recorded; each call replays it, and its result is in the same
    memory.

    All graphs of a GPU are recorded in one stream and share one pool of memory, so they must not
    run at the same time.
    """

    _shared: ClassVar[dict[torch.device, tuple[torch.cuda.Stream, torch.cuda.CUDAGraph]]] = {}
    """Of each GPU: the stream, and a graph whose pool stays because it stays."""

    def __init__(self, function: _Function, device: torch.device) -> None:
        if device not in self._shared:
            stream, first = torch.cuda.Stream(device), torch.cuda.CUDAGraph()
            # what belongs to the generator of random numbers is made here, and later used outside
            # of inference
            with torch.inference_mode(False):
                _capture(first, lambda: torch.zeros(1, device=device), stream, pool=None)
            self._shared[device] = stream, first
        stream, first = self._shared[device]
        self._graph = torch.cuda.CUDAGraph()
        self._output = _capture(self._graph, function, stream, pool=first.pool())

    def __call__(self) -> Tensor:
        """Compute what the function computes from what is in its memory now."""
        self._graph.replay()
        return self._output


_broken: list[torch.cuda.CUDAGraph] = []
"""Graphs that could not be recorded: the allocator of some versions of torch keeps a reference to
them."""


def _capture(
    graph: torch.cuda.CUDAGraph, function: _Function, stream: torch.cuda.Stream, pool: Any
) -> Tensor:
    """Record a function in another stream than the usual one, which cannot be recorded; returns its
    result."""
    usual = torch.cuda.current_stream(stream.device)
    stream.wait_stream(usual)
    with torch.cuda.stream(stream):
        try:
            # meanwhile another thread may copy the next batch
            graph.capture_begin(pool=pool, capture_error_mode="thread_local")
            output = function()
            graph.capture_end()
        except BaseException:
            _broken.append(graph)
            # its own error says less
            with suppress(RuntimeError):
                graph.capture_end()
            raise
    usual.wait_stream(stream)
    return output


@dataclass
class RecordedState(FastState):
    """A state whose tensors stay in place from step to step, so that a recorded step can be
    replayed.

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
        self.position = self.now = torch.zeros(1, dtype=torch.long, device=self.mask.device)
        self._widen()

    def run(self, step: Step, pieces: Tensor) -> Tensor:
        """Compute a step: as it is, recorded, or replayed."""
        beams = pieces.size(1)
        if pieces.shape != self.pieces.shape:
            self._change()
            self.pieces = torch.empty_like(pieces)
            self.newest = self.places = torch.arange(
                self.filled - beams, self.filled, device=pieces.device
            )
        if self.filled + beams > self.caches[0].places:
            self._change()
            self._renew(beams)
        self.pieces.copy_(pieces)
        # a recorded step is replayed as long as there is room; tables grow before it is recorded,
        # in the step before
        self.ahead = self.caches[0].places - self.filled
        if self.graph is None and self.steady and not self.failed:
            self._record(step)
        logits = self.graph() if self.graph else step(self, self.pieces)
        self.filled, self.steady = self.filled + beams, True
        self.length += 1
        return logits

    def append(self, beams: int) -> None:
        self.places += beams
        new = only_itself(beams, self.seen).expand(len(self.seen), -1, -1)  # (B, K, K)
        self.seen.index_copy_(2, self.places, new)
        self.steps.index_copy_(
            1, self.places, self.now.to(self.steps).expand(len(self.steps), beams)
        )

    def select(self, sentences: Tensor | None, beams: Tensor) -> None:
        seen = self.seen
        super().select(sentences, beams)
        if self.seen.shape == seen.shape and sentences is None:
            self.seen = seen.copy_(self.seen)
        else:
            self._change()

    def _record(self, step: Step) -> None:
        try:
            self.graph = Graph(lambda: step(self, self.pieces), self.mask.device)
        except RuntimeError as error:
            RecordedState.failed = True
            _logger.warning(
                "steps cannot be recorded as CUDA graphs, so translation is slower: %s", error
            )

    def _change(self) -> None:
        self.graph, self.steady = None, False

    def _renew(self, beams: int) -> None:
        room = 2 * max(self.caches[0].places, beams)
        past = torch.arange(self.filled, device=self.seen.device).expand(
            len(self.seen), -1
        )  # (B, P)
        self.caches = [cache.copied(past, room) for cache in self.caches]
        self._widen()

    def _widen(self) -> None:
        """Extend `seen` and `steps` to all places of the caches."""
        more = self.caches[0].places - self.seen.size(2)
        self.seen = F.pad(self.seen, (0, more), value=-math.inf)  # (B, K, T)
        self.steps = F.pad(self.steps, (0, more))  # (B, T)
