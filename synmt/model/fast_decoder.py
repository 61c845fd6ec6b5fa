"""The decoder's step in few large operators: what `Transformer.step` computes, for a decoder without variants.

- Weights are packed once (`synmt.model.packed`); bias, ReLU and residual sum are part of the products.
- What the model has instead of sinusoids, ReLU and layer norm is chosen when the decoder is made, not in a step.
- The hypotheses of a sentence share one cache. Keys are never reordered: `seen` says which place of the cache, (step,
  hypothesis), is in the past of which hypothesis.
- Rows (a hypothesis of a sentence) are 2-dimensional, (B K, D), wherever rows do not meet.

It returns logits. `Transformer.step` is its slow twin, and the test.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from synmt.model.attention import Memory
from synmt.model.feed_forward import Gelu
from synmt.model.multihead import AlibiAttention, RotaryAttention, SelfAttention
from synmt.model.packed import InferencePrecision, PackedLinear, packed
from synmt.model.positions import alibi, turned
from synmt.model.seq2seq import Embedding, Seq2Seq, sinusoids
from synmt.model.transformer import DecoderLayer, Residual, Transformer

_Function = Callable[[Tensor], Tensor]
_FIRST_ROOM = 16
"""Steps that a new cache has room for."""


@dataclass
class FastState:
    """State of decoding between steps, for B sentences with K hypotheses each.

    mask: (B, 1, 1, Ts), 0 at real pieces of the source and -inf elsewhere.
    source: keys and values of the source for each layer, (B, Ts, 2 D).
    caches: keys and values of the target for each layer, (B, room, S, 2 D), with S places for the hypotheses of a step.
    seen: (B, K, length S), 0 at the places in the past of each hypothesis and -inf elsewhere.
    length: number of pieces decoded so far.
    logits: memory for those of a step, if they are computed in another precision: new memory takes three times as long.
    """

    mask: Tensor
    source: list[Tensor]
    caches: list[Tensor]
    seen: Tensor
    logits: Tensor
    length: int = 0

    def select(self, sentences: Tensor | None, beams: Tensor) -> None:
        """Keep these sentences (B',), or all if None, and continue from these beams of each, (B', K')."""
        if sentences is not None:
            self.mask, self.seen = self.mask[sentences], self.seen[sentences]
            moved = (sentences != torch.arange(len(sentences), device=sentences.device)).nonzero().squeeze(1)  # (M,)
            for cache in self.caches:
                cache[moved, : self.length] = cache[sentences[moved], : self.length]
            for keys_values in self.source:
                keys_values[moved] = keys_values[sentences[moved]]
            self.caches = [cache[: len(sentences)] for cache in self.caches]
            self.source = [keys_values[: len(sentences)] for keys_values in self.source]
        places, wanted = self.caches[0].size(2), beams.size(1)
        if wanted > places:
            self.caches = [_grown(cache, cache.size(1), wanted, self.length) for cache in self.caches]
            self.seen = F.pad(self.seen.unflatten(2, (-1, places)), (0, wanted - places), value=-math.inf).flatten(2)
        self.seen = self.seen.gather(1, beams[..., None].expand(-1, -1, self.seen.size(2)))  # (B', K', length S)


def _grown(cache: Tensor, room: int, places: int, length: int) -> Tensor:
    """Make room for more steps or hypotheses; places that no step has written yet stay as memory has them."""
    grown = cache.new_empty(len(cache), room, places, cache.size(3))
    grown[:, :length, : cache.size(2)] = cache[:, :length]
    grown[:, :length, cache.size(2) :] = 0
    return grown


class FastDecoder:
    """The decoder of a Transformer whose weights do not change any more."""

    def __init__(self, model: Transformer, precision: InferencePrecision = "float32") -> None:
        self._table = model.target_embedding.table.weight.detach()
        layers = cast(list[DecoderLayer], model.decoder)
        self._layers = [_LAYERS[type(layer.self_attention)](layer, precision) for layer in layers]
        self._norm = _normed(model.decoder_norm)
        self._output = PackedLinear(model.output_weight, None, precision)
        embedding, self._embed = model.target_embedding, self._embed_alone
        if isinstance(embedding, Embedding):
            self._positions, self._embed = embedding.positions, self._embed_with_position
        self._dtype = self._output.dtype

    def start(self, memory: Memory) -> FastState:
        """Begin decoding with one hypothesis for each sentence."""
        sentences, device = len(memory.mask), memory.mask.device
        mask = torch.zeros(memory.mask.shape, device=device).masked_fill_(~memory.mask, -math.inf)  # (B, Ts)
        source = [layer.read(memory.states) for layer in self._layers]
        room = (sentences, _FIRST_ROOM, 1, 2 * memory.states.size(2))
        caches = [torch.empty(room, device=device) for _ in self._layers]
        return FastState(mask[:, None, None], source, caches, mask.new_zeros(sentences, 1, 0), mask.new_empty(0))

    def step(self, state: FastState, pieces: Tensor) -> Tensor:
        """Feed the newest piece of every hypothesis, (B, K), and compute the next logits, in float32: (B, K, V).

        They are only valid until the next step.
        """
        self._make_room(state)
        places = state.caches[0].size(2)
        own = torch.full((pieces.size(1), places), -math.inf, device=pieces.device).fill_diagonal_(0.0)  # (K, S)
        state.seen = torch.cat((state.seen, own.expand(len(pieces), -1, -1)), 2)  # (B, K, length S)
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

    def _make_room(self, state: FastState) -> None:
        room = state.caches[0].size(1)
        if state.length == room:
            state.caches = [_grown(cache, 2 * room, cache.size(2), room) for cache in state.caches]


class _FastLayer:
    def __init__(self, layer: DecoderLayer, precision: InferencePrecision) -> None:
        own, cross, feed_forward = layer.self_attention, layer.cross_attention, layer.feed_forward
        self.heads = own.heads
        residuals = cast(list[Residual], layer.residuals)
        self.pre = residuals[0].pre
        self.norms = [_normed(residual.norm) for residual in residuals]
        self.project, self.output = packed(own.project, precision), packed(own.output, precision)
        self.query, self.key_value = packed(cross.query, precision), packed(cross.key_value, precision)
        self.cross_output = packed(cross.output, precision)
        self.inner = _inner(feed_forward, packed(feed_forward.inner, precision))
        self.outer = packed(feed_forward.output, precision)

    def read(self, states: Tensor) -> Tensor:
        """Compute keys and values of the source: (B, Ts, D) -> (B, Ts, 2 D)."""
        rows = self.key_value(states.flatten(0, 1).to(self.key_value.dtype))  # (B Ts, 2 D)
        return rows.float().unflatten(0, states.shape[:2])

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
        cache, (sentences, beams, _) = state.caches[number], state.seen.shape
        new = self.project(x).view(sentences, beams, -1)  # (B, K, 3 D)
        query, keys_values = self._placed(new, state.length).split((x.size(1), 2 * x.size(1)), -1)
        cache[:, state.length, :beams] = keys_values
        # the other places are masked, but NaN times a weight of 0 is still NaN
        cache[:, state.length, beams:] = 0
        past = cache[:, : state.length + 1].flatten(1, 2)  # (B, length S, 2 D), a view
        return self._attention(query.float(), past, self._seen(state)).to(x.dtype)

    def _placed(self, query_keys_values: Tensor, place: int) -> Tensor:
        """Give queries and keys of (B, K, 3 D) their position; here they have none."""
        return query_keys_values

    def _seen(self, state: FastState) -> Tensor:
        """Make what is added to the scores: broadcasts to (B, H, K, length S)."""
        return state.seen[:, None]

    def _read(self, x: Tensor, state: FastState, number: int) -> Tensor:
        """Attend to the source: (B K, D) -> (B K, D)."""
        query = self.query(x).view(len(state.mask), -1, x.size(1)).float()  # (B, K, D)
        return self._attention(query, state.source[number], state.mask).to(x.dtype)

    def _attention(self, query: Tensor, keys_values: Tensor, mask: Tensor) -> Tensor:
        """Attend from (B, K, D) to keys and values (B, T, 2 D): (B K, D)."""
        q = query.unflatten(2, (self.heads, -1)).transpose(1, 2)  # (B, H, K, d)
        k, v = keys_values.unflatten(2, (2, self.heads, -1)).permute(2, 0, 3, 1, 4)  # (B, H, T, d) each
        output = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)  # (B, H, K, d)
        return output.transpose(1, 2).reshape(-1, query.size(2))


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
        length, places = state.length + 1, state.caches[0].size(2)
        penalty = alibi(1, length, self.slopes).repeat_interleave(places, 2)  # (H, 1, length S)
        return state.seen[:, None] + penalty  # (B, H, K, length S)


