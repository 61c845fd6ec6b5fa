"""The sections of a recipe for the data: corpus, filters, parsers, vocabulary, tasks."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator


class StrictModel(BaseModel):
    """A part of a recipe: strict types, frozen, no unknown keys."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", strict=True, use_attribute_docstrings=True, allow_inf_nan=False
    )


class SplitFiles(StrictModel):
    """The files of one split: raw text, one sentence per line, plain or `.gz`."""

    source: Path
    """The source text."""
    target: Path
    """The target text."""
    source_parses: Path | None = None
    """CoNLL-U of the source, one tree per line; without it, the recipe's parser parses the text."""
    target_parses: Path | None = None
    """CoNLL-U of the target; only train and valid need it, and only if the decoder learns from trees."""
    source_bracketings: Path | None = None
    """Linearised parses of the source, one per line, for `tasks: {parsing: bracketings}`."""
    labels: Path | None = None
    """Tab-separated labels with a header row and one row per line, for `analyze --by-label`."""


class CorpusRecipe(StrictModel):
    """The text: a known corpus by `name`, a `folder` of train/valid/test files, or the files themselves."""

    name: str | None = None
    """A known corpus, such as controlled, multi30k, nc11 or iwslt14-deen (all: synmt/data/known_corpora.py)."""
    folder: Path | None = None
    """A folder with train, valid and test files, each ending in the language: train.en, train.de, …"""
    train: SplitFiles | None = None
    """The training text."""
    valid: SplitFiles | None = None
    """The validation text, which selects the best checkpoint."""
    test: dict[str, SplitFiles] = Field(default_factory=dict)
    """The test sets by name; they are translated and scored when training ends."""

    @model_validator(mode="after")
    def _one_way(self) -> CorpusRecipe:
        given = [key for key in ("name", "folder", "train") if getattr(self, key) is not None]
        if len(given) != 1:
            here = f"; here: {', '.join(given)} (corpus.{given[0]}=null removes one)" if given else ""
            raise ValueError(f"give one of `name`, `folder`, or `train` with `valid`{here}")
        if self.train is not None and self.valid is None:
            raise ValueError("`train` also needs `valid`, which selects the best checkpoint")
        return self


class FilterRecipe(StrictModel):
    """Which sentence pairs are removed from the training text; valid and test are never filtered."""

    max_words: int = Field(default=250, ge=0)
    """Maximum length of either side, in words separated by spaces; 0 sets no limit."""
    max_pieces: int = Field(default=512, ge=1)
    """Maximum length of either side, in subword pieces."""
    max_ratio: float = Field(default=0.0, ge=0)
    """Maximum ratio of the longer to the shorter side, in words; 0 sets no limit."""
    max_punctuation: float = Field(default=1.0, ge=0, le=1)
    """Maximum share of source words that consist of punctuation and symbols only; 1 sets no limit."""
    duplicates: bool = False
    """Remove a pair that occurred before."""
    language: bool = False
    """Remove a pair if a side is not in its language (needs the extra `language`)."""

    def identity(self) -> str:
        """Give the values that the name of a prepared corpus is computed from, as JSON.

        A filter that was added later is among them only if it is used, so that older prepared corpora keep their names.
        """
        return self.model_dump_json(exclude={"max_punctuation"} if self.max_punctuation == 1 else None)


class ParserRecipe(StrictModel):
    """The parser of one side, used if the model reads the syntax of this side."""

    model: str = "compact"
    """`compact` (included in synmt, English only), `official` (Stanza's models), or a folder of Stanza models."""
    package: str = "default"
    """The Stanza package, for example `ewt` or `combined`."""
    device: str = "auto"
    """auto, cpu, cuda, cuda:1, …"""
    workers: int = Field(default=0, ge=0)
    """Number of parser processes; 0 means one per core, or one on a GPU."""
    control: Literal["none", "random", "left", "right", "shuffled", "gold"] = "none"
    """Replace the parser's trees: by random trees, by left- or right-branching chains, by the same trees over shuffled
    words, or by gold trees next to the text (train.en.conllu, …), which the test sets then need too."""
    rewire: float = Field(default=0.0, ge=0, le=1)
    """Probability that a word other than the root gets another parent, drawn from the words that are not its
    descendants."""
    seed: int = Field(default=1, ge=0)
    """Seed of the random trees and parents, which also depend on the pieces of the sentence."""


class VocabularyRecipe(StrictModel):
    """The vocabulary: SentencePiece pieces, or whole words."""

    kind: Literal["bpe", "unigram", "word"] = "bpe"
    """Byte-pair encoding, the unigram model, or words separated by spaces."""
    size: int = Field(default=8000, ge=8)
    """Number of pieces; for words, the maximum."""
    joint: bool = True
    """One vocabulary for both sides, instead of one for each."""
    byte_fallback: bool = True
    """Encode unknown characters as bytes instead of the unknown piece."""
    min_frequency: int = Field(default=1, ge=1)
    """Words only: minimum frequency of a word; rarer words are unknown."""
    normalization: Literal["nmt_nfkc", "nfkc", "identity"] = "nmt_nfkc"
    """SentencePiece's character normalization."""
    character_coverage: float = Field(default=0.9995, gt=0, le=1)
    """Share of the characters that the pieces must cover; 1 for small alphabets."""
    training_lines: int = Field(default=2_000_000, ge=1)
    """Maximum number of lines, sampled at random, from which the vocabulary is learned."""


class TasksRecipe(StrictModel):
    """What the model learns in addition to translation, as additional sentence pairs (Currey & Heafield, 2019)."""

    parsing: Literal["none", "dependencies", "bracketings"] = "none"
    """Add each source again with its linearised tree as the target: dependencies from the recipe's parser, or the
    lines of `source_bracketings` (<train>.<language>.brackets next to the text)."""
