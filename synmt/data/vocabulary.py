"""Vocabularies: from text to pieces and back, the characters of each piece, and the word it belongs
to."""

from __future__ import annotations

import json
import re
import unicodedata
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import ClassVar

import numpy as np
import numpy.typing as npt
from sentencepiece import SentencePieceProcessor

from synmt.arrays import IntArray, IntPairs, Pair, Side, Texts, int_pairs
from synmt.errors import RESTORE, SynmtError
from synmt.files.json_files import parse_json
from synmt.files.writing import write_content
from synmt.parallel.threads import threads

PAD, UNK, BOS, EOS = range(4)
SPECIALS = ("<pad>", "<unk>", "<s>", "</s>")

IdArray = npt.NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class Pieces:
    """A text segmented into pieces, without BOS and EOS.

    ids: (T,).
    spans: (T, 2) characters of the original text that each piece covers: [start, end). A piece
        includes the space before it. If several pieces come from one character (its bytes, the
        letters of `ﬁ`), the last one has the character, and the spans of the others are empty and
        start at it.
    """

    ids: IdArray
    spans: IntArray


class Vocabulary(ABC):
    """The pieces of one side or both, by number: padding 0, unknown 1, BOS 2, EOS 3, then all
    others."""

    suffix: ClassVar[str]

    @abstractmethod
    def encode(self, text: str) -> Pieces:
        """Segment a text, with the spans of the pieces."""

    @abstractmethod
    def encode_batch(self, texts: Texts) -> list[list[int]]:
        """Segment many texts; faster than one by one."""

    def encode_ids(self, text: str) -> list[int]:
        """Segment a text."""
        return self.encode(text).ids.tolist()

    @abstractmethod
    def decode(self, ids: Iterable[int]) -> str:
        """Join pieces into raw text, without padding, BOS and EOS; unknown pieces stay visible."""

    @abstractmethod
    def pieces(self, ids: Iterable[int]) -> list[str]:
        """Return each piece as a string; `▁` is a space."""

    def tag_number(self, tag: str) -> int:
        """Return the number of a tag; raises SynmtError if the vocabulary was learned without
        it."""
        ids = self.encode_ids(tag)
        if len(ids) != 1 or UNK in ids:
            raise SynmtError(
                f"the vocabulary has no tag {tag}",
                do="Learn a new vocabulary, or use a tag that it has",
            )
        return ids[0]

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def to_bytes(self) -> bytes:
        """Serialize the vocabulary; equal vocabularies give equal bytes."""

    def save(self, folder: Path, name: str) -> None:
        """Store the vocabulary as `name.model` (SentencePiece), `name.table.model` or
        `name.words`."""
        write_content(folder / (name + self.suffix), self.to_bytes())

    @staticmethod
    def load(folder: Path, name: str) -> Vocabulary:
        """Read a vocabulary of any kind."""
        for kind in (SentencePieces, PieceTable, Words):
            path = folder / (name + kind.suffix)
            if path.is_file():
                return kind.from_bytes(path.read_bytes(), where=str(path))
        raise SynmtError("the vocabulary is missing", where=folder / f"{name}.model", do=RESTORE)


Vocabularies = Mapping[Side, Vocabulary]
"""The vocabulary of each side; a joint one is that of both."""


