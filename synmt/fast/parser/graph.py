"""Stanza's graph parser: the scores of all arcs, the scores of relations where they are needed, and
the best tree."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from synmt.arrays import IntArray, Texts
from synmt.fast.parser.words import Packing, WordVectors, reads_words_and_characters

FloatTable = npt.NDArray[np.floating[Any]]

_PART = 64
"""Words whose scores of relations are computed at once: 1.3 MB, which a core's cache holds."""


class DirectGraphParser:
    """The parts of Stanza's parser from words and tags to scores.

    model: Stanza's, for which `supports` is true.
    tags: the names of the tagger's tags.
    """

    def __init__(self, model: Any, tags: Texts) -> None:
        import torch

        self.model = model.eval()
        self.tag_size = model.args["tag_emb_dim"]
        self.word_size = 2 * model.args["word_emb_dim"]
        self.vectors = WordVectors(model, ["word", "lemma"], gap=self.tag_size)
        device = model.upos_emb.weight.device
        self._tag_numbers = torch.tensor(model.vocab["upos"].map(tags), device=device)

    @staticmethod
    def supports(model: Any) -> bool:
        """Return whether a model is one graph parser that reads words, their characters, and
        universal tags."""
        from stanza.models.depparse.model import GraphParser

        if type(model) is not GraphParser:
            return False
        args = model.args
        return (
            reads_words_and_characters(model)
            and args["tag_emb_dim"] > 0
            and args.get("use_upos", True)
            and not args.get("use_xpos", True)
            and not args.get("use_ufeats", True)
            and not args.get("use_arc_embedding")
            and not args.get("reversed")
        )

    def read(self, sentences: Sequence[Texts], tags: Any, packing: Packing) -> ParserScores:
        """Run the network on sentences from long to short; tags are packed (N,) numbers of the
        tagger.

        packing: that of the sentences with the root before their first word; it comes first in
            packed order, too.
        """
        import torch
        from stanza.models.common.vocab import ROOT_ID

        model, roots = self.model, len(sentences)
        words = [WordVectors.ROOT] * roots + packing.pack(
            [["", *sentence] for sentence in sentences]
        )[roots:]
        vectors = self.vectors(words)  # (N, D)
        numbers = torch.cat([tags.new_full((roots,), ROOT_ID), self._tag_numbers[tags]])  # (N,)
        vectors[:, self.word_size : self.word_size + self.tag_size] = model.upos_emb(numbers)
        states = packing.run(
            model.parserlstm, vectors, (model.parserlstm_h_init, model.parserlstm_c_init)
        )  # (N, D)
        return ParserScores(model, states, packing)


class ParserScores:
    """What the graph parser says about sentences: W counts the root.

    states: (N, D) the outputs of its LSTM.
    """

    def __init__(self, model: Any, states: Any, packing: Packing) -> None:
        self.model, self.states, self.packing = model, states, packing

    @cached_property
    def arcs(self) -> FloatTable:
        """Compute log p(parent | word) of all arcs: (B, W, W); -inf in the padding and from a word
        to itself."""
        import torch

        args = self.model.args
        real = torch.from_numpy(self.packing.real).to(self.states.device)  # (B, W)
        scores = self._pairs("unlabeled")  # (B, W, W)
        place = torch.arange(real.shape[1], device=real.device)  # (W,)
        offset = place - place[:, None]  # (W, W)
        if args["linearization"]:
            scores += torch.nn.functional.logsigmoid(
                self._pairs("linearization") * torch.sign(offset)
            )
        if args["distance"]:
            distance = 1 + torch.nn.functional.softplus(self._pairs("distance"))  # (B, W, W)
            scores -= torch.log((offset.abs() - distance) ** 2 / 2 + 1)
        itself = torch.eye(len(place), dtype=torch.bool, device=real.device)  # (W, W)
        scores.masked_fill_(itself | ~real[:, None], -torch.inf)
        # the root of a sentence of padding has no arc at all; only the rows of words are read
        return torch.log_softmax(scores, dim=2).cpu().numpy()

    def arcs_of(self, sentence: int) -> FloatTable:
        """Return log p(parent | word) of all arcs in a sentence: (W, W)."""
        length = self.packing.lengths[sentence]
        return self.arcs[sentence, :length, :length]

    def best_labels(self, words: IntArray, parents: IntArray) -> IntArray:
        """Find the best relation of some arcs, given by packed numbers (M,) and (M,): (M,)."""
        import torch

        left, right = self._sides_of_relations  # (N, D), (N, D)
        parts = zip(left[words].split(_PART), right[parents].split(_PART), strict=True)
        best = [
            torch.bmm(parent[:, None], self._labelled(word))[:, 0] for word, parent in parts
        ]  # each (m, L)
        return (torch.cat(best) + self.model.deprel.scorer.W_bilin.bias).argmax(1).cpu().numpy()

    def labels(self, sentence: int) -> FloatTable:
        """Compute log p(relation | word, parent) of all arcs in a sentence: (W, W, L)."""
        import torch

        words = self.packing.numbers[sentence, : self.packing.lengths[sentence]]  # (W,)
        left, right = (side[words] for side in self._sides_of_relations)  # (W, D), (W, D)
        scores = torch.matmul(right, self._labelled(left))  # (W, W, L)
        return (
            torch.log_softmax(scores + self.model.deprel.scorer.W_bilin.bias, dim=2).cpu().numpy()
        )

    def _pairs(self, name: str) -> Any:
        """Score all pairs of words with one of the biaffine scorers that give one number: (B, W,
        W)."""
        import torch

        words, parents = self._biaffine(name)  # (N, D), (N, D)
        bilinear = getattr(self.model, name).scorer.W_bilin
        left = words @ bilinear.weight[:, :, 0]  # (N, D)
        numbers = self.packing.numbers  # (B, W)
        return torch.bmm(left[numbers], parents[numbers].mT) + bilinear.bias

    def _labelled(self, words: Any) -> Any:
        """Multiply words (M, D) with the weights of relations: (M, D, L)."""
        weight = self.model.deprel.scorer.W_bilin.weight  # (D, D, L)
        return (words @ weight.flatten(1)).view(len(words), *weight.shape[1:])

    @cached_property
    def _sides_of_relations(self) -> tuple[Any, Any]:
        return self._biaffine("deprel")

    def _biaffine(self, name: str) -> tuple[Any, Any]:
        """Compute the two sides of a biaffine scorer, each with a 1 at its end: (N, D), (N, D)."""
        import torch

        scorer = getattr(self.model, name)
        sides = (scorer.hidden_func(layer(self.states)) for layer in (scorer.W1, scorer.W2))
        words, parents = (torch.nn.functional.pad(side, (0, 1), value=1.0) for side in sides)
        return words, parents
