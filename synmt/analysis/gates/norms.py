"""The norm of the gate to syntactic annotations at each target word (Tran & Bisk, 2018).

    norm of piece t = ‖z_t‖ / √D          z_t = σ(W_z h_t + b_z), (D,), at the step that predicts piece t

The norm is 0 for a closed gate and 1 for an open one; the paper uses ‖z_t‖, which grows with the width D. The norm of a
word is the mean over its pieces. EOS does not count.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from torch import Tensor

from synmt.analysis.forward_passes import ParsedText, run_with_progress
from synmt.arrays import DoubleArray, IntArray
from synmt.data.vocabulary import word_of
from synmt.decode.translator import Translator
from synmt.errors import UsageError
from synmt.model.recurrent import Gate
from synmt.syntax.parse import Parse


@dataclass(frozen=True)
class GatedSentence:
    """A pair of lines with the norm of the gate at each target word.

    line: its number, from 1.
    parse: of the target; gives words and tags.
    norms: (W,) from 0 to 1; NaN for a word without a piece of its own.
    """

    line: int
    source: str
    target: str
    parse: Parse
    norms: DoubleArray

    @property
    def tags(self) -> list[str]:
        """The universal part of speech of each word, `_` if unknown."""
        return self.parse.tags or ["_"] * len(self.parse)


def check_gates(translator: Translator, where: str) -> None:
    """Refuse a model without gates, before any long computation."""
    if not any(isinstance(module, Gate) for module in translator.model.modules()):
        raise UsageError(
            "this model has no gates",
            where=where,
            allowed="Models with `model.architecture: lstm` and latent_graph or latent_tree (`sets: 2`) have gates",
            do="Train one, for example `synmt train multi30k-sa`, or choose its run with `--run`",
        )


def check_tags(parses: Sequence[Parse], parser: str) -> None:
    """Refuse parses without parts of speech."""
    if not any(tag != "_" for parse in parses for tag in parse.tags):
        raise UsageError(
            "the parser gives no parts of speech to group words by",
            where=parser,
            do="Use a Stanza model with the processor `pos`",
        )


def read_gates(translator: Translator, text: ParsedText) -> tuple[list[GatedSentence], int]:
    """Run the model with teacher forcing and read its gates, with progress; the trees are of the target.

    Returns the sentences in the order of their lines, and the number of pairs left out because one side has more
    pieces than the model's maximum. Pairs without words on one side are left out, too.
    """
    found = list[GatedSentence]()
    too_long = 0
    for forward in run_with_progress(translator, text, "reading gates"):
        assert forward.captured.gates is not None
        assert text.target is not None
        rows = gate_norms(forward.captured.gates).cpu().double().numpy()  # (B, T)
        for row, sentence in zip(rows, forward.sentences, strict=True):
            parse, spans = text.gold[sentence.index], sentence.target
            too_long += sentence.dropped > 0
            if len(parse) and not sentence.dropped:
                lines = text.source[sentence.index], text.target[sentence.index]
                norms = word_norms(row[: len(spans)], spans, parse.spans)  # (W,)
                found.append(GatedSentence(sentence.index + 1, *lines, parse, norms))
    return sorted(found, key=lambda one: one.line), too_long


def gate_norms(gates: Tensor) -> Tensor:
    """Compute the norms of gates (B, T, D), from 0 to 1: (B, T)."""
    return gates.norm(dim=-1) / gates.size(-1) ** 0.5


def word_norms(norms: DoubleArray, spans: IntArray, words: IntArray) -> DoubleArray:
    """Average pieces (T,) with spans (T, 2) over each word of (W, 2): (W,), NaN for a word without pieces."""
    owners = word_of(spans, words)  # (T,)
    owned = owners >= 0  # (T,)
    pieces = np.bincount(owners[owned], minlength=len(words))  # (W,)
    totals = np.bincount(owners[owned], weights=norms[owned], minlength=len(words))  # (W,)
    return np.divide(totals, pieces, out=np.full(len(words), np.nan), where=pieces > 0)
