"""The section of a recipe for its text: train, valid and test, each from public corpora or
files."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from pydantic import Field, model_validator

from synmt.recipe.data import StrictModel

_TAG = re.compile(r"<(?!(?:pad|unk|/?s)>)[!-;=?-~]+>")
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
    """train: a piece that each source begins with, such as <BT>."""
    fraction: float = Field(default=1.0, gt=0, le=1)
    """Share of the pairs, drawn at random; they stay in order. With the same seed, a larger share
    contains it."""
    lines: int = Field(default=0, ge=0)
    """Number of pairs, drawn in the same way; 0 takes all."""
    seed: int = Field(default=1, ge=0)
    """Seed of the drawn pairs."""

    @model_validator(mode="after")
    def _one_text(self) -> CorpusItem:
        if (self.id is None) == (self.source is None and self.target is None):
            raise ValueError("give either `id`, or `source` and `target`")
        if self.id is None and (self.source is None or self.target is None):
            raise ValueError("`source` and `target` belong together")
        if self.lines and self.fraction < 1:
            raise ValueError("give `lines` or `fraction`, not both")
        if (self.id is not None or self.is_drawn) and self.annotations():
            text = "a public corpus" if self.id is not None else "drawn pairs"
            raise ValueError(
                f"{', '.join(self.annotations())} need files of which every line is used, "
                f"not {text}"
            )
        if self.tag and not _TAG.fullmatch(self.tag):
            raise ValueError(
                f"`tag` must be plain letters in angle brackets, such as <BT>, not '{self.tag}'"
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
        if self.source is None or self.target is None:
            return None
        return SplitFiles(
            source=self.source,
            target=self.target,
            **{n: getattr(self, n) for n in self.annotations()},
        )


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
            train = values["train"]
            train = train if isinstance(train, list | tuple) else [train]
            values["train"] = tuple(map(_item, train))
        if "valid" in values:
            values["valid"] = _item(values["valid"])
        if "test" in values:
            values["test"] = _named_items(values["test"])
        return values

    @model_validator(mode="after")
    def _one_way(self) -> CorpusRecipe:
        named = [key for key in ("name", "folder", "train") if getattr(self, key)]
        if len(named) != 1:
            what = "give one of `name`, `folder`, or `train` with `valid`"
            if named:
                what += f"; here: {', '.join(named)} (corpus.{named[0]}=null removes one)"
            raise ValueError(what)
        if self.train and self.valid is None:
            raise ValueError("`train` also needs `valid`, which selects the best checkpoint")
        if self.train and not any(item.weight for item in self.train):
            raise ValueError("`train` needs a `weight` above 0")
        annotations = [name for item in self.train for name in item.annotations()]
        if len(self.train) > 1 and annotations:
            raise ValueError(f"`train` has several parts, so none can have {annotations[0]}")
        others = {f"test.{name}": item for name, item in self.test.items()}
        for name, item in {"valid": self.valid, **others}.items():
            if item is not None and (item.weight != 1 or item.tag):
                raise ValueError(f"`weight` and `tag` are for train, not for {name}")
        for name, item in self.test.items():
            # the name is that of a folder; an id has its own name
            if name in ("train", "valid") or (name != item.id and not _NAME.fullmatch(name)):
                raise ValueError(
                    f"'{name}' cannot be the name of a test set: use letters, digits and . _ + -, "
                    "not train or valid"
                )
        return self


def _item(values: Any) -> Any:
    """Turn the description of a part of a text into the values of a CorpusItem: an id, or files."""
    if isinstance(values, str):
        return {"id": values}
    return dict(values) if isinstance(values, SplitFiles) else values


def _named_items(values: Any) -> Any:
    """Turn a list of public test sets into a mapping; each has its id as its name."""
    if isinstance(values, dict):
        return {name: _item(item) for name, item in values.items()}
    items = list(map(_item, values if isinstance(values, list | tuple) else [values]))
    named: dict[str, Any] = {}
    for item in items:
        name = item.get("id") if isinstance(item, dict) else getattr(item, "id", None)
        if name is None:
            example = "`test: {news: {source: …, target: …}}`"
            raise ValueError(f"files in `test` need a name: {example}")
        if not isinstance(name, str):
            raise ValueError(f"the id of a test set is a name, not {name!r}")
        if name in named:
            raise ValueError("`test` has the same test set twice")
        named[name] = item
    return named
