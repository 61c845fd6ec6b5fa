"""The decoder's step in few large operators: what `Transformer.step` computes, for a decoder
without variants or with relative positions.

Weights are packed once (`synmt.fast.packed`), and what the model has instead of ReLU and layer norm
is chosen once. `Seq2Seq.predict` is its slow twin, and the test.
"""

from __future__ import annotations

import math
from copy import deepcopy
from typing import cast

import torch
import torch.nn.functional as F
from torch import Tensor

from synmt.fast.graphs import RecordedState
from synmt.fast.instructions import multiplies
from synmt.fast.keys_values import UNIT, KeysValues, MultipliedKeysValues
from synmt.fast.layers import ROOM, FastState, fast_layer, relative_in, run_layers
from synmt.fast.packed import layer_precision, packed_weight
from synmt.model.attention import Memory
from synmt.model.device import InferencePrecision
from synmt.model.seq2seq import Seq2Seq
from synmt.model.transformer import DecoderLayer, Transformer


class FastDecoder:
    """The decoder of a Transformer whose weights do not change any more.

    recorded: replay steps on a GPU. In training this is not worth the risk that a step cannot be
        recorded, which may disturb the random numbers of dropout.
    """

    def __init__(
        self,
        model: Transformer,
        precision: InferencePrecision = "float32",
        *,
        recorded: bool = False,
    ) -> None:
        self._table = model.target_embedding.table.weight.detach()
        layers = cast(list[DecoderLayer], model.decoder)
        inner = layer_precision(precision, self._table.size(1))
        self._layers = [fast_layer(layer, inner) for layer in layers]
        self._output = packed_weight(model.output_weight, model.output_bias, precision)
        embedding = model.target_embedding
        self._positions, self._waves = embedding.positions, embedding.waves
        self._dtype = self._layers[0].project.dtype
        on_cpu = self._table.device.type == "cpu"
        reduced = precision != "float32" and on_cpu and multiplies("bf16")
        self._keys_values = MultipliedKeysValues if on_cpu else KeysValues
        self._stored = torch.bfloat16 if reduced else torch.float32
        self.output_type = torch.bfloat16 if reduced else self._dtype
        self._norm = deepcopy(model.decoder_norm).to(self._dtype)
        self._recorded = recorded

    def start(self, memory: Memory) -> FastState:
        """Begin decoding with one hypothesis for each sentence."""
        sentences, device = len(memory.mask), memory.mask.device
        mask = torch.zeros(memory.mask.shape, device=device).masked_fill_(
            ~memory.mask, -math.inf
        )  # (B, Ts)
        states = memory.states  # (B, Ts, D)
        kind, dtype = self._keys_values, self._stored
        source, caches = (
            [
                kind.empty(sentences, layer.heads, places, states.size(2), dtype, mask)
                for layer in self._layers
            ]
            for places in (-(-states.size(1) // UNIT) * UNIT, ROOM)
        )
        for layer, stored in zip(self._layers, source, strict=True):
            stored.fill(slice(states.size(1)), layer.read(states))
        seen, steps = mask.new_empty(sentences, 1, 0), mask.new_empty(sentences, 0)
        kind_of_state = RecordedState if self._recorded and _records(device) else FastState
        return kind_of_state(mask[:, None, None], source, caches, seen, steps, mask.new_empty(0))

    def predict(self, state: FastState, pieces: Tensor) -> Tensor:
        """Feed the newest piece of every hypothesis, (B, K), and compute the next logits, in
        float32: (B, K, V).

        They are only valid until the next step.
        """
        return state.run(self._step, pieces)

    def hidden(self, state: FastState, pieces: Tensor) -> Tensor:
        """Feed the newest piece of every hypothesis, (B, K), and compute what the output layer
        reads: (B, K, D)."""
        return state.run(self._states, pieces).view(*pieces.shape, -1)

    def _step(self, state: FastState, pieces: Tensor) -> Tensor:
        logits = self._output(self._states(state, pieces))  # (B K, V)
        return self._in_float32(logits, state).view(*pieces.shape, -1)

    def _states(self, state: FastState, pieces: Tensor) -> Tensor:
        x = self._embed(pieces.flatten(), state)  # (B K, D)
        return self._norm(run_layers(self._layers, x, state, pieces.size(1)))

    def _in_float32(self, logits: Tensor, state: FastState) -> Tensor:
        if logits.dtype == torch.float32:
            return logits
        if state.logits.numel() < logits.numel():
            state.logits = torch.empty(logits.numel(), device=logits.device)
        return state.logits[: logits.numel()].view(logits.shape).copy_(logits)

    def _embed(self, pieces: Tensor, state: FastState) -> Tensor:
        x = F.embedding(pieces, self._table)  # (B K, D)
        scale, positions = math.sqrt(x.size(1)), self._positions
        if positions is None or self._waves is None:
            return (x * scale).to(self._dtype)
        # another thread may replace the table by a shorter one meanwhile
        if (last := state.length + state.ahead) >= len(positions):
            self._positions = positions = self._waves(2 * last, x.size(1)).to(positions)
        return torch.add(positions[state.position], x, alpha=scale).to(self._dtype)


def _records(device: torch.device) -> bool:
    """Return whether steps can be recorded on this device."""
    return device.type == "cuda" and not RecordedState.failed


def fast_decoder(
    model: Seq2Seq, precision: InferencePrecision = "float32", *, recorded: bool = False
) -> FastDecoder | None:
    """Pack the decoder of a model; None if it is not a Transformer's or variants edit it, other
    than relative positions of all heads."""
    if not isinstance(model, Transformer):
        return None
    layers = cast(list[DecoderLayer], model.decoder)
    relative = [relative_in(layer.self_attention) for layer in layers]
    if not all(variant.only_learns or variant in relative for variant in model.variants["target"]):
        return None
    return FastDecoder(model, precision, recorded=recorded)
