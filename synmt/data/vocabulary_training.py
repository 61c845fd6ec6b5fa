"""Learns a vocabulary from text, or from lines that are drawn from it."""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np
from sentencepiece import SentencePieceTrainer

from synmt.arrays import BoolArray, Texts
from synmt.data.text_pairs import PairChunk
from synmt.data.vocabulary import BOS, EOS, PAD, SPECIALS, UNK, SentencePieces, Vocabulary, Words
from synmt.errors import SynmtError
from synmt.parallel.engine import in_shards
from synmt.recipe.data import VocabularyRecipe

# the result of the unigram model depends on the number of threads, so it must not depend on the
# machine
_THREADS = 4
# SentencePiece skips longer lines; its default of 4,192 bytes is low for non-Latin scripts
_LONGEST_LINE = 1 << 16
# and those that contain its sign of the unknown
_UNKNOWN = "\u2585"


def draw_lines(
    chunks: Iterable[PairChunk], is_kept: BoolArray, sides: Sequence[int], count: int
) -> Iterator[str]:
    r"""Draw at most `count` lines of the kept pairs of a text uniformly: those of one chunk after
    the other, with `\n` between them.

    kept: (lines of the text,).
    sides: the sides that are drawn from, 0 and 1.
    """
    left = int(is_kept.sum()) * len(sides)
    wanted = min(left, count)
    # unlike those of NumPy's new generators, its numbers never change
    random = np.random.RandomState(1)
    for chunk in chunks:
        drawn = np.zeros((len(chunk), 2), dtype=bool)
        drawn[:, sides] = is_kept[chunk.first : chunk.first + len(chunk), None]
        lines = chosen = int(drawn.sum())
        if wanted < left and lines:
            # how many of all that are still wanted are in this chunk
            chosen = random.hypergeometric(wanted, left - wanted, lines)
            drawn.flat[np.flatnonzero(drawn)[random.permutation(lines)[chosen:]]] = False
        if chosen:
            texts = [chunk.lines(side) for side in (0, 1)]
            yield "\n".join([texts[side][row] for row, side in np.argwhere(drawn).tolist()])
        left, wanted = left - lines, wanted - chosen


def train_vocabulary(
    blocks: Iterable[str],
    settings: VocabularyRecipe,
    symbols: Texts = (),
    *,
    workers: int = 1,
    where: Path = Path(),
) -> Vocabulary:
    r"""Learn a vocabulary from lines; the same lines always give the same one.

    A unigram or word vocabulary is smaller than `size` if the text does not yield more; BPE raises
    SynmtError.

    blocks: lines with `\n` between them.
    symbols: words that are never segmented, whether or not the text has them.
    workers: processes that count the words for BPE or a word vocabulary.
    where: the folder that their errors name.
    """
    if settings.kind == "unigram":
        return _train_pieces(
            [line for block in blocks for line in block.split("\n") if line.strip()],
            settings,
            symbols,
            input_format="text",
        )
    counts = Counter[str]()
    for part in in_shards(_count_words, settings, iter(blocks), workers, where=where):
        counts.update(part)
    del counts[""]
    if settings.kind == "word":
        return _frequent_words(counts, settings, symbols)
    return _train_pieces(
        [f"{word}\t{counts[word]}" for word in sorted(counts)],
        settings,
        symbols,
        input_format="tsv",
    )


def _count_words(settings: VocabularyRecipe, block: str) -> Counter[str]:
    """Count the words from which a BPE or word vocabulary learns.

    For BPE, a tab is a space. SentencePiece, given whole lines, keeps it (unless it normalizes as
    nmt_nfkc); otherwise it learns the same pieces.
    """
    if settings.kind == "word":
        return Counter(block.split())
    lines = [
        line
        for line in block.split("\n")
        if _UNKNOWN not in line and len(line.encode()) <= _LONGEST_LINE
    ]
    # the count will come after a tab
    return Counter(" ".join(lines).replace("\t", " ").split(" "))


def _frequent_words(counts: Counter[str], settings: VocabularyRecipe, symbols: Texts) -> Words:
    frequent = [
        word
        for word, count in counts.items()
        if count >= settings.min_frequency and word not in SPECIALS
    ]
    words = sorted(frequent, key=lambda word: (-counts[word], word))
    room = settings.size - len(SPECIALS)
    rare = [symbol for symbol in symbols if symbol not in words[:room]]
    return Words([*rare, *words[: max(room - len(rare), 0)]])


def _train_pieces(
    text: Texts, settings: VocabularyRecipe, symbols: Texts, *, input_format: str
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
            # with a space before it, which SentencePiece writes as U+2581
            user_defined_symbols=[f"\u2581{symbol}" for symbol in symbols],
            num_threads=_THREADS,
            max_sentence_length=_LONGEST_LINE,
            train_extremely_large_corpus=len(text) > 10_000_000,
            minloglevel=2,
        )
    except (RuntimeError, OSError) as error:
        raise SynmtError(
            f"SentencePiece cannot learn {settings.size} pieces from this text ({error})",
            where="vocabulary.size",
            do="Choose a size that it names, or vocabulary.kind=unigram, which accepts fewer",
        ) from None
    return SentencePieces.from_bytes(model.getvalue())
