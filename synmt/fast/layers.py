"""The layers of the fast decoder, and what they keep between steps.

- The hypotheses of a sentence share one cache. Keys are not reordered: `seen` says which place of
  the cache, (step, hypothesis), is in the past of which hypothesis. When the cache is full, places
  that are in the past of none are forgotten.
- Bias, ReLU and residual sum are part of the products (`synmt.fast.packed`).
- Rows (a hypothesis of a sentence) are 2-dimensional, (B K, D), wherever rows do not meet.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from typing import cast

import torch
import torch.nn.functional as F
from torch import Tensor

from synmt.fast.keys_values import KeysValues, Vectors
from synmt.fast.packed import PackedLinear, packed
from synmt.fast.quantized import QuantizedLinear
from synmt.model.device import InferencePrecision
from synmt.model.multihead import AlibiAttention, RotaryAttention, SelfAttention
from synmt.model.positions import rotate
from synmt.model.transformer import DecoderLayer, FeedForward, Residual
from synmt.model.variant import Variant
from synmt.model.variants.relative import Relative

ROOM = 32
"""Places that a new cache has room for."""

_Function = Callable[[Tensor], Tensor]
Step = Callable[["FastState", Tensor], Tensor]


@dataclass
class FastState:
    """State of decoding between steps, for B sentences with K hypotheses each.

    mask: (B, 1, 1, Ts), 0 at real pieces of the source and -inf elsewhere.
    source: keys and values of the source for each layer, in Ts places.
    caches: keys and values of the target for each layer, of which P places are filled.
    seen: (B, K, P), 0 at the places in the past of each hypothesis and -inf elsewhere.
    steps: (B, P), at which step each place was filled.
    logits: memory for those of a step, if they are computed in another precision: new memory takes
        three times as long.
    length: number of pieces decoded so far.
    position: of the newest pieces, as a number or (1,).
    newest: the places of their keys and values.
    biases: what is added to scores in this step, for the target and the source.
    ahead: number of later steps for which tables of positions must have rows.
    """

    mask: Tensor
    source: list[KeysValues]
    caches: list[KeysValues]
    seen: Tensor
    steps: Tensor
    logits: Tensor
    length: int = 0
    position: int | Tensor = 0
    newest: slice | Tensor = field(init=False)
    biases: tuple[Tensor, Tensor] = field(init=False)
    ahead: int = 0

    def run(self, step: Step, pieces: Tensor) -> Tensor:
        """Compute a step from the newest pieces, (B, K)."""
        result = step(self, pieces)
        self.length += 1
        return result

    def select(self, sentences: Tensor | None, beams: Tensor) -> None:
        """Keep these sentences (B',), or all if None, and continue from these hypotheses of each,
        (B', K')."""
        if sentences is not None:
            self.mask, self.seen, self.steps = (
                self.mask[sentences],
                self.seen[sentences],
                self.steps[sentences],
            )
            moved = (
                (sentences != torch.arange(len(sentences), device=sentences.device))
                .nonzero()
                .squeeze(1)
            )  # (M,)
            for stored in (*self.source, *self.caches):
                stored.select(sentences, moved)
        self.seen = self.seen.gather(
            1, beams[..., None].expand(-1, -1, self.seen.size(2))
        )  # (B', K', P)

    def append(self, beams: int) -> None:
        """Make room for one more place of each hypothesis, which only this one sees."""
        sentences, _, filled = self.seen.shape
        if filled + beams > self.caches[0].places:
            self._renew(beams)
        new = only_itself(beams, self.seen).expand(sentences, -1, -1)  # (B, K, K)
        self.seen = torch.cat((self.seen, new), 2)  # (B, K, P)
        self.steps = F.pad(self.steps, (0, beams), value=self.length)  # (B, P)
        self.newest = slice(self.seen.size(2) - beams, self.seen.size(2))

    def _renew(self, beams: int) -> None:
        """Copy the caches to where there is room; what no hypothesis sees any more is left out."""
        live = (self.seen == 0).any(1)  # (B, P)
        # a GPU would have to wait for the number
        count = int(live.sum(1).max()) if live.device.type == "cpu" else live.size(1)
        # in order; a sentence with fewer of them keeps some others
        past = live.byte().argsort(dim=1, descending=True, stable=True)[:, :count]  # (B, P')
        room = ROOM
        while room < max(2 * count, count + beams):
            room *= 2
        self.seen = self.seen.gather(
            2, past[:, None].expand(-1, self.seen.size(1), -1)
        )  # (B, K, P')
        self.steps = self.steps.gather(1, past)  # (B, P')
        self.caches = [cache.copied(past, room) for cache in self.caches]


def only_itself(beams: int, seen: Tensor) -> Tensor:
    """Make the mask of new places, each of which one hypothesis sees: (K, K)."""
    return seen.new_full((beams, beams), -math.inf).fill_diagonal_(0.0)


def relative_in(attention: SelfAttention) -> Relative | None:
    """Find the relative positions of all heads."""
    for variant in cast(list[Variant], attention.variants):
        all_heads = variant.place.heads == attention.heads and variant.share is None
        if type(variant) is Relative and all_heads:
            return variant
    return None


def _vectors(relative: Relative) -> Tensor:
    """Return the vectors of the distances from -reach to 0, for keys and values: (2, R, d)."""
    keys, values = relative.key, relative.key if relative.shared else relative.value
    both = keys, torch.zeros_like(keys) if values is None else values
    return torch.stack(both)[:, : relative.reach + 1].detach()


class FastLayer:
    """One layer of the decoder, its weights packed."""

    def __init__(self, layer: DecoderLayer, precision: InferencePrecision) -> None:
        attention, cross, feed_forward = (
            layer.self_attention,
            layer.cross_attention,
            layer.feed_forward,
        )
        self.heads, relative = attention.heads, relative_in(attention)
        self.vectors = None if relative is None else _vectors(relative)
        residuals = cast(list[Residual], layer.residuals)
        self.pre = residuals[0].pre
        self.project, self.output = (
            packed(attention.project, precision),
            packed(attention.output, precision),
        )
        self.query, self.key_value = (
            packed(cross.query, precision),
            packed(cross.key_value, precision),
        )
        self.cross_output = packed(cross.output, precision)
        self.norms = [deepcopy(residual.norm).to(self.project.dtype) for residual in residuals]
        self.inner = _inner(feed_forward, packed(feed_forward.inner, precision))
        self.outer = packed(feed_forward.output, precision)

    def read(self, states: Tensor) -> Tensor:
        """Compute keys and values of the source: (B, Ts, D) -> (B, Ts, 2 D)."""
        rows = self.key_value(states.flatten(0, 1).to(self.key_value.dtype))  # (B Ts, 2 D)
        return rows.unflatten(0, states.shape[:2])

    def step(self, x: Tensor, state: FastState, number: int) -> Tensor:
        """(B K, D) -> (B K, D)."""
        attention, cross, feed_forward = self.norms
        x = self._after(
            attention,
            self.output.added_to(x, self._attend(self._before(attention, x), state, number)),
        )
        x = self._after(
            cross, self.cross_output.added_to(x, self._read(self._before(cross, x), state, number))
        )
        inner = self.inner(self._before(feed_forward, x))  # (B K, F)
        return self._after(feed_forward, self.outer.added_to(x, inner))

    def _before(self, norm: _Function, x: Tensor) -> Tensor:
        return norm(x) if self.pre else x

    def _after(self, norm: _Function, x: Tensor) -> Tensor:
        return x if self.pre else norm(x)

    def _attend(self, x: Tensor, state: FastState, number: int) -> Tensor:
        """Attend to the target so far: (B K, D) -> (B K, D)."""
        cache, (sentences, beams, _) = state.caches[number], state.seen.shape
        new = self.project(x).view(sentences, beams, -1)  # (B, K, 3 D)
        query, keys_values = self._placed(new, state).split((x.size(1), 2 * x.size(1)), -1)
        cache.fill(state.newest, keys_values)
        return cache.attend(query, self._bias(state, cache), self._added(state)).to(x.dtype)

    def _placed(self, query_keys_values: Tensor, state: FastState) -> Tensor:
        """Apply their position to queries and keys of (B, K, 3 D); here they have none."""
        return query_keys_values

    def _bias(self, state: FastState, cache: KeysValues) -> Tensor:
        """Return what is added to the scores of the target."""
        return state.biases[0]

    def _added(self, state: FastState) -> Vectors | None:
        """Return the vectors of relative positions, and the distance of each place."""
        if self.vectors is None:
            return None
        kinds = torch.arange(1 - self.vectors.size(1), 1, device=self.vectors.device)  # (R,)
        distances = (state.steps - state.position).clamp(min=1 - len(kinds))  # (B, P)
        return self.vectors, (distances[..., None] == kinds).to(self.vectors.dtype)

    def _read(self, x: Tensor, state: FastState, number: int) -> Tensor:
        """Attend to the source: (B K, D) -> (B K, D)."""
        query = self.query(x).view(len(state.mask), -1, x.size(1))  # (B, K, D)
        return state.source[number].attend(query, state.biases[1]).to(x.dtype)


class _RotaryLayer(FastLayer):
    def __init__(self, layer: DecoderLayer, precision: InferencePrecision) -> None:
        super().__init__(layer, precision)
        self.rotary = cast(RotaryAttention, layer.self_attention).rotary

    def _placed(self, query_keys_values: Tensor, state: FastState) -> Tensor:
        projected = query_keys_values.unflatten(2, (3 * self.heads, -1))  # (B, K, 3 H, d)
        query_key, value = projected.split((2 * self.heads, self.heads), 2)
        angles = self.rotary.at(0, state.length + state.ahead + 1)[
            :, state.position
        ]  # (2, d/2) or (2, 1, d/2)
        return torch.cat((rotate(query_key, angles), value), 2).flatten(2)


class _AlibiLayer(FastLayer):
    def __init__(self, layer: DecoderLayer, precision: InferencePrecision) -> None:
        super().__init__(layer, precision)
        self.slopes = cast(AlibiAttention, layer.self_attention).slopes

    def _bias(self, state: FastState, cache: KeysValues) -> Tensor:
        # near 0 for what counts most: bf16 has few digits for large numbers
        distances = (state.steps - state.position)[:, None, None]  # (B, 1, 1, P)
        return cache.bias(state.seen[:, None] + self.slopes[:, None, None] * distances)


_LAYERS = {SelfAttention: FastLayer, RotaryAttention: _RotaryLayer, AlibiAttention: _AlibiLayer}


def _inner(feed_forward: FeedForward, projection: PackedLinear | QuantizedLinear) -> _Function:
    """Compute the inner layer: (B K, D) -> (B K, F)."""
    if feed_forward.activation is F.relu:
        return projection.relu
    return lambda x: feed_forward.activation(projection(x))


def fast_layer(layer: DecoderLayer, precision: InferencePrecision) -> FastLayer:
    """Pack a layer."""
    return _LAYERS[type(layer.self_attention)](layer, precision)


def run_layers(layers: Sequence[FastLayer], x: Tensor, state: FastState, beams: int) -> Tensor:
    """Feed the newest piece of every hypothesis, of `beams` for each sentence: (B K, D) -> (B K,
    D)."""
    state.append(beams)
    state.biases = state.caches[0].bias(state.seen[:, None]), state.source[0].bias(state.mask)
    for number, layer in enumerate(layers):
        x = layer.step(x, state, number)  # (B K, D)
    state.position += 1
    return x
