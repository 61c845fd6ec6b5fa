"""Words: their vectors, each computed once for all lines of a call; sentences packed for LSTMs;
Stanza's tagger.

Sentences are packed from long to short: first words first, then second words, without padding. The
tagger gives universal tags only, since the parser reads no others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from synmt.arrays import BoolArray, IntArray, Texts


@dataclass(frozen=True)
class Packing:
    """Where the words of sentences are: N words in B sentences of T words at most.

    lengths: words of each sentence, descending.
    """

    lengths: Sequence[int]

    @cached_property
    def real(self) -> BoolArray:
        """Return which places have a word (B, T)."""
        return np.arange(self.lengths[0]) < np.array(self.lengths)[:, None]

    @cached_property
    def places(self) -> tuple[IntArray, IntArray]:
        """Return sentence (N,) and place (N,) of each packed word."""
        place, sentence = np.nonzero(self.real.T)
        return sentence, place

    @cached_property
    def numbers(self) -> IntArray:
        """Return the packed number of each word (B, T); 0 in the padding."""
        numbers = np.zeros(self.real.shape, dtype=np.int64)
        numbers[self.places] = np.arange(len(self.places[0]))
        return numbers

    def pack(self, sentences: Sequence[Sequence[Any]]) -> list[Any]:
        """List the words of sentences in packed order."""
        return [
            sentences[sentence][place]
            for sentence, place in zip(*(p.tolist() for p in self.places), strict=True)
        ]

    def run(self, network: Any, vectors: Any, initial: tuple[Any, Any]) -> Any:
        """Run one of Stanza's LSTMs on packed vectors: (N, D) -> (N, D).

        initial: its first states, each of (layers and directions, 1, D).
        """
        import torch
        from torch.nn.utils.rnn import PackedSequence

        count = len(self.lengths)
        states = tuple(state.expand(-1, count, -1).contiguous() for state in initial)
        packed = PackedSequence(vectors, torch.from_numpy(self.real.sum(0)))
        return network(packed, self.lengths, hx=states)[0].data


_MOST_WORDS = 50_000
"""Words whose vectors are kept: about 50 MB for each model."""


class WordVectors:
    """What Stanza's tagger or parser reads of a word: its embeddings, and what its characters give.

    model: Stanza's, with a model of characters and without one of contexts.
    names: the vocabularies and embeddings of words that the model reads, in its order.
    gap: columns that the caller fills, before those of the characters.
    table: the vectors of all known words (N, D); None if there are none.
    """

    ROOT = ""
    """The word of the root; no other word is empty."""

    def __init__(self, model: Any, names: Texts, gap: int = 0) -> None:
        self.model, self.names, self.gap = model, names, gap
        self.forget()

    def forget(self) -> None:
        """Drop all vectors, so that those of the next call do not depend on what was read
        before."""
        self._row_of: dict[str, int] = {}
        self.table: Any = None

    def __call__(self, words: list[str]) -> Any:
        """Return the vector of each word (N, D)."""
        import torch

        if new := [word for word in dict.fromkeys(words) if word not in self._row_of]:
            if len(self._row_of) + len(new) > _MOST_WORDS:
                self.forget()
                new = list(dict.fromkeys(words))
            self._add(new)
        rows = np.array([self._row_of[word] for word in words], dtype=np.int64)
        return self.table[torch.from_numpy(rows).to(self.table.device)]

    def _add(self, words: list[str]) -> None:
        import torch

        for word in words:
            self._row_of[word] = len(self._row_of)
        parts = [self._embedded(name, words) for name in self.names]
        parts.append(torch.zeros(len(words), self.gap, device=parts[0].device))
        vectors = torch.cat([*parts, self._spelled(words)], dim=1)  # (n, D)
        self.table = vectors if self.table is None else torch.cat([self.table, vectors])

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
        # Stanza's model reads words from long to short and returns them in the order given to it
        order = sorted(range(len(words)), key=lambda index: -len(spelled[index]))
        spelled = [spelled[index] for index in order]
        lengths = list(map(len, spelled))
        characters = np.zeros((len(words), lengths[0]), dtype=np.int64)  # (n, T)
        for row, length, numbers in zip(characters, lengths, spelled, strict=True):
            row[:length] = numbers
        device = self.model.trans_char.weight.device
        read = self.model.charmodel(
            torch.from_numpy(characters).to(device), None, order, [len(words)], lengths
        )
        return self.model.trans_char(read.data)


def _simplified(word: str) -> str:
    from stanza.models.common.utils import EXCLAM_RE, QUESTION_RE

    return EXCLAM_RE.sub("!", QUESTION_RE.sub("?", word))


def reads_words_and_characters(model: Any) -> bool:
    """Return whether the vectors of words that a model reads depend on nothing but the word."""
    args = model.args
    return (
        bool(args["char"])
        and args["char_emb_dim"] > 0
        and args["word_emb_dim"] > 0
        and not args.get("charlm")
        and not args.get("pretrain")
        and model.bert_model is None
    )


class DirectTagger:
    """The universal tags of words.

    model: Stanza's, for which `supports` is true.
    """

    def __init__(self, model: Any) -> None:
        self.model = model.eval()
        self.vectors = WordVectors(model, ["word"])
        # Stanza's documents write "no tag" as _
        self.names: list[str] = [
            model.vocab["upos"].id2unit(number) for number in range(len(model.vocab["upos"]))
        ]

    @staticmethod
    def supports(model: Any) -> bool:
        """Return whether a model is a tagger that reads words and their characters."""
        from stanza.models.pos.model import Tagger

        return type(model) is Tagger and reads_words_and_characters(model)

    def __call__(self, sentences: Sequence[Texts], packing: Packing) -> Any:
        """Find the number of each word's tag in `names`: sentences from long to short -> (N,)."""
        import torch

        model = self.model
        read = packing.run(
            model.taggerlstm,
            self.vectors(packing.pack(sentences)),
            (model.taggerlstm_h_init, model.taggerlstm_c_init),
        )  # (N, D)
        return model.upos_clf(torch.relu(model.upos_hid(read))).argmax(1)
