"""Stanza's tagger: universal tags only, since the parser reads no others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from synmt.parsing.direct.packing import Packing
from synmt.parsing.direct.vectors import WordVectors, reads_words_and_characters


class DirectTagger:
    """The universal tags of words.

    model: Stanza's, for which `supports` is true.
    """

    def __init__(self, model: Any) -> None:
        self.model = model.eval()
        self.vectors = WordVectors(model, ["word"])
        # Stanza's documents write "no tag" as _
        self.names: list[str] = [model.vocab["upos"].id2unit(number) for number in range(len(model.vocab["upos"]))]

    @staticmethod
    def supports(model: Any) -> bool:
        """Tell whether a model is a tagger that reads words and their characters."""
        from stanza.models.pos.model import Tagger

        return type(model) is Tagger and reads_words_and_characters(model)

    def __call__(self, sentences: Sequence[Sequence[str]], packing: Packing) -> Any:
        """Find the number of each word's tag in `names`: sentences from long to short -> (N,)."""
        import torch

        model = self.model
        rows = torch.from_numpy(self.vectors.rows(packing.pack(sentences)))  # (N,)
        vectors = self.vectors.table
        read = packing.run(
            model.taggerlstm, vectors[rows.to(vectors.device)], (model.taggerlstm_h_init, model.taggerlstm_c_init)
        )  # (N, D)
        return model.upos_clf(torch.relu(model.upos_hid(read))).argmax(1)
