"""Record what a model computes inside while it runs: weights of attention, edits by variants,
gates."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal, cast

import torch
from torch import Tensor, nn

from synmt.arrays import SIDES, Side
from synmt.model.lstm import Gate, Weights
from synmt.model.multihead import CrossAttention, SelfAttention

ActivationKind = Literal["attention", "terms", "cross", "gates"]
"""What can be recorded: weights of self-attention, its factors and biases (terms), weights of
attention to the source (cross), and gates of annotations."""


@dataclass
class Activations:
    """What was recorded in one pass of teacher forcing over B sentences.

    attention: weights of self-attention, (B, H, T, T), by side and layer, counted from 1; on the
        target side the positions are those of the decoder's input, which begins with BOS.
    factors, biases: the edits by variants, (B, H, T, T), only of layers where a head has one; heads
        without an edit have 1 and 0.
    cross: weights of attention to the source, (B, H, Tt, Ts), by layer of the decoder; row t
        predicts target piece t. An LSTM has one head, in its last layer.
    gates: (B, T, D), how much of each annotation the LSTM's decoder lets through when it predicts
        each target piece.
    """

    attention: dict[tuple[Side, int], Tensor] = field(default_factory=dict)
    factors: dict[tuple[Side, int], Tensor] = field(default_factory=dict)
    biases: dict[tuple[Side, int], Tensor] = field(default_factory=dict)
    cross: dict[int, Tensor] = field(default_factory=dict)
    gates: Tensor | None = None


@contextmanager
def capture(model: nn.Module, what: Collection[ActivationKind]) -> Iterator[Activations]:
    """Record activations of a model during the block; they are complete when it has ended."""
    activations = Activations()
    gates: list[Tensor] = []
    cross: list[Tensor] = []
    with ExitStack() as hooks:

        def watch(module: nn.Module, record: Callable[..., None], *where: Any) -> None:
            hook = module.register_forward_hook(partial(record, *where))
            hooks.enter_context(hook)

        for side in SIDES:
            for number, layer in enumerate(self_attention(model, side), start=1):
                if "attention" in what:
                    watch(layer, _record_weights, activations.attention, (side, number))
                if "terms" in what:
                    watch(layer, _record_terms, activations, (side, number))
        if "cross" in what:
            for number, layer in enumerate(_layers(model, "target"), start=1):
                watch(layer.cross_attention, _record_weights, activations.cross, number)
            # of an LSTM, the attention to the states; attention to annotations is second
            for module in [module for module in model.modules() if isinstance(module, Weights)][:1]:
                watch(module, _record_step, cross)
        if "gates" in what:
            for module in model.modules():
                if isinstance(module, Gate):
                    watch(module, _record_step, gates)
        yield activations
    if gates:
        activations.gates = torch.stack(gates, 1)  # (B, T, D)
    if cross:
        last = len(cast(Any, model).decoder.upper_gates) + 1
        activations.cross[last] = torch.cat(cross, 1)[:, None]  # (B, 1, Tt, Ts)


def self_attention(model: nn.Module, side: Side) -> list[SelfAttention]:
    """List the self-attention of each layer of a side; an LSTM has none."""
    return [layer.self_attention for layer in _layers(model, side)]


def _layers(model: nn.Module, side: Side) -> list[Any]:
    layers = getattr(model, "encoder" if side == "source" else "decoder")
    return list(layers) if isinstance(layers, nn.ModuleList) else []


def _record_weights(
    weights: dict[Any, Tensor],
    key: Any,
    module: SelfAttention | CrossAttention,
    inputs: tuple[Any, ...],
    output: Tensor,
) -> None:
    weights[key] = module.weights(*inputs[:3])


def _record_terms(
    activations: Activations,
    key: tuple[Side, int],
    module: SelfAttention,
    inputs: tuple[Any, ...],
    output: Tensor,
) -> None:
    parts = module.terms(*inputs[:3])
    shapes = [(*part.q.shape[:3], part.k.size(2)) for part in parts]  # (B, H, Tq, Tk) each
    for edits, found, neutral in (
        (activations.factors, [part.factor for part in parts], 1.0),
        (activations.biases, [part.bias for part in parts], 0.0),
    ):
        if any(edit is not None for edit in found):
            blank = parts[0].q.new_full((), neutral)
            known = [blank if edit is None else edit for edit in found]
            expanded = map(Tensor.expand, map(Tensor.float, known), shapes)
            edits[key] = torch.cat(list(expanded), 1)


def _record_step(
    steps: list[Tensor], module: nn.Module, inputs: tuple[Any, ...], output: Tensor
) -> None:
    steps.append(output)
