"""What goes on inside a model while it reads and writes given text: attention weights, annotations, gates."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, cast

import torch
from torch import Tensor, nn

from synmt.batch import collate
from synmt.corpus import SIDES, Side
from synmt.decode.source import Source
from synmt.decode.translator import Translator
from synmt.model.attention import Memory
from synmt.model.multihead import SelfAttention
from synmt.model.recurrent import Gate
from synmt.syntax.parse import IntArray, Parse


@dataclass(frozen=True)
class Sentence:
    """A pair of lines that a model has read.

    index: its place among the pairs.
    source, target: (T, 2) which characters of the line each piece stands for, without EOS; a task tag stands for none.
    dropped: pieces of both that were too many for the model.
    """

    index: int
    source: IntArray
    target: IntArray
    dropped: int = 0


@dataclass(frozen=True)
class Pass:
    """One batch on its way through the model.

    sentences: its B pairs.
    memory: what the decoder reads of the source.
    attention: weights of self-attention, (B, H, T, T), by side and layer, which counts from 1; the target's positions
        are those of the decoder's input, BOS first.
    gates: (B, T, D) how much of each annotation the LSTM's decoder let through when it predicted each target piece.
    """

    sentences: list[Sentence]
    memory: Memory
    attention: dict[tuple[Side, int], Tensor] = field(default_factory=dict)
    gates: Tensor | None = None


@torch.inference_mode()
def passes(
    translator: Translator,
    sources: Sequence[str],
    targets: Sequence[str] | None = None,
    trees: Sequence[Parse] | None = None,
) -> Iterator[Pass]:
    """Run a model over pairs of lines, longest first, and yield what went on inside.

    targets: what it has to write; without them only the source is read.
    trees: of the sources, where the model reads trees; without them its own parser makes them.
    A pair without a visible character in its source is left out.
    """
    model = translator.model
    for chosen in translator.source_batches(sources, translator.trees(sources, trees)):
        written = [_written(translator, one, targets) for one in chosen]
        examples = [replace(one.example, target=ids) for one, (ids, *_) in zip(chosen, written, strict=True)]
        batch = collate(examples, translator.reading).to(translator.device)
        with _watched(model) as (attention, gates):
            memory, _ = model.remember(batch.source, batch.source_signals)
            if targets is not None:
                model.decode(memory, batch.target_input, model.syntax("target", {}))
        sentences = [
            Sentence(one.index, one.spans, spans, one.dropped + dropped)
            for one, (_, spans, dropped) in zip(chosen, written, strict=True)
        ]
        yield Pass(sentences, memory, attention, torch.stack(gates, 1) if gates else None)


def _written(translator: Translator, one: Source, targets: Sequence[str] | None) -> tuple[Any, IntArray, int]:
    pieces = translator.target.encode(targets[one.index] if targets is not None else "")
    longest = translator.max_pieces
    return pieces.ids[:longest], pieces.spans[:longest], max(0, len(pieces.ids) - longest)


@contextmanager
def _watched(model: nn.Module) -> Iterator[tuple[dict[tuple[Side, int], Tensor], list[Tensor]]]:
    """Collect attention weights and gates for as long as the block runs."""
    attention: dict[tuple[Side, int], Tensor] = {}
    gates: list[Tensor] = []
    with ExitStack() as hooks:
        for side in SIDES:
            for number, layer in enumerate(self_attention(model, side), start=1):
                hooks.enter_context(layer.register_forward_hook(_keep(attention, side, number)))
        for module in model.modules():
            if isinstance(module, Gate):
                hooks.enter_context(module.register_forward_hook(_collect(gates)))
        yield attention, gates


def self_attention(model: nn.Module, side: Side) -> list[SelfAttention]:
    """List the self-attention of each layer of a side; an LSTM has none."""
    layers = getattr(model, "encoder" if side == "source" else "decoder")
    return [cast(Any, layer).self_attention for layer in layers] if isinstance(layers, nn.ModuleList) else []


def _keep(attention: dict[tuple[Side, int], Tensor], side: Side, layer: int) -> Any:
    def hook(module: SelfAttention, given: tuple[Any, ...], output: Tensor) -> None:
        attention[side, layer] = module.weights(*given[:3])

    return hook


def _collect(found: list[Tensor]) -> Any:
    def hook(module: nn.Module, given: tuple[Any, ...], output: Tensor) -> None:
        found.append(output)

    return hook