_LAYERS = {SelfAttention: _FastLayer, RotaryAttention: _RotaryLayer, AlibiAttention: _AlibiLayer}


def _normed(norm: nn.Module) -> _Function:
    """Compute a norm in the type of its input."""
    if isinstance(norm, nn.LayerNorm):
        shape, eps = norm.normalized_shape, norm.eps
        return lambda x: F.layer_norm(x, shape, norm.weight.to(x.dtype), norm.bias.to(x.dtype), eps)
    if isinstance(norm, nn.RMSNorm):
        return lambda x: F.rms_norm(x, norm.normalized_shape, norm.weight.to(x.dtype), norm.eps)
    return norm


def _inner(feed_forward: nn.Module, projection: PackedLinear) -> _Function:
    """Compute the inner layer: (B K, D) -> (B K, F)."""
    if isinstance(feed_forward, Gelu):
        return lambda x: feed_forward.activation(projection(x))
    return projection.relu


def fast_decoder(model: Seq2Seq, precision: InferencePrecision = "float32") -> FastDecoder | None:
    """Pack the decoder of a model; None if variants edit its decoder or it is not a Transformer's."""
    if not isinstance(model, Transformer) or not all(variant.only_learns for variant in model.variants["target"]):
        return None
    return FastDecoder(model, precision)
