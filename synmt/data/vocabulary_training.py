"""Learns a vocabulary from text."""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc
from sentencepiece import SentencePieceTrainer

from synmt.data.vocabulary import BOS, EOS, PAD, SPECIALS, UNK, SentencePieces, Vocabulary, Words
from synmt.errors import SynmtError
from synmt.recipe.data import VocabularyRecipe

# the result of the unigram model depends on the number of threads, so it must not depend on the machine
_THREADS = 4
# SentencePiece skips longer lines; its default of 4,192 bytes is low for non-Latin scripts
_LONGEST_LINE = 1 << 16


def train_vocabulary(lines: Iterable[str], settings: VocabularyRecipe, symbols: Sequence[str] = ()) -> Vocabulary:
    """Learn a vocabulary from lines in memory; the same lines always give the same one.

    A unigram or word vocabulary is smaller than `size` if the text does not yield more; BPE raises SynmtError.

    symbols: words that are never segmented, whether or not the text has them.
    """
    if not needs_lines(settings):
        return train_on_counts(count_words(list(lines), settings), settings, symbols)
    text = [line for line in lines if line.strip()]
    _check(text)
    return _train_pieces(text, settings, symbols, input_format="text")


def needs_lines(settings: VocabularyRecipe) -> bool:
    """Tell whether a vocabulary learns from whole lines; the others learn from words and their counts."""
    return settings.kind == "unigram"


def count_words(lines: Sequence[str], settings: VocabularyRecipe) -> pa.Table:
    r"""Count the words from which a BPE or word vocabulary learns: a table of `word` and `count`.

    For BPE, a tab is a blank, and `\r` at the end of a line belongs to its last word. SentencePiece, given whole lines,
    keeps that tab (unless it normalizes as nmt_nfkc) and drops that `\r`; otherwise it learns the same pieces.
    """
    if settings.kind == "word":
        words = pa.array(" ".join(lines).split(), pa.large_string())
    else:
        # the count will come after a tab
        text = " ".join(line for line in lines if _is_read(line)).replace("\t", " ")
        whole = pa.array([text], pa.large_string())
        words = pc.call_function("split_pattern", [whole], pc.SplitPatternOptions(" ")).flatten()
    counted = words.value_counts()
    return pa.table({"word": counted.field("values"), "count": counted.field("counts")})


def add_counts(parts: Iterable[pa.Table]) -> pa.Table:
    """Add the counts of parts of a text."""
    added = pa.concat_tables(parts).group_by("word", use_threads=False).aggregate([("count", "sum")])
    return pa.table({"word": added["word"], "count": added["count_sum"]})


def _is_read(line: str) -> bool:
    # SentencePiece skips lines that are too long, or contain its sign of the unknown
    fits = len(line) <= _LONGEST_LINE // 4 or len(line.encode()) <= _LONGEST_LINE
    return fits and "\u2585" not in line


def train_on_counts(table: pa.Table, settings: VocabularyRecipe, symbols: Sequence[str] = ()) -> Vocabulary:
    """Learn the vocabulary that `train_vocabulary` learns from lines with these words."""
    counts = dict(zip(table["word"].to_pylist(), table["count"].to_pylist(), strict=True))
    _check(counts)
    if settings.kind == "word":
        return _frequent_words(counts, settings, symbols)
    text = [f"{word}\t{count}" for word, count in sorted(counts.items()) if word]
    return _train_pieces(text, settings, symbols, input_format="tsv")


def _check(text: Iterable[str]) -> None:
    if not any(map(str.strip, text)):
        raise SynmtError("a vocabulary cannot be learned from an empty text")


def _frequent_words(counts: Mapping[str, int], settings: VocabularyRecipe, symbols: Sequence[str]) -> Words:
    frequent = [word for word, count in counts.items() if count >= settings.min_frequency and word not in SPECIALS]
    frequent.sort(key=lambda word: (-counts[word], word))
    room = settings.size - len(SPECIALS)
    rare = [symbol for symbol in symbols if symbol not in frequent[:room]]
    return Words([*rare, *frequent[: max(room - len(rare), 0)]])


def _train_pieces(
    text: Sequence[str], settings: VocabularyRecipe, symbols: Sequence[str], *, input_format: str
) -> SentencePieces:
    model = io.BytesIO()
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
            # with a blank before it, which SentencePiece writes as U+2581
            user_defined_symbols=[f"\u2581{symbol}" for symbol in symbols],
            num_threads=_THREADS,
            max_sentence_length=_LONGEST_LINE,
            train_extremely_large_corpus=len(text) > 10_000_000,
            minloglevel=2,
        )
    except (RuntimeError, OSError) as error:
        raise _explain(str(error), settings) from None
    return SentencePieces.from_bytes(model.getvalue())


def _explain(message: str, settings: VocabularyRecipe) -> SynmtError:
    if match := re.search(r"size (?:is )?too high.*<= (\d+)", message):
        return SynmtError(
            f"vocabulary.size is {settings.size}, but the text yields only {match[1]} pieces",
            do=f"Set vocabulary.size={match[1]} or lower, or vocabulary.kind=unigram, which accepts fewer",
        )
    if match := re.search(r"smaller than required_chars\. \d+ vs (\d+)", message):
        return SynmtError(
            f"vocabulary.size is {settings.size}, but characters and bytes alone need {match[1]}",
            do=f"Set vocabulary.size={match[1]} or higher, or lower vocabulary.character_coverage",
        )
    return SynmtError(f"SentencePiece failed to learn a vocabulary from this text ({message})")
