"""Learns a vocabulary from text, or from lines that are drawn from it."""

from __future__ import annotations

import io
import logging
import re
import threading
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from sentencepiece import SentencePieceTrainer

from synmt.arrays import BoolArray
from synmt.data.text_pairs import PairChunk
from synmt.data.vocabulary import BOS, EOS, PAD, SPECIALS, UNK, SentencePieces, Vocabulary, Words
from synmt.errors import SynmtError
from synmt.recipe.data import VocabularyRecipe

# the result of the unigram model depends on the number of threads, so it must not depend on the
# machine
_THREADS = 4
# SentencePiece skips longer lines; its default of 4,192 bytes is low for non-Latin scripts
_LONGEST_LINE = 1 << 16
# and those that contain its sign of the unknown
_UNKNOWN = "\u2585".encode()

_logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class DrawnLines:
    """Lines that are drawn from one chunk: a worker can find them there.

    drawn: which lines of source and target they are, (pairs, 2).
    """

    chunk: PairChunk
    drawn: BoolArray

    def block(self) -> bytes:
        r"""Return the lines in UTF-8, with `\n` between them."""
        texts = [self.chunk.raw_lines(side) if self.drawn[:, side].any() else [] for side in (0, 1)]
        return b"\n".join([texts[side][row] for row, side in np.argwhere(self.drawn).tolist()])

    def lines(self) -> list[str]:
        """Return the lines; the filters have decoded each of them before."""
        return self.block().decode().split("\n")


def draw_lines(
    chunks: Iterable[PairChunk], kept: BoolArray, sides: Sequence[int], count: int
) -> Iterator[DrawnLines]:
    """Draw at most `count` lines of the kept pairs of a text uniformly, from one chunk after the
    other.

    kept: (lines of the text,).
    sides: the sides that are drawn from, 0 and 1.
    """
    left = int(kept.sum()) * len(sides)
    wanted = min(left, count)
    if wanted < left:
        what = (
            "vocabulary: learned from %s of %s lines, drawn at random (vocabulary.training_lines)"
        )
        _logger.info(what, f"{wanted:,}", f"{left:,}")
    # unlike those of NumPy's new generators, its numbers never change
    random = np.random.RandomState(1)
    for chunk in chunks:
        drawn = np.zeros((len(chunk), 2), dtype=bool)
        drawn[:, sides] = kept[chunk.first : chunk.first + len(chunk), None]
        lines = chosen = int(drawn.sum())
        if wanted < left and lines:
            # how many of all that are still wanted are in this chunk
            chosen = random.hypergeometric(wanted, left - wanted, lines)
            drawn.flat[np.flatnonzero(drawn)[random.permutation(lines)[chosen:]]] = False
        if chosen:
            yield DrawnLines(chunk, drawn)
        left, wanted = left - lines, wanted - chosen


def train_vocabulary(
    lines: Iterable[str], settings: VocabularyRecipe, symbols: Sequence[str] = ()
) -> Vocabulary:
    """Learn a vocabulary from lines in memory; the same lines always give the same one.

    A unigram or word vocabulary is smaller than `size` if the text does not yield more; BPE raises
    SynmtError.

    symbols: words that are never segmented, whether or not the text has them.
    """
    if settings.kind != "unigram":
        return train_on_counts(count_words("\n".join(lines).encode(), settings), settings, symbols)
    text = [line for line in lines if line.strip()]
    _check(len(text))
    return _train_pieces(text, settings, symbols, input_format="text")


def count_words(block: bytes, settings: VocabularyRecipe) -> pa.Table:
    r"""Count the words from which a BPE or word vocabulary learns: a table of `word` and `count`.

    For BPE, a tab is a space. SentencePiece, given whole lines, keeps it (unless it normalizes as
    nmt_nfkc); otherwise it learns the same pieces.

    block: lines in UTF-8 with `\n` between them.
    """
    words = (
        pa.array(block.decode().split(), pa.string())
        if settings.kind == "word"
        else _split_at_blanks(block)
    )
    counted = words.value_counts()
    # each word of BPE has the space after it
    different = pc.call_function("ascii_rtrim", [counted.field("values")], pc.TrimOptions(" "))
    # Arrow groups them five times as fast as large strings
    return pa.table({"word": different.cast(pa.string()), "count": counted.field("counts")})


