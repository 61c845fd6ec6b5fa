"""The sections of a recipe for the data, after its text: filters, parsers, vocabulary, tasks."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

COMPACT = Path(__file__).parents[1] / "parsing" / "resources" / "stanza"
"""The folder of the compact models, with a folder for each language."""


def parser_model(model: str, language: str) -> str:
    """Return what `auto` means, `compact` if it ships for the language and `official` otherwise; or
    another model."""
    if model != "auto":
        return model
    return "compact" if language in os.listdir(COMPACT) else "official"


class StrictModel(BaseModel):
    """A part of a recipe: strict types, frozen, no unknown keys."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", strict=True, use_attribute_docstrings=True, allow_inf_nan=False
    )


Natural = Annotated[int, Field(ge=0)]
Positive = Annotated[int, Field(ge=1)]
Probability = Annotated[float, Field(ge=0, le=1)]
Rate = Annotated[float, Field(ge=0, lt=1)]


def refuse(*rules: tuple[object, str]) -> None:
    """Raise ValueError for the first rule whose condition is true, with its message."""
    for condition, message in rules:
        if condition:
            raise ValueError(message)


class TextRecipe(StrictModel):
    """How a text is tokenized before all other steps; `synmt translate` tokenizes its input in the
    same way.

    `char` needs nothing more, `kytea` needs `pip install 'synmt[kytea]'`, and `truecase` and the
    others `synmt[tokenizers]`.
    """

    tokenizer: Literal["none", "moses", "spacy", "stanza", "mecab", "kytea", "jieba", "char"] = (
        "none"
    )
    """none: raw text, or text that is tokenized already. moses: sacremoses. spacy: the blank
    pipeline of the language.
    stanza: that of the side's parser. mecab, kytea: Japanese. jieba: Chinese. char: characters, a
        space is ▁ or ␣."""
    split_hyphens: bool = False
    """moses: split `well-known` into `well @-@ known`, as `tokenizer.perl -a` does."""
    escape: bool = False
    """moses: write `&` as `&amp;`, `"` as `&quot;` and so on, as `tokenizer.perl` does."""
    truecase: bool = False
    """Write the first word of a sentence as it is usually written elsewhere; learned from the
    training text (Moses)."""
    lowercase: bool = False
    """Write everything in lower case; translations stay so."""
    already_cut: bool = False
    """The corpus and its test sets consist of these words already: only new text is tokenized."""

    @model_validator(mode="after")
    def _fits_the_tokenizer(self) -> TextRecipe:
        refuse(
            (
                (self.truecase or self.already_cut) and self.tokenizer == "none",
                "`truecase` and `already_cut` need a tokenizer, since they are about words",
            ),
            (self.truecase and self.lowercase, "use either `truecase` or `lowercase`"),
        )
        return self

    @property
    def tokenizes(self) -> bool:
        """Whether the lines become words, each with one tree node, separated by single spaces."""
        return self.tokenizer != "none"

    @property
    def changes(self) -> bool:
        """Whether the text is changed at all."""
        return self.tokenizes or self.lowercase


class FilterRecipe(StrictModel):
    """Which sentence pairs are removed from the training text; valid and test are never
    filtered."""

    max_words: Natural = 250
    """Maximum length of either side, in words separated by spaces; 0 sets no limit."""
    max_pieces: int = Field(default=512, ge=1, le=65_000)
    """Maximum length of either side, in subword pieces."""
    max_ratio: float = Field(default=0.0, ge=0)
    """Maximum ratio of the longer to the shorter side, in words; 0 sets no limit."""
    max_punctuation: Probability = 1.0
    """Maximum share of source words that consist of punctuation and symbols only; 1 sets no
    limit."""
    duplicates: bool = False
    """Remove a pair that occurred before."""
    language: bool = False
    """Remove a pair if a side is not in its language."""

    def identity(self) -> str:
        """Return the values that the name of a prepared corpus is computed from, as JSON.

        A filter that was added later is among them only if it is used, so that older prepared
        corpora keep their names.
        """
        return self.model_dump_json(
            exclude={"max_punctuation"} if self.max_punctuation == 1 else None
        )


