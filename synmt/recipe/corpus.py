"""The section of a recipe for its text: train, valid and test, each from public corpora or
files."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, model_validator

from synmt.recipe.data import Natural, Positive, StrictModel, refuse

_TAG = re.compile(r"<(?!(?:pad|unk|/?s)>)[!-;=?-~]+>|>>[\w-]+<<")
"""ASCII, which no normalization of a vocabulary changes, and no name of its special pieces."""
_NAME = re.compile(r"\w[\w.+-]*")


class _Annotations(StrictModel):
    """The files that a text can have next to it, line by line."""

    source_parses: Path | None = None
    """CoNLL-U of the source, one tree per line; without it, the recipe's parser parses the text."""
    target_parses: Path | None = None
    """CoNLL-U of the target; only train and valid need it, and only if the decoder learns from
    trees."""
    source_bracketings: Path | None = None
    """Linearised parses of the source, one per line, for `tasks: {parsing: bracketings}` or, with
    the words of the text, for `parser: {constituents: given}`."""
    target_bracketings: Path | None = None
    """Those of the target with its words, for `target_parser: {constituents: given}`."""
    labels: Path | None = None
    """Tab-separated labels with a header row and one row per line, for `analyze --by-label`."""


class SplitFiles(_Annotations):
    """The files of one split: raw text, one sentence per line, plain or `.gz`."""

    source: Path
    """The source text."""
    target: Path
    """The target text."""


class CorpusItem(_Annotations):
    """A part of the text: a public corpus by `id`, or files. A recipe can write the id alone."""

    id: str | None = None
    """Of mtdata (Statmt-news_commentary-16-deu-eng), a test set of sacreBLEU (wmt17), or a known
    corpus (nc11)."""
    source: Path | None = None
    """The source text: raw text, one sentence per line, plain or `.gz`."""
    target: Path | None = None
    """The target text."""
    weight: float = Field(default=1.0, ge=0, le=1000)
    """train: how often an epoch reads each pair; 0.5 reads half of the pairs, a different half in
    each epoch."""
    tag: str = ""
    """train: a piece that each source begins with, such as <BT>; >>deu<< for a pretrained model."""
    fraction: float = Field(default=1.0, gt=0, le=1)
    """Share of the pairs, drawn at random; they stay in order. With the same seed, a larger share
    contains it."""
    lines: Natural = 0
    """Number of pairs, drawn in the same way; 0 takes all."""
    seed: Natural = 1
    """Seed of the drawn pairs."""

    @model_validator(mode="before")
    @classmethod
    def _from_id(cls, values: Any) -> Any:
        """Turn an id, or the files of a split, into an item."""
        if isinstance(values, str):
            return {"id": values}
        return dict(values) if isinstance(values, SplitFiles) else values

    @model_validator(mode="after")
    def _one_text(self) -> CorpusItem:
        pair = self.source is not None and self.target is not None
        part = self.source is not None or self.target is not None
        extra = ", ".join(self.annotations())
        refuse(
            (
                pair != part or pair == (self.id is not None),
                "give either `id`, or `source` and `target`",
            ),
            (self.lines and self.fraction < 1, "give `lines` or `fraction`, not both"),
            (extra and (self.is_drawn or not pair), f"{extra} need files whose lines are all used"),
            (
                self.tag and not _TAG.fullmatch(self.tag),
                f"`tag` must be letters in angle brackets, such as <BT>, not '{self.tag}'",
            ),
        )
        return self

    @property
    def is_drawn(self) -> bool:
        """Whether only some of the pairs are used."""
        return self.lines > 0 or self.fraction < 1

    def annotations(self) -> list[str]:
        """Name the given files that belong to the text, such as its trees."""
        return [name for name in _Annotations.model_fields if getattr(self, name) is not None]

    def files(self) -> SplitFiles | None:
        """Return the files, unless the text is a public corpus."""
        names = ["source", "target", *self.annotations()]
        values = {name: getattr(self, name) for name in names}
        return SplitFiles.model_validate(values) if self.id is None else None


