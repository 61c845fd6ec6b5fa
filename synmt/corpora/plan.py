"""The description of a known corpus: its splits, how each is put together, and what its paper counts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from synmt.corpora.cleaning import Cleaning
from synmt.corpora.sources import PackedText, ParallelText, Texts


@dataclass(frozen=True)
class Plan:
    """How a split is put together: all sources one after the other, then the steps of cleaning.

    splits: the name of the split; with `every`, the names of two, and each `every`-th pair belongs to the second.
    """

    splits: tuple[str, ...]
    sources: tuple[ParallelText, ...]
    steps: tuple[Cleaning, ...] = ()
    every: int = 0


@dataclass(frozen=True)
class KnownCorpus:
    """A corpus with a name: its files are `<split>.<language>`, plain or with `.gz`.

    languages: any two of them are a pair, in both directions.
    origin: what the splits are and where they come from, for messages and lists.
    plans: how the splits are built; empty if synmt cannot build them.
    valid, test: the file names of these splits; the other one is `train`.
    more_tests: test sets that a recipe gets only if it names them, as `corpus: {test: {hard: controlled}}` does.
    paper: the paper that states the number of sentences.
    counts: that number for each split.
    remarks: for each split why the number differs, if that is known.
    ask: what the user has to do to get the text, if the owners want that.
    """

    languages: tuple[str, ...]
    origin: str
    plans: tuple[Plan, ...] = ()
    valid: str = "valid"
    test: tuple[str, ...] = ("test",)
    more_tests: tuple[str, ...] = ()
    paper: str = ""
    counts: Mapping[str, int] = field(default_factory=dict)
    remarks: Mapping[str, str] = field(default_factory=dict)
    ask: str = ""

    @property
    def splits(self) -> tuple[str, ...]:
        """Name the splits of a recipe that names only the corpus: train, valid and its test sets."""
        return ("train", self.valid, *self.test)

    @property
    def all_splits(self) -> tuple[str, ...]:
        """Name all splits."""
        return (*self.splits, *self.more_tests)


def texts_in(archive: str | tuple[str, ...], name: str, languages: str, *, form: str = "txt", outer: str = "") -> Texts:
    """Describe one text per language in an archive.

    archive: its address, or those of the parts of one that was split.
    name: the name inside the archive; `{}` stands for the language.
    languages: with a space between two.
    form: one of `synmt.corpora.formats.FORMATS`.
    outer: the name of the archive itself, if it lies inside another one.
    """
    addresses = (archive,) if isinstance(archive, str) else archive
    outside = (outer,) if outer else ()
    return Texts(
        {language: PackedText(addresses, (*outside, name.format(language))) for language in languages.split()}, form
    )


def texts_at(address: str, languages: str) -> Texts:
    """Describe one file per language; `{}` in the address is the language."""
    return Texts({language: PackedText((address.format(language),)) for language in languages.split()})
