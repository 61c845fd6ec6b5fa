"""Record what a model computes inside while it runs: weights of attention, edits by variants,
gates."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal

import torch
from torch import Tensor, nn

from synmt.arrays import SIDES, Side
from synmt.model.lstm import Gate, Weights
from synmt.model.multihead import CrossAttention, SelfAttention

ActivationKind = Literal["attention", "terms", "cross", "gates"]
"""What can be recorded: weights of self-attention, its factors and biases (terms), weights of
attention to the source (cross), and gates of annotations."""


_ByLayer = dict[tuple[Side, int], Tensor]


@dataclass
class Activations:
    """What was recorded in one pass of teacher forcing over B sentences.

    attention: weights of self-attention, (B, H, T, T), by side and layer, counted from 1; on the
        target side the positions are those of the decoder's input, which begins with BOS.
    factors, biases: the edits by variants, (B, H, T, T); heads without an edit have 1 and 0.
    cross: weights of attention to the source, (B, H, Tt, Ts), by layer of the decoder; row t
        predicts target piece t. An LSTM has one head, in layer 1.
    gates: (B, T, D), how much of each annotation the LSTM's decoder lets through when it predicts
        each target piece.
    """

    attention: _ByLayer = field(default_factory=dict)
    factors: _ByLayer = field(default_factory=dict)
    biases: _ByLayer = field(default_factory=dict)
    cross: dict[int, Tensor] = field(default_factory=dict)
    gates: Tensor | None = None


@contextmanager
def capture(model: nn.Module, what: Collection[ActivationKind]) -> Iterator[Activations]:
    """Record activations of a model during the block; they are complete when it has ended."""
    activations, gates, cross = Activations(), list[Tensor](), list[Tensor]()
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
        for number, layer in enumerate(_layers(model, "target"), start=1):
            if "cross" in what:
                watch(layer.cross_attention, _record_weights, activations.cross, number)
        # of an LSTM, the attention to the states; attention to annotations is second
        attending = [module for module in model.modules() if isinstance(module, Weights)][:1]
        for module in attending if "cross" in what else ():
            watch(module, _record_step, cross)
        for module in model.modules():
            if "gates" in what and isinstance(module, Gate):
                watch(module, _record_step, gates)
        yield activations
    if gates:
        activations.gates = torch.stack(gates, 1)  # (B, T, D)
    if cross:
        activations.cross[1] = torch.cat(cross, 1)[:, None]  # (B, 1, Tt, Ts)


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
    factors, biases = list[Tensor](), list[Tensor]()
    for part in module.terms(*inputs[:3]):
        shape = (*part.q.shape[:3], part.k.size(2))  # (B, H, Tq, Tk)
        factors.append(torch.ones(shape) if part.factor is None else part.factor.expand(shape))
        biases.append(torch.zeros(shape) if part.bias is None else part.bias.expand(shape))
    activations.factors[key] = torch.cat([factor.float().cpu() for factor in factors], 1)
    activations.biases[key] = torch.cat([bias.float().cpu() for bias in biases], 1)


def _record_step(
    steps: list[Tensor], module: nn.Module, inputs: tuple[Any, ...], output: Tensor
) -> None:
    steps.append(output)
