"""The vectors of words that depend on nothing but the word: each is computed once for all lines of a call."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from synmt.arrays import IntArray

_MOST_WORDS = 50_000
"""Words whose vectors are kept: about 50 MB for each model."""


class WordVectors:
    """What Stanza's tagger or parser reads of a word: its embeddings, and what its characters give.

    model: Stanza's, with a model of characters and without one of contexts.
    names: the vocabularies and embeddings of words that the model reads, in its order.
    gap: columns that the caller fills, before those of the characters.
    """

    ROOT = ""
    """The word that stands for the root; no other word is empty."""

    def __init__(self, model: Any, names: Sequence[str], gap: int = 0) -> None:
        self.model, self.names, self.gap = model, names, gap
        self.forget()

    def forget(self) -> None:
        """Drop all vectors, so that those of the next call do not depend on what was read before."""
        self._row_of: dict[str, int] = {}
        self._table: Any = None

    def rows(self, words: Iterable[str]) -> IntArray:
        """Give the row of each word in `table`."""
        words = list(words)
        if new := [word for word in dict.fromkeys(words) if word not in self._row_of]:
            if len(self._row_of) + len(new) > _MOST_WORDS:
                self.forget()
                new = list(dict.fromkeys(words))
            self._add(new)
        return np.array([self._row_of[word] for word in words], dtype=np.int64)

    @property
    def table(self) -> Any:
        """The vectors of all known words (N, D)."""
        return self._table

    def _add(self, words: list[str]) -> None:
        import torch

        for word in words:
            self._row_of[word] = len(self._row_of)
        parts = [self._embedded(name, words) for name in self.names]
        parts.append(torch.zeros(len(words), self.gap, device=parts[0].device))
        vectors = torch.cat([*parts, self._spelled(words)], dim=1)  # (n, D)
        self._table = vectors if self._table is None else torch.cat([self._table, vectors])

    def _embedded(self, name: str, words: list[str]) -> Any:
        import torch
        from stanza.models.common.vocab import ROOT_ID

        vocabulary, embedding = self.model.vocab[name], getattr(self.model, f"{name}_emb")
        # Stanza simplifies what it looks up as a word, and not its lemma
        simple = _simplified if name == "word" else str
        numbers = [vocabulary.unit2id(simple(word)) if word else ROOT_ID for word in words]
        return embedding(torch.tensor(numbers, device=embedding.weight.device))  # (n, D)

    def _spelled(self, words: list[str]) -> Any:
        """Run the model of characters on distinct words: (n, D)."""
        import torch
        from stanza.models.common.vocab import ROOT_ID

        vocabulary = self.model.vocab["char"]
        spelled = [vocabulary.map(_simplified(word)) if word else [ROOT_ID] for word in words]
        # Stanza's model reads words from long to short and gives them in the order that it is told
        order = sorted(range(len(words)), key=lambda index: -len(spelled[index]))
        spelled = [spelled[index] for index in order]
        lengths = list(map(len, spelled))
        characters = np.zeros((len(words), lengths[0]), dtype=np.int64)  # (n, T)
        for row, length, numbers in zip(characters, lengths, spelled, strict=True):
            row[:length] = numbers
        device = self.model.trans_char.weight.device
        read = self.model.charmodel(torch.from_numpy(characters).to(device), None, order, [len(words)], lengths)
        return self.model.trans_char(read.data)


def _simplified(word: str) -> str:
    from stanza.models.common.utils import EXCLAM_RE, QUESTION_RE

    return EXCLAM_RE.sub("!", QUESTION_RE.sub("?", word))


def reads_words_and_characters(model: Any) -> bool:
    """Tell whether the vectors of words that a model reads depend on nothing but the word."""
    args = model.args
    return (
        bool(args["char"])
        and args["char_emb_dim"] > 0
        and args["word_emb_dim"] > 0
        and not args.get("charlm")
        and not args.get("pretrain")
        and model.bert_model is None
    )
