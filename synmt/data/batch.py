"""Batches: which sentences they contain, padding, shifting and signals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from synmt.arrays import SIDES, Array, IntArray, Side
from synmt.data.corpus import Example
from synmt.data.stored_trees import Tree
from synmt.data.vocabulary import BOS, EOS, PAD, UNK
from synmt.syntax.constituents import without_constituents, without_dependencies
from synmt.syntax.controls import certain_arcs
from synmt.syntax.parse import Parse, flat_parse
from synmt.syntax.reading import Reading
from synmt.syntax.signals import Signal, needs_dependencies

Tensors = dict[str, Tensor]
"""Tensors by name."""

_LENGTHS = 4
"""What the lengths of filled batches are multiples of."""
_SENTENCES = 8
"""What their numbers of sentences are multiples of: 55 to 84 shapes in an epoch of Multi30k, with
8,192 to 2,048 tokens in a batch."""


@dataclass(frozen=True)
class Sequences:
    """Padded sequences of pieces.

    ids: (B, T).
    mask: (B, T), True at real pieces.
    lengths: (B,) numbers of real pieces, always on the CPU: to ask a GPU for them would wait for
        it.
    """

    ids: Tensor
    mask: Tensor
    lengths: Tensor


@dataclass(frozen=True)
class Batch:
    """The input of one forward pass.

    source: pieces, each sentence ending in EOS.
    target_input: (B, T), beginning with BOS.
    target_output: (B, T), what each input position has to predict, ending in EOS; padding after it.
    target_positions: (N,), where target_output, flattened, is not padding; finding them on a GPU
        would wait for it.
    source_signals, target_signals: by name, padded along every axis of length T; tables of rows as
        they are.
    lines: the original line of each sentence, counted from 0.
    """

    source: Sequences
    target_input: Tensor
    target_output: Tensor
    target_positions: Tensor
    source_signals: Tensors
    target_signals: Tensors
    lines: tuple[int, ...] = ()

    def to(self, device: torch.device) -> Batch:
        """Copy every tensor to a device, except for the lengths."""
        return replace(self, **{f.name: _move(getattr(self, f.name), device) for f in fields(self)})


def _move(value: Any, device: torch.device) -> Any:
    if isinstance(value, Tensor):
        # only memory that stays in place is copied to a GPU while the processor goes on
        return (value.pin_memory() if device.type == "cuda" else value).to(
            device, non_blocking=True
        )
    if isinstance(value, dict):
        return {name: _move(tensor, device) for name, tensor in value.items()}
    if isinstance(value, Sequences):
        return replace(value, ids=_move(value.ids, device), mask=_move(value.mask, device))
    return value


def collate(
    examples: Sequence[Example], source: Reading = Reading(), target: Reading = Reading()
) -> Batch:
    """Make a batch of sentences, with the signals that the model reads from the trees of each
    side."""
    targets = [example.target for example in examples]
    target_output = _pad([np.append(target, EOS) for target in targets])  # (B, T)
    return Batch(
        source=collate_source([example.source for example in examples]),
        target_input=_pad([np.append(BOS, target) for target in targets]),
        target_output=target_output,
        target_positions=(target_output != PAD).flatten().nonzero().flatten(),
        source_signals=collate_signals(examples, "source", source),
        target_signals=collate_signals(examples, "target", target),
        lines=tuple(example.line for example in examples),
    )


def collate_filled(
    examples: Sequence[Example], source: Reading = Reading(), target: Reading = Reading()
) -> Batch:
    """Make a batch of examples and of fillers, sentences without words that make its shape one of
    few; nothing of them is predicted."""
    count = len(examples)
    pieces: dict[Side, Any] = {}
    trees: dict[Side, Tree] = {}
    for side in SIDES:
        # with EOS
        longest = 1 + max(len(getattr(example, side)) for example in examples)
        pieces[side] = np.full(longest + -longest % _LENGTHS - 1, UNK)
        trees[side] = Tree(flat_parse(""), np.full_like(pieces[side], -1))
    fillers = [Example(-1, **pieces, trees=trees)] * (_SENTENCES - count % _SENTENCES)
    batch = collate([*examples, *fillers], source, target)
    real = batch.target_positions < count * batch.target_input.size(1)
    return replace(batch, target_positions=batch.target_positions[real], lines=batch.lines[:count])


def collate_source(sources: Sequence[Array]) -> Sequences:
    """Append EOS to every source and pad: B arrays of pieces -> (B, T)."""
    ids = _pad([np.append(source, EOS) for source in sources])  # (B, T)
    lengths = torch.tensor([len(source) + 1 for source in sources])  # (B,)
    return Sequences(ids, torch.arange(ids.size(1)) < lengths[:, None], lengths)


def collate_signals(examples: Sequence[Example], side: Side, reading: Reading) -> Tensors:
    """Compute signals and pad every axis of length T: of the source with EOS, of the target as the
    decoder's input."""
    if not reading.signals:
        return {}
    trees = [_tree_of(example, side, reading) for example in examples]
    signals: Tensors = {}
    for signal in reading.signals:
        padded = _pad([signal.compute(parse, word_of) for parse, word_of in trees], signal.pad)
        signals |= {signal.name: padded} if signal.tables is None else _with_tables(signal, padded)
    return signals


def _with_tables(signal: Signal, padded: Tensor) -> Tensors:
    assert signal.tables is not None
    # of 60,000 numbers, torch finds the different ones in twice the time
    values, index = np.unique(padded.numpy(), return_inverse=True)
    rows, tables = signal.tables(values)
    named = {
        signal.table_name(number): torch.from_numpy(table) for number, table in enumerate(tables)
    }
    return {signal.name: torch.from_numpy(rows[index].reshape(padded.shape)), **named}


def _tree_of(example: Example, side: Side, reading: Reading) -> tuple[Parse, IntArray]:
    tree = example.trees.get(side)
    assert isinstance(tree, Tree), f"the model reads trees of the {side}, and the text has {tree}"
    _check(tree.parse, reading)
    pieces = example.source if side == "source" else example.target
    parse = reading.control.apply(tree.parse, pieces.tobytes() if tree.key is None else tree.key)
    if reading.certain and reading.arcs and parse.arcs is None:
        parse = replace(parse, arcs=certain_arcs(parse))
    if parse.constituents is not None and not reading.constituents:
        parse = replace(parse, constituents=None)
    return parse, np.append(tree.word_of, -1) if side == "source" else np.append(-1, tree.word_of)


def _check(parse: Parse, reading: Reading) -> None:
    """Raise SynmtError for a tree that lacks what the signals are computed from."""
    if not len(parse):
        return
    needs = {signal.needs for signal in reading.signals}
    if reading.constituents and "constituents" in needs and parse.constituents is None:
        raise without_constituents("a tree")
    if not parse.relations and needs_dependencies(reading.signals, given=reading.constituents):
        raise without_dependencies("a tree")


def _pad(arrays: Sequence[Array], value: float = PAD) -> Tensor:
    shape = (len(arrays), *map(max, zip(*(array.shape for array in arrays), strict=True)))
    kind = np.int64 if np.issubdtype(arrays[0].dtype, np.integer) else np.float32
    padded: Array = np.full(shape, value, dtype=kind)
    for row, array in zip(padded, arrays, strict=True):
        row[tuple(map(slice, array.shape))] = array
    return torch.from_numpy(padded)