class SentencePieces(Vocabulary):
    """Subword pieces of a SentencePiece model, BPE or unigram."""

    suffix = ".model"

    def __init__(self, processor: SentencePieceProcessor) -> None:
        self._processor = processor

    @classmethod
    def from_bytes(cls, stored: bytes, *, where: str = "") -> SentencePieces:
        """Read a SentencePiece model and all of its pieces, since wrong bytes are only noticed
        then."""
        processor = SentencePieceProcessor()
        try:
            processor.LoadFromSerializedProto(stored)
            processor.IdToPiece(list(range(processor.GetPieceSize())))
        except (RuntimeError, OSError, ValueError, LookupError):
            raise SynmtError("not a SentencePiece model", where=where, do=RESTORE) from None
        return cls(processor)

    def encode(self, text: str) -> Pieces:
        encoded = self._processor.Encode(text, out_type="offset_mapping")
        return _pieces(encoded["ids"], encoded["offsets"])

    def encode_symbols(self, text: str) -> Pieces:
        """Segment a text of a BPE model without merging anything."""
        # BPE dropout with probability 1
        encoded = self._processor.Encode(
            text, out_type="offset_mapping", enable_sampling=True, nbest_size=-1, alpha=1.0
        )
        return _pieces(encoded["ids"], encoded["offsets"])

    def encode_batch(self, texts: Texts) -> list[list[int]]:
        return self._processor.Encode(list(texts), out_type=int, num_threads=threads())

    def decode(self, ids: Iterable[int]) -> str:
        return self._processor.Decode([int(piece) for piece in ids])

    def pieces(self, ids: Iterable[int]) -> list[str]:
        return [self._processor.IdToPiece(int(piece)) for piece in ids]

    def score(self, piece: int) -> float:
        """Return a piece's score; BPE merges the piece with the highest score first."""
        return self._processor.GetScore(piece)

    def merged_pieces(self) -> list[int]:
        """List the characters and the pieces that are made of them: all but specials, bytes and
        tags."""
        return [
            p
            for p in range(len(SPECIALS), len(self))
            if not self._processor.IsByte(p) and not self._is_tag(p)
        ]

    def _is_tag(self, piece: int) -> bool:
        # tags are not merged: they come whole out of a text in which nothing is
        text = self._processor.IdToPiece(piece).replace("▁", " ")
        if len(text) == 1 or self.score(piece) != 0:
            return False
        return self.encode_symbols(text).ids.tolist() == [piece]

    def __len__(self) -> int:
        return self._processor.GetPieceSize()

    def model_bytes(self) -> bytes:
        """Serialize the SentencePiece model."""
        return self._processor.serialized_model_proto()

    def to_bytes(self) -> bytes:
        return self.model_bytes()


class _NumberedPieces(Vocabulary):
    """A list of pieces, numbered in its order after the specials; any other piece is unknown."""

    def __init__(self, pieces: Texts) -> None:
        self._pieces = [*SPECIALS, *pieces]
        # `<s>` in a text is an ordinary word, and unknown
        self._numbers = {piece: number for number, piece in enumerate(pieces, start=len(SPECIALS))}

    def pieces(self, ids: Iterable[int]) -> list[str]:
        return [self._pieces[piece] for piece in ids]

    def __len__(self) -> int:
        return len(self._pieces)

    def _ids_of(self, pieces: Iterable[str]) -> list[int]:
        return [self._numbers.get(piece, UNK) for piece in pieces]

    def _without_ends(self, ids: Iterable[int]) -> list[str]:
        """Return the pieces but for padding, BOS and EOS."""
        return self.pieces(piece for piece in ids if piece not in (PAD, BOS, EOS))


class PieceTable(_NumberedPieces, SentencePieces):
    """The pieces of a SentencePiece model, numbered by a table that two such models share, as in
    Marian."""

    suffix = ".table.model"

    def __init__(self, table: Texts, processor: SentencePieceProcessor) -> None:
        super().__init__(table)
        self._processor = processor

    @classmethod
    def from_bytes(cls, stored: bytes, *, where: str = "") -> PieceTable:
        """Read a table, a list in JSON on the first line, and the SentencePiece model after it."""
        header, _, model = stored.partition(b"\n")
        return cls(
            parse_json(header, list[str], where=where),
            SentencePieces.from_bytes(model, where=where)._processor,
        )

    @property
    def languages(self) -> list[str]:
        """The target languages, if the first piece of a source, such as `>>deu<<`, chooses one."""
        return [piece[2:-2] for piece in self._pieces if re.fullmatch(">>.+<<", piece)]

    def encode(self, text: str) -> Pieces:
        code, rest = _split_code(text)
        encoded = self._processor.Encode(rest, out_type="offset_mapping")
        spans = [(first + len(code), last + len(code)) for first, last in encoded["offsets"]]
        before = [(0, len(code))] if code else []
        return _pieces(self._ids_after(code, encoded["pieces"]), before + spans)

    def encode_batch(self, texts: Texts) -> list[list[int]]:
        codes, rests = zip(*map(_split_code, texts), strict=True) if texts else ((), ())
        rows = self._processor.Encode(list(rests), out_type=str, num_threads=threads())
        return list(map(self._ids_after, codes, rows))

    def decode(self, ids: Iterable[int]) -> str:
        text = self._processor.DecodePieces(self._without_ends(ids))
        # the piece of another model keeps its sign for a space
        return text.replace("▁", " ").strip()

    def tag_number(self, tag: str) -> int:
        return self._numbers[tag] if tag in self._numbers else super().tag_number(tag)

    def to_bytes(self) -> bytes:
        header = json.dumps(self._pieces[len(SPECIALS) :], ensure_ascii=False)
        return header.encode() + b"\n" + self.model_bytes()

    def _ids_after(self, code: str, pieces: Texts) -> list[int]:
        return self._ids_of([code, *pieces] if code else pieces)