class ParserRecipe(StrictModel):
    """The parser of one side, used if the model reads the syntax of this side."""

    model: str = "auto"
    """`auto` (compact for English, else official), `compact` (included in synmt, English only),
    `official` (Stanza's models), or a folder of Stanza models."""
    package: str = "default"
    """The Stanza package, for example `ewt` or `combined`."""
    device: str = "auto"
    """auto, cpu, cuda, cuda:1, …, mps"""
    workers: Natural = 0
    """Number of parser processes; 0 means one per core, or one on a GPU."""
    control: Literal["none", "random", "left", "right", "shuffled", "gold"] = "none"
    """Replace the parser's trees: by random trees, by left- or right-branching chains, by the same
    trees over shuffled words, or by gold trees next to the text (train.en.conllu, …), which the
    test sets then need too."""
    rewire: Probability = 0.0
    """Probability that a word other than the root gets another parent, drawn from the words that
    are not its descendants."""
    seed: Natural = 1
    """Seed of the random trees and parents, which also depend on the pieces of the sentence."""
    constituents: Literal["dependencies", "given"] = "dependencies"
    """What variants that read constituents get: binary trees built from the dependencies, or the
    brackets next to the text (train.en.brackets, or `# constituency` in train.en.conllu), which the
    test sets then need too."""

    @model_validator(mode="after")
    def _given_constituents_stay(self) -> ParserRecipe:
        changed = self.control not in ("none", "gold") or self.rewire
        refuse(
            (
                self.constituents == "given" and changed,
                "`control` and `rewire` change dependencies, and `constituents: given` reads none",
            )
        )
        return self


class VocabularyRecipe(StrictModel):
    """The vocabulary: SentencePiece pieces, or whole words."""

    kind: Literal["bpe", "unigram", "word"] = "bpe"
    """Byte-pair encoding, the unigram model, or words separated by spaces."""
    size: int = Field(default=8000, ge=8, le=10_000_000)
    """Number of pieces; for words, the maximum."""
    joint: bool = True
    """One vocabulary for both sides, instead of one for each."""
    byte_fallback: bool = True
    """Encode unknown characters as bytes instead of the unknown piece."""
    min_frequency: Positive = 1
    """Words only: minimum frequency of a word; rarer words are unknown."""
    normalization: Literal["nmt_nfkc", "nfkc", "identity"] = "nmt_nfkc"
    """SentencePiece's character normalization."""
    character_coverage: float = Field(default=0.9995, gt=0, le=1)
    """Share of the characters that the pieces must cover; 1 for small alphabets."""
    training_lines: Positive = 2_000_000
    """Maximum number of lines, sampled at random, from which the vocabulary is learned."""
    dropout: Probability = 0.0
    """BPE only: probability that a merge is dropped during training, sampled again in each epoch
    (BPE dropout, Provilkov et al., 2020, who use 0.1, and 0.6 for Chinese and Japanese)."""

    @model_validator(mode="after")
    def _drops_merges(self) -> VocabularyRecipe:
        refuse((self.dropout and self.kind != "bpe", "`dropout` needs `kind: bpe`"))
        return self

    def identity(self) -> str:
        """Return the values that a prepared corpus depends on, as JSON: all but dropout, which acts
        in training only."""
        return self.model_dump_json(exclude={"dropout"})


class TasksRecipe(StrictModel):
    """Trees as text: additional sentence pairs, or other sources (Currey & Heafield, 2018 and
    2019)."""

    parsing: Literal["none", "dependencies", "bracketings"] = "none"
    """Add each source again with its linearised tree as the target: dependencies from the recipe's
    parser, or the lines of `source_bracketings` (<train>.<language>.brackets next to the text)."""
    mixed: Literal["none", "dependencies", "bracketings"] = "none"
    """Add each pair again with its source linearised, words included: the mixed encoder, which
    reads plain text too."""
    mixed_only: bool = False
    """With `mixed: dependencies`, train on linearised sources only, and parse what is translated:
    parse2seq."""

    @property
    def trees(self) -> Literal["none", "dependencies", "bracketings"]:
        """Which trees become text."""
        return self.mixed if self.parsing == "none" else self.parsing

    @property
    def key(self) -> Literal["parsing", "mixed"]:
        """The key that says so."""
        return "parsing" if self.mixed == "none" else "mixed"

    @model_validator(mode="after")
    def _one_kind(self) -> TasksRecipe:
        refuse(
            ("none" not in (self.parsing, self.mixed), "use either `parsing` or `mixed`"),
            (
                self.mixed_only and self.mixed != "dependencies",
                "`mixed_only` needs `mixed: dependencies`, since new text is parsed",
            ),
        )
        return self
