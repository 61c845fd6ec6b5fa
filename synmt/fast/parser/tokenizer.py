"""Stanza's tokenizer on many lines at once: each of them is one sentence."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import numpy.typing as npt

from synmt.arrays import Texts
from synmt.parsing.lines import Tokens

_SPACES = re.compile("  +")
_ADDRESS = re.compile(r"@|\.\S")
"""What every URL and e-mail address has; Stanza's own patterns are slow."""


class DirectTokenizer:
    """Stanza's tokenizer without its datasets and documents.

    processor: Stanza's, for which `supports` is true.
    """

    def __init__(self, processor: Any) -> None:
        from stanza.models.tokenization.data import PER_CHAR_FEAT_FUNCS

        self.model, self.vocab = processor.trainer.model.eval(), processor.vocab
        self.longest_word = processor.config.get("max_seqlen", processor.MAX_SEQ_LENGTH_DEFAULT)
        names = processor.config["feat_funcs"]
        self._features = [
            PER_CHAR_FEAT_FUNCS[name] for name in names if name in PER_CHAR_FEAT_FUNCS
        ]
        # Stanza's order: the features of a character, then those of its place
        self._places = [name in names for name in ("end_of_para", "start_of_para")]
        self._number_of = {"": 0}
        self._ids = [self.vocab.unit2id("<PAD>")]
        self._rows = [[0.0] * len(self._features)]

    @staticmethod
    def supports(processor: Any) -> bool:
        """Return whether a model reads nothing but single characters and their places."""
        from stanza.models.tokenization.data import PER_CHAR_FEAT_FUNCS, POSITION_FEAT_FUNCS
        from stanza.models.tokenization.model import Tokenizer

        config = processor.config
        known = {*PER_CHAR_FEAT_FUNCS, *POSITION_FEAT_FUNCS}
        special = (
            "use_dictionary",
            "skip_newline",
            "postprocessor",
            "speaker_delim",
            "pretokenized",
        )
        return (
            type(getattr(processor.trainer, "model", None)) is Tokenizer
            and processor.trainer.model.charmodel is None
            and known.issuperset(config["feat_funcs"])
            and not any(config.get(name) for name in special)
            and bool(config.get("no_ssplit"))
        )

    def __call__(self, lines: Texts) -> list[Tokens]:
        """Find the words of lines that have spaces only, and one word at least."""
        texts = [_SPACES.sub(" ", line.rstrip()) for line in lines]
        order = sorted(range(len(texts)), key=lambda index: -len(texts[index]))
        ends = self._ends([texts[index] for index in order])
        tokens_of_lines: list[Tokens] = [Tokens([], [])] * len(lines)
        for index, row in zip(order, ends, strict=True):
            tokens_of_lines[index] = self._tokens(texts[index], lines[index], row)
        return tokens_of_lines

    def _ends(self, texts: list[str]) -> list[npt.NDArray[Any]]:
        """Find out which characters end a word: texts from long to short -> for each one its
        labels, 0 or more."""
        import torch

        # Stanza's sentences end in one character of padding, which its model reads
        lengths = [len(text) + 1 for text in texts]
        numbers = np.zeros((len(texts), lengths[0]), dtype=np.int64)  # (B, T)
        for row, text in zip(numbers, texts, strict=True):
            row[: len(text)] = self._numbers(text)
        features = np.zeros(
            (*numbers.shape, len(self._features) + sum(self._places)), dtype=np.float32
        )  # (B, T, F)
        features[..., : len(self._features)] = np.array(self._rows, dtype=np.float32)[numbers]
        if self._places[0]:
            features[np.arange(len(texts)), np.array(lengths) - 2, len(self._features)] = 1
        if self._places[1]:
            features[:, 0, -1] = 1
        device = self.model.embeddings.weight.device
        units = torch.from_numpy(np.array(self._ids)[numbers]).to(device)  # (B, T)
        scores = self.model(units, torch.from_numpy(features).to(device), lengths)  # (B, T, C)
        labels = scores.argmax(2).cpu().numpy()  # (B, T)
        return [row[: length - 1] for row, length in zip(labels, lengths, strict=True)]

    def _numbers(self, text: str) -> list[int]:
        for character in set(text).difference(self._number_of):
            self._number_of[character] = len(self._ids)
            self._ids.append(self.vocab.unit2id(character))
            self._rows.append([float(feature(character)) for feature in self._features])
        return [self._number_of[character] for character in text]

    def _tokens(self, text: str, line: str, labels: npt.NDArray[Any]) -> Tokens:
        """Split a text at the characters that end a word; find each word in the line, which may
        have more spaces."""
        from stanza.models.tokenization.utils import update_pred_regex

        if _ADDRESS.search(text):
            labels = update_pred_regex(text, labels)
        labels[-1] = 1
        places = None if text == line[: len(text)] else _places(line)
        words, spans, start = [], [], 0
        for last in np.flatnonzero(labels).tolist():
            word = text[start : last + 1].lstrip(" ")
            if word:
                first = last + 1 - len(word)
                spans.append(
                    (first, last + 1) if places is None else (places[first], places[last] + 1)
                )
                words.append(self._normalized(word))
            start = last + 1
        return Tokens(words, spans)

    def _normalized(self, word: str) -> str:
        if " " in word:
            word = self.vocab.normalize_token(word)
        return word if len(word) <= self.longest_word else "<UNK>"


def _places(line: str) -> list[int]:
    """Find the places in a line of the characters that stay when each run of spaces becomes its
    first space."""
    return [
        place
        for place, character in enumerate(line)
        if character != " " or place == 0 or line[place - 1] != " "
    ]
