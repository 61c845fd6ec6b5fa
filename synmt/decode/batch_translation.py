"""Translations of batches that are made already, such as those of validation."""

from __future__ import annotations

from collections.abc import Iterable

from synmt.data.batch import Batch
from synmt.data.vocabulary import Vocabulary
from synmt.decode.beam import search
from synmt.decode.inputs import in_workers, workers
from synmt.decode.next_piece import Member, limits_of
from synmt.decode.options import SearchOptions
from synmt.decode.translation import make_candidate
from synmt.model.seq2seq import Seq2Seq
from synmt.recipe.schema import DecodingRecipe


def translate_batches(
    model: Seq2Seq, batches: Iterable[Batch], decoding: DecodingRecipe, vocabulary: Vocabulary
) -> list[str]:
    """Translate the sources of batches, in the order of their lines; the model stays in the mode
    that it was in."""
    training, device = model.training, next(model.parameters()).device
    options = SearchOptions.from_recipe(decoding)
    # packed now, because the weights change in training
    decoder = model.predictor()

    def translated(batch: Batch) -> dict[int, str]:
        source = batch.to(device)
        member = Member(model, source.source, source.source_signals, decoder)
        found = search([member], options, limits=limits_of(source.source, options))
        return {
            line: make_candidate(best, vocabulary).text
            for line, (best, *_) in zip(batch.lines, found, strict=True)
        }

    model.eval()
    try:
        texts = {
            line: text
            for one in in_workers(translated, list(batches), workers(device))
            for line, text in one.items()
        }
    finally:
        model.train(training)
    return [texts[line] for line in sorted(texts)]
