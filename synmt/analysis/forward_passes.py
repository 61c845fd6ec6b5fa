"""Run a model over given text and capture its activations: attention weights, annotations,
gates."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, replace
from typing import TypeVar

import torch
from torch import Tensor

from synmt.arrays import DoubleArray, IntArray, Side, Texts
from synmt.data.batch import collate
from synmt.data.corpus import Example
from synmt.decode.translator import Translator
from synmt.model.attention import Memory
from synmt.model.capture import ActivationKind, Activations, capture
from synmt.reporting.progress import progress
from synmt.syntax.parse import Trees

_logger = logging.getLogger(__name__)

T = TypeVar("T")

LeftOut = dict[str, int]
"""How many lines are left out, by the reason."""


@dataclass(frozen=True, eq=False)
class ParsedText:
    """The lines that a model reads and writes, and trees of one side to compare the model with.

    side: the side that the trees belong to.
    source, target: the lines; without a target only the source is read.
    gold: one tree for each line of the side.
    model_trees: trees of the source for a model that reads trees; None: its own parser makes them.
    made_by: where the trees to compare with come from.
    """

    side: Side
    source: Texts
    target: Texts | None
    gold: Trees
    model_trees: Trees | None = None
    made_by: str = ""


@dataclass(frozen=True)
class SentencePass:
    """One pair of lines in a forward pass.

    index: the position of the pair in the text, from 0.
    source, target: (T, 2) character span of each piece in its line, without EOS; the span of a task
    tag is empty.
    dropped: number of pieces of both lines beyond the model's maximum length.
    """

    index: int
    source: IntArray
    target: IntArray
    dropped: int = 0


@dataclass(frozen=True)
class ForwardPass:
    """The forward pass of one batch.

    sentences: its B pairs of lines.
    memory: output of the encoder, as the decoder reads it.
    captured: the captured activations.
    """

    sentences: list[SentencePass]
    memory: Memory
    captured: Activations


@torch.inference_mode()
def run_forward(
    translator: Translator,
    sources: Texts,
    targets: Texts | None = None,
    trees: Trees | None = None,
    *,
    what: Collection[ActivationKind] = ("attention", "gates"),
) -> Iterator[ForwardPass]:
    """Run a model with teacher forcing over pairs of lines, longest first, and yield one pass for
    each batch.

    targets: the text that the decoder is forced to produce; without it only the encoder runs.
    trees: of the sources, for a model that reads trees; without them its own parser makes them.
    what: the activations to capture.
    Pairs with an empty source are skipped. Raises UsageError for an ensemble.
    """
    translator.refuse_ensemble("an analysis")
    translator.refuse_linearised("an analysis")
    model, longest = translator.model, translator.max_pieces
    for chosen in translator.source_batches(sources, translator.trees(sources, trees)):
        examples, sentences = list[Example](), list[SentencePass]()
        for source in chosen:
            pieces = translator.target.encode("" if targets is None else targets[source.index])
            examples.append(replace(source.example, target=pieces.ids[:longest]))
            dropped = source.dropped + max(0, len(pieces.ids) - longest)
            sentences.append(
                SentencePass(source.index, source.spans, pieces.spans[:longest], dropped)
            )
        batch = collate(examples, translator.reading).to(translator.device)
        with capture(model, what) as captured:
            memory, _ = model.remember(batch.source, batch.source_signals)
            if targets is not None:
                model.decode(memory, batch.target_input, model.syntax("target", {}))
        yield ForwardPass(sentences, memory, captured)


def measure_text(
    translator: Translator,
    text: ParsedText,
    job: str,
    read: Callable[[ForwardPass], Tensor],
    measure: Callable[[SentencePass, DoubleArray], T],
    *,
    what: Collection[ActivationKind] = ("attention", "gates"),
) -> tuple[dict[int, T], LeftOut]:
    """Run a model over a text and measure each of its sentences, with the progress of the job.

    read: returns what is measured in a pass: (B, …).
    measure: measures the part of one sentence, padding included.
    Returns the results by the number of the line, from 0, and the number of lines that are left
    out: `too_long` for the model, or `empty`, which have no words on the side of the trees.
    """
    measured = {}
    too_long = 0
    with progress(job, len(text.source), "sentences") as advance:
        for forward in run_forward(
            translator, text.source, text.target, text.model_trees, what=what
        ):
            values = read(forward).cpu().numpy()  # (B, …)
            for sentence, value in zip(forward.sentences, values, strict=True):
                # text without trees is that of the target
                words = text.gold[sentence.index] if text.gold else sentence.target
                too_long += sentence.dropped > 0
                if len(words) and not sentence.dropped:
                    measured[sentence.index] = measure(sentence, value.astype(float))
            advance(len(forward.sentences))
    left_out = {"too_long": too_long, "empty": len(text.source) - len(measured) - too_long}
    if any(left_out.values()):
        counts = ", ".join(f"{count:,} {why}" for why, count in left_out.items())
        _logger.info("sentences left out: %s", counts.replace("_", " "))
    return dict(sorted(measured.items())), left_out