def _split_at_blanks(block: bytes) -> pa.LargeStringArray:
    """Split lines into words, each with its space, so that the words of an array stay where they
    are in memory."""
    lines = block.split(b"\n")
    if _UNKNOWN in block or max(map(len, lines)) > _LONGEST_LINE:
        lines = [line for line in lines if _UNKNOWN not in line and len(line) <= _LONGEST_LINE]
    # the count will come after a tab
    text = b" ".join([*lines, b""]).replace(b"\t", b" ")
    ends = np.flatnonzero(np.frombuffer(text, dtype=np.uint8) == ord(" ")) + 1
    bounds = np.concatenate(([0], ends))
    return pa.LargeStringArray.from_buffers(len(ends), pa.py_buffer(bounds), pa.py_buffer(text))


def add_counts(parts: Iterable[pa.Table]) -> pa.Table:
    """Add the counts of parts of a text."""
    added = (
        pa.concat_tables(parts).group_by("word", use_threads=False).aggregate([("count", "sum")])
    )
    return pa.table({"word": added["word"], "count": added["count_sum"]})


def train_on_counts(
    table: pa.Table, settings: VocabularyRecipe, symbols: Sequence[str] = ()
) -> Vocabulary:
    """Learn the vocabulary that `train_vocabulary` learns from lines with these words."""
    table = table.filter(pc.field("word") != "")
    _check(len(table))
    if settings.kind == "word":
        return _frequent_words(table, settings, symbols)
    table = table.sort_by("word")
    counts = table["count"].cast(pa.string())
    text = pc.call_function(
        "binary_join_element_wise", [table["word"], counts, pa.scalar("\t")]
    ).to_pylist()
    return _train_pieces(text, settings, symbols, input_format="tsv")


def _check(size: int) -> None:
    if not size:
        raise SynmtError("a vocabulary cannot be learned from an empty text")


def _frequent_words(table: pa.Table, settings: VocabularyRecipe, symbols: Sequence[str]) -> Words:
    frequent = table.filter(pc.field("count") >= settings.min_frequency)
    ranked = frequent.sort_by([("count", "descending"), ("word", "ascending")])
    words = [word for word in ranked["word"].to_pylist() if word not in SPECIALS]
    room = settings.size - len(SPECIALS)
    rare = [symbol for symbol in symbols if symbol not in words[:room]]
    return Words([*rare, *words[: max(room - len(rare), 0)]])


def _train_pieces(
    text: Sequence[str], settings: VocabularyRecipe, symbols: Sequence[str], *, input_format: str
) -> SentencePieces:
    model = io.BytesIO()
    _check_threads()
    try:
        SentencePieceTrainer.Train(
            sentence_iterator=iter(text),
            input_format=input_format,
            model_writer=model,
            model_type=settings.kind,
            vocab_size=settings.size,
            hard_vocab_limit=settings.kind == "bpe",
            byte_fallback=settings.byte_fallback,
            normalization_rule_name=settings.normalization,
            character_coverage=settings.character_coverage,
            pad_id=PAD,
            unk_id=UNK,
            bos_id=BOS,
            eos_id=EOS,
            # with a space before it, which SentencePiece writes as U+2581
            user_defined_symbols=[f"\u2581{symbol}" for symbol in symbols],
            num_threads=_THREADS,
            max_sentence_length=_LONGEST_LINE,
            train_extremely_large_corpus=len(text) > 10_000_000,
            minloglevel=2,
        )
    except (RuntimeError, OSError) as error:
        raise _explain(str(error), settings) from None
    return SentencePieces.from_bytes(model.getvalue())


def _check_threads() -> None:
    """Raise RuntimeError if the threads of SentencePiece cannot start: it would abort, or wait for
    them forever."""
    end = threading.Event()
    threads = [threading.Thread(target=end.wait) for _ in range(_THREADS)]
    try:
        for thread in threads:
            thread.start()
    finally:
        end.set()
    for thread in threads:
        thread.join()


def _explain(message: str, settings: VocabularyRecipe) -> SynmtError:
    if match := re.search(r"size (?:is )?too high.*<= (\d+)", message):
        return SynmtError(
            f"vocabulary.size is {settings.size}, but the text supports at most {match[1]} pieces",
            do=f"Set vocabulary.size={match[1]} or lower, or vocabulary.kind=unigram, which "
            "accepts fewer",
        )
    if match := re.search(r"smaller than required_chars\. \d+ vs (\d+)", message):
        return SynmtError(
            f"vocabulary.size is {settings.size}, but characters and bytes alone need {match[1]}",
            do=f"Set vocabulary.size={match[1]} or higher, or lower vocabulary.character_coverage",
        )
    return SynmtError(f"SentencePiece failed to learn a vocabulary from this text ({message})")
