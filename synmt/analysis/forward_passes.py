"""What goes on inside a model while it reads and writes given text: attention weights, annotations, gates."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from synmt.arrays import IntArray
from synmt.data.batch import collate
from synmt.decode.inputs import Source
from synmt.decode.translator import Translator
from synmt.model.attention import Memory
from synmt.model.capture import ActivationKind, Activations, capture
from synmt.syntax.parse import Parse


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
class ForwardPass:
    """One batch on its way through the model.

    sentences: its B pairs.
    memory: what the decoder reads of the source.
    seen: what was watched.
    """

    sentences: list[Sentence]
    memory: Memory
    captured: Activations


@torch.inference_mode()
def run_forward(
    translator: Translator,
    sources: Sequence[str],
    targets: Sequence[str] | None = None,
    trees: Sequence[Parse] | None = None,
    *,
    what: Collection[ActivationKind] = ("attention", "gates"),
) -> Iterator[ForwardPass]:
    """Run a model over pairs of lines, longest first, and yield what went on inside.

    targets: what it has to write; without them only the source is read.
    trees: of the sources, where the model reads trees; without them its own parser makes them.
    what: is watched.
    A pair without a visible character in its source is left out.
    """
    model = translator.model
    for chosen in translator.source_batches(sources, translator.trees(sources, trees)):
        written = [_written(translator, one, targets) for one in chosen]
        examples = [replace(one.example, target=ids) for one, (ids, *_) in zip(chosen, written, strict=True)]
        batch = collate(examples, translator.reading).to(translator.device)
        with capture(model, what) as captured:
            memory, _ = model.remember(batch.source, batch.source_signals)
            if targets is not None:
                model.decode(memory, batch.target_input, model.syntax("target", {}))
        sentences = [
            Sentence(one.index, one.spans, spans, one.dropped + dropped)
            for one, (_, spans, dropped) in zip(chosen, written, strict=True)
        ]
        yield ForwardPass(sentences, memory, captured)


def _written(translator: Translator, one: Source, targets: Sequence[str] | None) -> tuple[Any, IntArray, int]:
    pieces = translator.target.encode(targets[one.index] if targets is not None else "")
    longest = translator.max_pieces
    return pieces.ids[:longest], pieces.spans[:longest], max(0, len(pieces.ids) - longest)
