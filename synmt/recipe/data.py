"""The keys of a recipe that say what the model reads: text, filters, parsers, vocabulary, tasks."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    SerializerFunctionWrapHandler,
    model_serializer,
    model_validator,
)


class Section(BaseModel):
    """A part of a recipe: strict, frozen, and without unknown keys."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", strict=True, use_attribute_docstrings=True, allow_inf_nan=False
    )


class SplitFiles(Section):
    """The files of one split: raw text, line by line; `.gz` is read too."""

    source: Path
    """The source side."""
    target: Path
    """The target side."""
    source_parses: Path | None = None
    """CoNLL-U of the source side, one tree for each line; without it the recipe's parser parses the text."""
    target_parses: Path | None = None
    """The same of the target side; only train and valid need it, and only where the decoder learns from trees."""
    source_bracketings: Path | None = None
    """Linearised parses of the source side, one for each line, for `tasks: {parsing: bracketings}`."""
    labels: Path | None = None
    """Tab-separated labels with a header row, a row for each line, for `analyze --by-label`."""


class CorpusRecipe(Section):
    """Where the text is: a known corpus by `name`, a `folder` of train/valid/test files, or the files themselves."""

    name: str | None = None
    """A known corpus, such as controlled, multi30k, nc11 or iwslt14-deen (all: synmt/data/known_corpora.py)."""
    folder: Path | None = None
    """A folder with train, valid and test files, each ending in the language: train.en, train.de, …"""
    train: SplitFiles | None = None
    """The training text."""
    valid: SplitFiles | None = None
    """The text that checkpoints are chosen on."""
    test: dict[str, SplitFiles] = Field(default_factory=dict)
    """The test sets by name: translated and scored when training ends."""

    @model_validator(mode="after")
    def _one_way(self) -> CorpusRecipe:
        given = [key for key in ("name", "folder", "train") if getattr(self, key) is not None]
        if len(given) != 1:
            here = f"; here: {', '.join(given)} (corpus.{given[0]}=null takes one back)" if given else ""
            raise ValueError(f"give one of `name`, `folder`, or `train` with `valid`{here}")
        if self.train is not None and self.valid is None:
            raise ValueError("`train` needs `valid` beside it: checkpoints are chosen on it")
        return self


class FilterRecipe(Section):
    """Which pairs are left out of the training text; valid and test are never filtered."""

    max_words: int = Field(default=250, ge=1)
    """Longest side of a pair, in words between spaces."""
    max_pieces: int = Field(default=512, ge=1)
    """Longest side of a pair, in subword pieces."""
    max_ratio: float = Field(default=0.0, ge=0)
    """Largest ratio of the longer to the shorter side, in words; 0 does not look."""
    max_punctuation: float = Field(default=1.0, ge=0, le=1)
    """Largest share of the source's words that are nothing but punctuation and symbols; 1 does not look."""
    duplicates: bool = False
    """Leave out a pair that has been seen before."""
    language: bool = False
    """Leave out a pair in which a side is not in its language (needs the extra `language`)."""

    @model_serializer(mode="wrap")
    def _values(self, write: SerializerFunctionWrapHandler) -> dict[str, Any]:
        values = write(self)
        # these values name the folder of a prepared corpus, and a run goes on only with the folder that it began with:
        # a filter that was added later is not among them where it does nothing
        if self.max_punctuation == 1:
            values.pop("max_punctuation", None)
        return values


class ParserRecipe(Section):
    """What parses a side, where the model reads syntax of it."""

    model: str = "compact"
    """`compact` (ships with synmt, English), `official` (Stanza's own models), or a Stanza model folder."""
    package: str = "default"
    """The Stanza package, such as `ewt` or `combined`."""
    device: str = "auto"
    """auto, cpu or cuda."""
    workers: int = Field(default=0, ge=0)
    """Processes that parse side by side; 0 takes one for each core, or one on a GPU."""
    control: Literal["none", "random", "left", "right", "shuffled", "gold"] = "none"
    """Other trees in place of the parser's: random ones, chains that branch to the left or right, trees of the
    same shape on shuffled words, or the gold trees beside the text (train.en.conllu, …), for the test sets too."""
    rewire: float = Field(default=0.0, ge=0, le=1)
    """Share of the words, the root excepted, that get another parent, drawn at random, wherever there is one that
    leaves the tree a tree."""
    seed: int = Field(default=1, ge=0)
    """Of the random trees and parents; they are drawn for the pieces of a sentence, so by vocabulary too."""


class VocabularyRecipe(Section):
    """The units of the model: SentencePiece pieces, or whole words."""

    kind: Literal["bpe", "unigram", "word"] = "bpe"
    """Byte-pair encoding, the unigram model, or words between spaces."""
    size: int = Field(default=8000, ge=8)
    """Number of pieces; for words, the largest number that is kept."""
    joint: bool = True
    """One vocabulary for both sides, or one each."""
    byte_fallback: bool = True
    """Unknown characters become bytes, not the unknown piece."""
    min_frequency: int = Field(default=1, ge=1)
    """Whole words only: rarer ones are unknown."""
    normalization: Literal["nmt_nfkc", "nfkc", "identity"] = "nmt_nfkc"
    """SentencePiece's rule for characters before it cuts them."""
    character_coverage: float = Field(default=0.9995, gt=0, le=1)
    """Share of the characters that are pieces of their own; 1 for small alphabets."""
    training_lines: int = Field(default=2_000_000, ge=1)
    """At most so many lines, drawn at random, teach the vocabulary."""


class TasksRecipe(Section):
    """What the model learns beside translation, as additional pairs of text (Currey & Heafield, 2019)."""

    parsing: Literal["none", "dependencies", "bracketings"] = "none"
    """Each source once more, with its linearised tree as the target: the dependencies of the recipe's parser, or the
    lines of `source_bracketings` (<train>.<language>.brackets beside the text)."""
