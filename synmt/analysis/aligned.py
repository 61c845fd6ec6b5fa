"""Attention between the words of given pairs, read while a model is made to write the targets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from synmt.batch import collate
from synmt.bootstrap import DoubleArray
from synmt.decode.alignment import default_head_weights, word_weights
from synmt.decode.forced import force
from synmt.decode.translator import Translator
from synmt.syntax.parse import IntArray


def word_attention(
    translator: Translator,
    sources: Sequence[str],
    targets: Sequence[str],
    source_words: Sequence[IntArray],
    target_words: Sequence[IntArray],
) -> list[DoubleArray | None]:
    """Find how strongly each target word looks at each source word: (V, W) for each pair.

    source_words, target_words: (W, 2), (V, 2) characters of the words of each line.
    The model's own parser makes the trees that it reads. A line without text has None.
    """
    found: list[DoubleArray | None] = [None] * len(sources)
    longest = translator.max_pieces
    for chosen in translator.source_batches(sources, translator.trees(sources)):
        written = [translator.target.encode(targets[one.index]) for one in chosen]
        pairs = zip(chosen, written, strict=True)
        examples = [replace(one.example, target=pieces.ids[:longest]) for one, pieces in pairs]
        batch = collate(examples, translator.reading).to(translator.device)
        forced = force(translator.model, batch, attention=True)
        for one, pieces, seen in zip(chosen, written, forced, strict=True):
            cross = default_head_weights(seen.cross, max(layer for layer, _ in seen.cross))  # (T, S)
            words = source_words[one.index], target_words[one.index]
            found[one.index] = word_weights(cross, pieces.spans[:longest], one.spans, *words)
    return found
