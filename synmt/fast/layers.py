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

from synmt.fast.packed import PackedLinear, packed
from synmt.fast.quantized import QuantizedLinear
from synmt.model.device import InferencePrecision
from synmt.model.multihead import AlibiAttention, RotaryAttention, SelfAttention
from synmt.model.positions import rotate
from synmt.model.transformer import DecoderLayer, FeedForward, Residual

ROOM = 32
"""Places that a new cache has room for."""

_Function = Callable[[Tensor], Tensor]
Step = Callable[["FastState", Tensor], Tensor]


class KeysValues:
    """Keys and values of B sentences in T places, in float32, for PyTorch's fused attention.

    stored: (B, T, 2 D).
    """

    def __init__(self, stored: Tensor, heads: int) -> None:
        self.stored, self.heads = stored, heads

    @classmethod
    def of(cls, keys_values: Tensor, heads: int) -> KeysValues:
        """Store keys and values (B, T, 2 D)."""
        return cls(keys_values.float(), heads)

    @classmethod
    def empty(
        cls, sentences: int, places: int, width: int, heads: int, device: torch.device
    ) -> KeysValues:
        """Make room for keys and values of a width of D."""
        return cls(_room(sentences, places, 2 * width, device=device), heads)

    @property
    def places(self) -> int:
        """T, of which some may not be filled."""
        return self.stored.size(1)

    def select(self, sentences: Tensor, moved: Tensor) -> None:
        """Keep these sentences (B',), of which those at `moved` (M,) come from another place."""
        self.stored[moved] = self.stored[sentences[moved]]
        self.stored = self.stored[: len(sentences)]

    def fill(self, places: slice | Tensor, keys_values: Tensor) -> None:
        """Fill K places with (B, K, 2 D)."""
        self.stored[:, places] = keys_values.to(self.stored.dtype)

    def copied(self, places: Tensor, room: int) -> KeysValues:
        """Copy places (B, P) into a new memory with more of them."""
        copy = _room(len(self.stored), room, self.stored.size(2), device=self.stored.device)
        copy[:, : places.size(1)] = rows_at(self.stored, places)
        return type(self)(copy, self.heads)

    def attend(self, query: Tensor, mask: Tensor) -> Tensor:
        """Attend from queries (B, K, D) to the first P places: (B K, D).

        mask: added to the scores, broadcasts to (B, H, K, P).
        """
        keys_values = self.stored[:, : mask.size(-1)]
        k, v = by_head(keys_values, self.heads)  # (B, H, P, d) each
        output = F.scaled_dot_product_attention(
            self.queries(query.float()), k, v, attn_mask=mask
        )  # (B, H, K, d)
        return output.transpose(1, 2).reshape(-1, query.size(2))

    def queries(self, query: Tensor) -> Tensor:
        return query.unflatten(2, (self.heads, -1)).transpose(1, 2)  # (B, H, K, d)


def by_head(keys_values: Tensor, heads: int) -> Tensor:
    """(B, T, 2 D) -> (2, B, H, T, d)."""
    return keys_values.unflatten(2, (2, heads, -1)).permute(2, 0, 3, 1, 4)


def _room(*shape: int, device: torch.device) -> Tensor:
    # on a GPU, all places are multiplied, and 0 · NaN is NaN
    return (torch.empty if device.type == "cpu" else torch.zeros)(shape, device=device)


def rows_at(rows: Tensor, places: Tensor) -> Tensor:
    """Take places (B, P) of rows (B, T, …): (B, P, …)."""
    indices = places + rows.size(1) * torch.arange(len(rows), device=rows.device)[:, None]  # (B, P)
    # on a CPU, gather takes twice the time
    return rows.flatten(0, 1).index_select(0, indices.flatten()).view(*places.shape, -1)


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
        itself = torch.full((beams, beams), -math.inf, device=self.seen.device).fill_diagonal_(
            0.0
        )  # (K, K)
        self.seen = torch.cat((self.seen, itself.expand(sentences, -1, -1)), 2)  # (B, K, P)
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


class FastLayer:
    """One layer of the decoder, its weights packed."""

    def __init__(self, layer: DecoderLayer, precision: InferencePrecision) -> None:
        attention, cross, feed_forward = (
            layer.self_attention,
            layer.cross_attention,
            layer.feed_forward,
        )
        self.heads = attention.heads
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
        return cache.attend(query, self._seen(state)).to(x.dtype)

    def _placed(self, query_keys_values: Tensor, state: FastState) -> Tensor:
        """Apply their position to queries and keys of (B, K, 3 D); here they have none."""
        return query_keys_values

    def _seen(self, state: FastState) -> Tensor:
        """Make what is added to the scores: broadcasts to (B, H, K, P)."""
        return state.seen[:, None]

    def _read(self, x: Tensor, state: FastState, number: int) -> Tensor:
        """Attend to the source: (B K, D) -> (B K, D)."""
        query = self.query(x).view(len(state.mask), -1, x.size(1))  # (B, K, D)
        return state.source[number].attend(query, state.mask).to(x.dtype)


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

    def _seen(self, state: FastState) -> Tensor:
        # near 0 for what counts most: bf16 has few digits for large numbers
        return (
            state.seen[:, None]
            + self.slopes[:, None, None] * (state.steps - state.position)[:, None, None]
        )


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
    for number, layer in enumerate(layers):
        x = layer.step(x, state, number)  # (B K, D)
    state.position += 1
    return x
