"""The decoder's step in few large operators: what `Transformer.step` computes, for a decoder without variants.

- Weights are packed once (`synmt.model.packed`); bias, ReLU and residual sum are part of the products.
- What the model has instead of sinusoids, ReLU and layer norm is chosen when the decoder is made, not in a step.
- The hypotheses of a sentence share one cache (`synmt.model.keys_values`). Keys are not reordered: `seen` says which
  place of the cache, (step, hypothesis), is in the past of which hypothesis. When the cache is full, places that are in
  the past of none are forgotten.
- Rows (a hypothesis of a sentence) are 2-dimensional, (B K, D), wherever rows do not meet.

It returns logits. `Transformer.step` is its slow twin, and the test.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass
from typing import cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from synmt.model.attention import Memory
from synmt.model.feed_forward import Gelu
from synmt.model.keys_values import KeysValues, ReducedKeysValues
from synmt.model.multihead import AlibiAttention, RotaryAttention, SelfAttention
from synmt.model.packed import InferencePrecision, PackedLinear, multiplies_bf16, packed, packed_weight
from synmt.model.positions import turned
from synmt.model.quantized import QuantizedLinear
from synmt.model.seq2seq import Embedding, Seq2Seq, sinusoids
from synmt.model.transformer import DecoderLayer, Residual, Transformer

_Function = Callable[[Tensor], Tensor]
_ROOM = 32
"""Places that a new cache has room for."""


@dataclass
class FastState:
    """State of decoding between steps, for B sentences with K hypotheses each.

    mask: (B, 1, 1, Ts), 0 at real pieces of the source and -inf elsewhere.
    source: keys and values of the source for each layer, in Ts places.
    caches: keys and values of the target for each layer, of which P places are filled.
    seen: (B, K, P), 0 at the places in the past of each hypothesis and -inf elsewhere.
    steps: (B, P), at which step each place was filled.
    logits: memory for those of a step, if they are computed in another precision: new memory takes three times as long.
    length: number of pieces decoded so far.
    """

    mask: Tensor
    source: list[KeysValues]
    caches: list[KeysValues]
    seen: Tensor
    steps: Tensor
    logits: Tensor
    length: int = 0

    def select(self, sentences: Tensor | None, beams: Tensor) -> None:
        """Keep these sentences (B',), or all if None, and continue from these beams of each, (B', K')."""
        if sentences is not None:
            self.mask, self.seen, self.steps = self.mask[sentences], self.seen[sentences], self.steps[sentences]
            moved = (sentences != torch.arange(len(sentences), device=sentences.device)).nonzero().squeeze(1)  # (M,)
            for stored in (*self.source, *self.caches):
                stored.select(sentences, moved)
        self.seen = self.seen.gather(1, beams[..., None].expand(-1, -1, self.seen.size(2)))  # (B', K', P)

    def append(self, beams: int) -> None:
        """Make room for one more place of each hypothesis, which only this one sees."""
        sentences, _, filled = self.seen.shape
        if filled + beams > self.caches[0].places:
            self._renew(beams)
        own = torch.full((beams, beams), -math.inf, device=self.seen.device).fill_diagonal_(0.0)  # (K, K)
        self.seen = torch.cat((self.seen, own.expand(sentences, -1, -1)), 2)  # (B, K, P)
        self.steps = F.pad(self.steps, (0, beams), value=self.length)  # (B, P)

    def _renew(self, beams: int) -> None:
        """Copy the caches to where there is room; what no hypothesis sees any more is left out."""
        live = (self.seen == 0).any(1)  # (B, P)
        # a GPU would have to wait for the number
        count = int(live.sum(1).max()) if live.device.type == "cpu" else live.size(1)
        # in order; a sentence with fewer of them keeps some others
        past = live.byte().argsort(dim=1, descending=True, stable=True)[:, :count]  # (B, P')
        room = _ROOM
        while room < max(2 * count, count + beams):
            room *= 2
        self.seen = self.seen.gather(2, past[:, None].expand(-1, self.seen.size(1), -1))  # (B, K, P')
        self.steps = self.steps.gather(1, past)  # (B, P')
        self.caches = [cache.copied(past, room) for cache in self.caches]


class FastDecoder:
    """The decoder of a Transformer whose weights do not change any more."""

    def __init__(self, model: Transformer, precision: InferencePrecision = "float32") -> None:
        self._table = model.target_embedding.table.weight.detach()
        layers = cast(list[DecoderLayer], model.decoder)
        self._layers = [_LAYERS[type(layer.self_attention)](layer, precision) for layer in layers]
        self._output = packed_weight(model.output_weight, None, precision)
        embedding, self._embed = model.target_embedding, self._embed_alone
        if isinstance(embedding, Embedding):
            self._positions, self._embed = embedding.positions, self._embed_with_position
        self._dtype = self._output.dtype
        reduced = precision != "float32" and self._table.device.type == "cpu" and multiplies_bf16()
        self._keys_values = ReducedKeysValues if reduced else KeysValues
        self._norm = deepcopy(model.decoder_norm).to(self._dtype)

    def start(self, memory: Memory) -> FastState:
        """Begin decoding with one hypothesis for each sentence."""
        sentences, device = len(memory.mask), memory.mask.device
        mask = torch.zeros(memory.mask.shape, device=device).masked_fill_(~memory.mask, -math.inf)  # (B, Ts)
        states = memory.states  # (B, Ts, D)
        # on a CPU, torch's attention computes 16 keys at once in the time of 8 single ones
        if (more := -states.size(1) % 16) <= 8:
            mask, states = F.pad(mask, (0, more), value=-math.inf), F.pad(states, (0, 0, 0, more))
        kind = self._keys_values
        source = [kind.of(layer.read(states), layer.heads) for layer in self._layers]
        caches = [kind.empty(sentences, _ROOM, states.size(2), layer.heads, device) for layer in self._layers]
        seen, steps = mask.new_empty(sentences, 1, 0), mask.new_empty(sentences, 0)
        return FastState(mask[:, None, None], source, caches, seen, steps, mask.new_empty(0))

    def step(self, state: FastState, pieces: Tensor) -> Tensor:
        """Feed the newest piece of every hypothesis, (B, K), and compute the next logits, in float32: (B, K, V).

        They are only valid until the next step.
        """
        state.append(pieces.size(1))
        x = self._embed(pieces.flatten(), state.length)  # (B K, D)
        for number, layer in enumerate(self._layers):
            x = layer.step(x, state, number)  # (B K, D)
        state.length += 1
        return self._in_float32(self._output(self._norm(x)), state).view(*pieces.shape, -1)

    def _in_float32(self, logits: Tensor, state: FastState) -> Tensor:
        if logits.dtype == torch.float32:
            return logits
        if state.logits.numel() < logits.numel():
            state.logits = torch.empty(logits.numel(), device=logits.device)
        return state.logits[: logits.numel()].view(logits.shape).copy_(logits)

    def _embed_alone(self, pieces: Tensor, place: int) -> Tensor:
        return (F.embedding(pieces, self._table) * math.sqrt(self._table.size(1))).to(self._dtype)  # (B K, D)

    def _embed_with_position(self, pieces: Tensor, place: int) -> Tensor:
        # another thread may replace the table by a shorter one meanwhile
        positions = self._positions
        if place >= len(positions):
            self._positions = positions = sinusoids(2 * place, self._table.size(1)).to(positions)
        x = F.embedding(pieces, self._table)  # (B K, D)
        return torch.add(positions[place], x, alpha=math.sqrt(x.size(1))).to(self._dtype)


class _FastLayer:
    def __init__(self, layer: DecoderLayer, precision: InferencePrecision) -> None:
        own, cross, feed_forward = layer.self_attention, layer.cross_attention, layer.feed_forward
        self.heads = own.heads
        residuals = cast(list[Residual], layer.residuals)
        self.pre = residuals[0].pre
        self.project, self.output = packed(own.project, precision), packed(own.output, precision)
        self.query, self.key_value = packed(cross.query, precision), packed(cross.key_value, precision)
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
        x = self._after(attention, self.output.added_to(x, self._attend(self._before(attention, x), state, number)))
        x = self._after(cross, self.cross_output.added_to(x, self._read(self._before(cross, x), state, number)))
        inner = self.inner(self._before(feed_forward, x))  # (B K, F)
        return self._after(feed_forward, self.outer.added_to(x, inner))

    def _before(self, norm: _Function, x: Tensor) -> Tensor:
        return norm(x) if self.pre else x

    def _after(self, norm: _Function, x: Tensor) -> Tensor:
        return x if self.pre else norm(x)

    def _attend(self, x: Tensor, state: FastState, number: int) -> Tensor:
        """Attend to the target so far: (B K, D) -> (B K, D)."""
        cache, (sentences, beams, filled) = state.caches[number], state.seen.shape
        new = self.project(x).view(sentences, beams, -1)  # (B, K, 3 D)
        query, keys_values = self._placed(new, state.length).split((x.size(1), 2 * x.size(1)), -1)
        cache.fill(filled - beams, keys_values)
        return cache.attend(query, self._seen(state)).to(x.dtype)

    def _placed(self, query_keys_values: Tensor, place: int) -> Tensor:
        """Give queries and keys of (B, K, 3 D) their position; here they have none."""
        return query_keys_values

    def _seen(self, state: FastState) -> Tensor:
        """Make what is added to the scores: broadcasts to (B, H, K, P)."""
        return state.seen[:, None]

    def _read(self, x: Tensor, state: FastState, number: int) -> Tensor:
        """Attend to the source: (B K, D) -> (B K, D)."""
        query = self.query(x).view(len(state.mask), -1, x.size(1))  # (B, K, D)
        return state.source[number].attend(query, state.mask).to(x.dtype)


class _RotaryLayer(_FastLayer):
    def __init__(self, layer: DecoderLayer, precision: InferencePrecision) -> None:
        super().__init__(layer, precision)
        self.rotary = cast(RotaryAttention, layer.self_attention).rotary

    def _placed(self, query_keys_values: Tensor, place: int) -> Tensor:
        every = query_keys_values.unflatten(2, (3 * self.heads, -1))  # (B, K, 3 H, d)
        query_key, value = every.split((2 * self.heads, self.heads), 2)
        turned_ = turned(query_key, self.rotary.at(place, place + 1))  # (B, K, 2 H, d)
        return torch.cat((turned_, value), 2).flatten(2)


class _AlibiLayer(_FastLayer):
    def __init__(self, layer: DecoderLayer, precision: InferencePrecision) -> None:
        super().__init__(layer, precision)
        self.slopes = cast(AlibiAttention, layer.self_attention).slopes

    def _seen(self, state: FastState) -> Tensor:
        distance = (state.length - state.steps)[:, None, None]  # (B, 1, 1, P)
        return state.seen[:, None] - self.slopes[:, None, None] * distance  # (B, H, K, P)


_LAYERS = {SelfAttention: _FastLayer, RotaryAttention: _RotaryLayer, AlibiAttention: _AlibiLayer}


def _inner(feed_forward: nn.Module, projection: PackedLinear | QuantizedLinear) -> _Function:
    """Compute the inner layer: (B K, D) -> (B K, F)."""
    if isinstance(feed_forward, Gelu):
        return lambda x: feed_forward.activation(projection(x))
    return projection.relu


def fast_decoder(model: Seq2Seq, precision: InferencePrecision = "float32") -> FastDecoder | None:
    """Pack the decoder of a model; None if variants edit its decoder or it is not a Transformer's."""
    if not isinstance(model, Transformer) or not all(variant.only_learns for variant in model.variants["target"]):
        return None
    return FastDecoder(model, precision)