class ControlledRecipe(StrictModel):
    """The sentences of the controlled corpus; the test sets change only with order, cases and
    lexicon."""

    pairs: Positive = 6000
    """Number of training pairs; with a smaller number, these are the first ones."""
    order: Literal["svo", "sov", "free"] = "svo"
    """Order of subject, verb and objects in the source; free: the verb last, the others in any
    order, which needs `cases`."""
    cases: bool = False
    """Whether nouns of the source end in `um` as objects, and in `im` as recipients."""
    depth: Natural = 0
    """Largest depth of the trees of training and validation, from 4 up; 0 sets no limit."""
    lexicon: int = Field(default=1, ge=1, le=10)
    """How many times as many nouns there are as usual: the others have a syllable before them."""

    @property
    def other_words(self) -> bool:
        """Whether sources are not in the usual English."""
        return self.order != "svo" or self.cases or self.lexicon > 1

    @model_validator(mode="after")
    def _can_be_drawn(self) -> ControlledRecipe:
        refuse(
            (self.order == "free" and not self.cases, "`order: free` needs `cases: true`"),
            (0 < self.depth < 4, "there are no such sentences: `depth` must be 0, or 4 or more"),
        )
        return self


class CorpusRecipe(StrictModel):
    """The text: a known corpus by `name`, a `folder` of train/valid/test files, or train, valid and
    test one by one.

    Next to `name` or `folder`, `valid` and `test` replace what the corpus has. In a recipe that
    extends another one, each of `name`, `folder` and `train` replaces the other two.
    """

    name: str | None = None
    """A known corpus, such as controlled, multi30k, nc11 or iwslt14-deen (all:
    `synmt --docs corpora`)."""
    folder: Path | None = None
    """A folder with files that end in the language: train.en, train.de, valid.* (or val.*, dev.*),
    and test*.* for each test set."""
    train: tuple[CorpusItem, ...] = ()
    """The training text: one public corpus or pair of files, or a list of them, one after the
    other."""
    valid: CorpusItem | None = None
    """The validation text, which selects the best checkpoint."""
    test: dict[str, CorpusItem] = Field(default_factory=dict)
    """The test sets by name, or a list of public ones; they are translated and scored when training
    ends."""

    controlled: ControlledRecipe = ControlledRecipe()
    """Settings of the controlled corpus."""

    @property
    def items(self) -> list[CorpusItem]:
        """All items of train, valid and test."""
        return [*self.train, *filter(None, [self.valid]), *self.test.values()]

    @model_validator(mode="before")
    @classmethod
    def _items(cls, values: Any) -> Any:
        """Turn every form that the user can write into items."""
        if not isinstance(values, dict):
            return values
        values = {key: value for key, value in values.items() if value is not None}
        if "train" in values:
            values["train"] = tuple(_listed(values["train"]))
        if not isinstance(values.get("test", {}), dict):
            # public test sets have their ids as their names
            tests = _listed(values["test"])
            ids = [test.get("id") if isinstance(test, dict) else test for test in tests]
            example = "`test: {news: {source: …, target: …}}`"
            refuse((not all(ids), f"files in `test` need a name: {example}"))
            values["test"] = dict(zip(map(str, ids), tests, strict=True))
        return values

    @model_validator(mode="after")
    def _one_way(self) -> CorpusRecipe:
        named = [key for key in ("name", "folder", "train") if getattr(self, key)]
        parts = len(self.train)
        refuse(
            (
                len(named) != 1,
                "give one of `name`, `folder`, or `train` with `valid`; here: "
                f"{', '.join(named) or 'none'} (corpus.name=null removes one)",
            ),
            (
                parts and self.valid is None,
                "`train` also needs `valid`, which selects the best checkpoint",
            ),
            (
                parts and not any(item.weight for item in self.train),
                "`train` needs a `weight` above 0",
            ),
            (
                parts > 1 and any(item.annotations() for item in self.train),
                "`train` has several parts, so none can have trees or labels",
            ),
        )
        for name, item in self.test.items():
            # the name is that of a folder; an id has its own name
            wrong = name in ("train", "valid") or (name != item.id and not _NAME.fullmatch(name))
            advice = "use letters, digits and . _ + -, not train or valid"
            refuse((wrong, f"'{name}' cannot be the name of a test set: {advice}"))
        return self


def _listed(values: Any) -> list[Any]:
    return list(values) if isinstance(values, list | tuple) else [values]
