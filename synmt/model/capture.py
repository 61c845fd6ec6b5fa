"""Record what a model computes inside while it runs: weights of attention, edits by variants,
gates."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal, cast

import torch
from torch import Tensor, nn

from synmt.arrays import SIDES, Side
from synmt.model.attention import Terms
from synmt.model.multihead import CrossAttention, SelfAttention
from synmt.model.recurrent import Gate, Weights

ActivationKind = Literal["attention", "terms", "cross", "gates"]
"""What can be recorded: weights of self-attention, its factors and biases (terms), weights of
attention to the source (cross), and gates of annotations."""


@dataclass
class Activations:
    """What was recorded in one pass of teacher forcing over B sentences.

    attention: weights of self-attention, (B, H, T, T), by side and layer, counted from 1; on the
        target side the positions are those of the decoder's input, which begins with BOS.
    factors, biases: the edits by variants, (B, H, T, T), only of layers where a head has one; heads
    without an edit
        have 1 and 0.
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
    steps: dict[str, list[Tensor]] = {"gates": [], "cross": []}
    with ExitStack() as hooks:
        for module, hook in _hooks(model, what, activations, steps):
            hooks.enter_context(module.register_forward_hook(hook))
        yield activations
    if steps["gates"]:
        activations.gates = torch.stack(steps["gates"], 1)  # (B, T, D)
    if steps["cross"]:
        last = len(cast(Any, model).decoder.upper_gates) + 1
        activations.cross[last] = torch.cat(steps["cross"], 1)[:, None]  # (B, 1, Tt, Ts)


def self_attention(model: nn.Module, side: Side) -> list[SelfAttention]:
    """List the self-attention of each layer of a side; an LSTM has none."""
    return [layer.self_attention for layer in _layers(model, side)]


def _layers(model: nn.Module, side: Side) -> list[Any]:
    layers = getattr(model, "encoder" if side == "source" else "decoder")
    return list(layers) if isinstance(layers, nn.ModuleList) else []


def _hooks(
    model: nn.Module,
    what: Collection[ActivationKind],
    activations: Activations,
    steps: dict[str, list[Tensor]],
) -> Iterator[tuple[nn.Module, Any]]:
    for side in SIDES:
        for number, layer in enumerate(self_attention(model, side), start=1):
            if "attention" in what:
                yield layer, _weights_hook(activations.attention, (side, number))
            if "terms" in what:
                yield layer, _terms_hook(activations, (side, number))
    if "cross" in what:
        for number, layer in enumerate(_layers(model, "target"), start=1):
            yield layer.cross_attention, _weights_hook(activations.cross, number)
        # of an LSTM, the attention to the states; attention to annotations is second
        for module in [module for module in model.modules() if isinstance(module, Weights)][:1]:
            yield module, _step_hook(steps["cross"])
    if "gates" in what:
        for module in model.modules():
            if isinstance(module, Gate):
                yield module, _step_hook(steps["gates"])


def _weights_hook(weights: dict[Any, Tensor], key: Any) -> Any:
    def hook(
        module: SelfAttention | CrossAttention, inputs: tuple[Any, ...], output: Tensor
    ) -> None:
        weights[key] = module.weights(*inputs[:3])

    return hook


def _terms_hook(activations: Activations, key: tuple[Side, int]) -> Any:
    def hook(module: SelfAttention, inputs: tuple[Any, ...], output: Tensor) -> None:
        parts = module.terms(*inputs[:3])
        if any(part.factor is not None for part in parts):
            activations.factors[key] = torch.cat(
                [_expand(part, part.factor, 1.0) for part in parts], 1
            )
        if any(part.bias is not None for part in parts):
            activations.biases[key] = torch.cat(
                [_expand(part, part.bias, 0.0) for part in parts], 1
            )

    return hook


def _expand(terms: Terms, edit: Tensor | None, neutral: float) -> Tensor:
    """Expand an edit to all pairs of its heads: (B, H, Tq, Tk)."""
    shape = (*terms.q.shape[:3], terms.k.size(2))
    return (terms.q.new_full((), neutral) if edit is None else edit).float().expand(shape)


def _step_hook(outputs: list[Tensor]) -> Any:
    return lambda module, inputs, output: outputs.append(output)