def _split_code(text: str) -> Pair:
    """Split a text into the code of its target language, such as `>>deu<<`, and the rest."""
    code = re.match(">>.*?<<", text)
    return (code[0], text[code.end() :]) if code else ("", text)


class Words(_NumberedPieces):
    """Words separated by spaces."""

    suffix = ".words"

    @classmethod
    def from_bytes(cls, stored: bytes, *, where: str = "") -> Words:
        """Read a list of words, one per line, the specials first."""
        try:
            lines = stored.decode("utf-8").split("\n")[:-1]
        except UnicodeDecodeError:
            lines = []
        if tuple(lines[: len(SPECIALS)]) != SPECIALS:
            raise SynmtError(
                f"not a list of words that begins with {', '.join(SPECIALS)}",
                where=where,
                do=RESTORE,
            )
        return cls(lines[len(SPECIALS) :])

    def encode(self, text: str) -> Pieces:
        words = list(re.finditer(r"\S+", text))
        return _pieces(self._ids_of(match[0] for match in words), [match.span() for match in words])

    def encode_batch(self, texts: Texts) -> list[list[int]]:
        return [self._ids_of(text.split()) for text in texts]

    def decode(self, ids: Iterable[int]) -> str:
        return " ".join(self._without_ends(ids))

    def to_bytes(self) -> bytes:
        return "".join(f"{word}\n" for word in self._pieces).encode()


def punctuation_pieces(vocabulary: Vocabulary) -> list[int]:
    """List the pieces that are punctuation, as characters or bytes, and the lone space, which does
    not start a word."""
    numbers = range(len(SPECIALS), len(vocabulary))
    return [
        number
        for number, piece in zip(numbers, vocabulary.pieces(numbers), strict=True)
        if piece == "▁" or is_punctuation(_spelled_out(piece).strip("▁"))
    ]


def _spelled_out(piece: str) -> str:
    """Replace an ASCII byte such as `<0x3F>` by its character; other bytes are only a part of
    one."""
    byte = re.fullmatch(r"<0x([0-7][0-9A-F])>", piece)
    return chr(int(byte[1], 16)) if byte else piece


@lru_cache(maxsize=1 << 16)
def is_punctuation(text: str) -> bool:
    """Return whether a text consists of punctuation and symbols only, and is not empty."""
    # P and S: Unicode counts $, + and < among the symbols, not the punctuation
    return bool(text) and all(unicodedata.category(character)[0] in "PS" for character in text)


def word_of(spans: IntArray, words: IntArray) -> IntArray:
    """Find the word that each piece belongs to: spans of pieces (T, 2) and words (W, 2) -> (T,).

    It is the word of the piece's first character that is in a word. A piece without such a
    character (a lone space, a byte before the last of its character, text that the parser skipped)
    belongs to the next word, or at the end of the line to the last one. -1 only if there are no
    words.
    """
    first = np.searchsorted(words[:, 1], spans[:, 0], side="right")  # (T,)
    return np.minimum(first, len(words) - 1)


def truncate(ids: list[int], longest: int, tail: int) -> list[int]:
    """Truncate a sequence to `longest` pieces, keeping the last `tail` of them."""
    return ids if len(ids) <= longest else ids[: longest - tail] + ids[len(ids) - tail :]


def _pieces(ids: list[int], spans: IntPairs) -> Pieces:
    return Pieces(np.array(ids, dtype=np.int32), int_pairs(spans))
