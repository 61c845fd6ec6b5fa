"""A model watched while it runs: weights of attention, what variants edit in it, gates."""

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

Watch = Literal["attention", "terms", "cross", "gates"]
"""What can be watched: weights of self-attention, the factors and biases in it, weights of attention to the source, and
gates to annotations."""


@dataclass
class Activations:
    """What has been seen in one pass of teacher forcing over B sentences.

    attention: weights of self-attention, (B, H, T, T), by side and layer, which counts from 1; the target's positions
        are those of the decoder's input, BOS first.
    factors, biases: what the variants made of them, (B, H, T, T), only of layers where a head has some; 1 and 0 in the
        heads of the layer that have none.
    cross: weights of attention to the source, (B, H, Tt, Ts), by the decoder's layer; row t predicts target piece t. An
        LSTM has one head, in its last layer.
    gates: (B, T, D) how much of each annotation the LSTM's decoder let through when it predicted each target piece.
    """

    attention: dict[tuple[Side, int], Tensor] = field(default_factory=dict)
    factors: dict[tuple[Side, int], Tensor] = field(default_factory=dict)
    biases: dict[tuple[Side, int], Tensor] = field(default_factory=dict)
    cross: dict[int, Tensor] = field(default_factory=dict)
    gates: Tensor | None = None


@contextmanager
def capture(model: nn.Module, what: Collection[Watch]) -> Iterator[Activations]:
    """Watch a model for as long as the block runs; all is there when it has ended."""
    found = Activations()
    steps: dict[str, list[Tensor]] = {"gates": [], "cross": []}
    with ExitStack() as hooks:
        for module, hook in _hooks(model, what, found, steps):
            hooks.enter_context(module.register_forward_hook(hook))
        yield found
    if steps["gates"]:
        found.gates = torch.stack(steps["gates"], 1)  # (B, T, D)
    if steps["cross"]:
        found.cross[_last_layer(model)] = torch.cat(steps["cross"], 1)[:, None]  # (B, 1, Tt, Ts)


def self_attention(model: nn.Module, side: Side) -> list[SelfAttention]:
    """List the self-attention of each layer of a side; an LSTM has none."""
    return [cast(Any, layer).self_attention for layer in _layers(model, side)]


def _layers(model: nn.Module, side: Side) -> list[nn.Module]:
    layers = getattr(model, "encoder" if side == "source" else "decoder")
    return list(layers) if isinstance(layers, nn.ModuleList) else []


def _last_layer(model: nn.Module) -> int:
    return len(cast(Any, model).decoder.upper_gates) + 1


def _hooks(
    model: nn.Module, what: Collection[Watch], found: Activations, steps: dict[str, list[Tensor]]
) -> Iterator[tuple[nn.Module, Any]]:
    for side in SIDES:
        for number, layer in enumerate(self_attention(model, side), start=1):
            if "attention" in what:
                yield layer, _keep_weights(found.attention, (side, number))
            if "terms" in what:
                yield layer, _keep_terms(found, (side, number))
    if "cross" in what:
        for number, layer in enumerate(_layers(model, "target"), start=1):
            yield cast(Any, layer).cross_attention, _keep_weights(found.cross, number)
        # attention to annotations comes second
        for module in [module for module in model.modules() if isinstance(module, Weights)][:1]:
            yield module, _collect(steps["cross"])
    if "gates" in what:
        for module in model.modules():
            if isinstance(module, Gate):
                yield module, _collect(steps["gates"])


def _keep_weights(kept: dict[Any, Tensor], place: Any) -> Any:
    def hook(module: SelfAttention | CrossAttention, given: tuple[Any, ...], output: Tensor) -> None:
        kept[place] = module.weights(*given[:3])

    return hook


def _keep_terms(found: Activations, place: tuple[Side, int]) -> Any:
    def hook(module: SelfAttention, given: tuple[Any, ...], output: Tensor) -> None:
        parts = module.terms(*given[:3])
        if any(part.factor is not None for part in parts):
            found.factors[place] = torch.cat([_whole(part, part.factor, 1.0) for part in parts], 1)
        if any(part.bias is not None for part in parts):
            found.biases[place] = torch.cat([_whole(part, part.bias, 0.0) for part in parts], 1)

    return hook


def _whole(terms: Terms, edit: Tensor | None, neutral: float) -> Tensor:
    """Spread an edit over all pairs of its heads: (B, H, Tq, Tk)."""
    shape = (*terms.q.shape[:3], terms.k.size(2))
    return (terms.q.new_full((), neutral) if edit is None else edit).float().expand(shape)


def _collect(kept: list[Tensor]) -> Any:
    def hook(module: nn.Module, given: tuple[Any, ...], output: Tensor) -> None:
        kept.append(output)

    return hook
