"""The description of a known corpus: its splits, how each is put together, and what its paper counts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from synmt.corpora.cleaning import Cleaning
from synmt.corpora.download import RemoteFile
from synmt.corpora.sources import Source, Text, Texts


@dataclass(frozen=True)
class Plan:
    """How a split is put together: all sources one after the other, then the steps of cleaning.

    splits: the name of the split; with `every`, the names of two, and each `every`-th pair belongs to the second.
    """

    splits: tuple[str, ...]
    sources: tuple[Source, ...]
    steps: tuple[Cleaning, ...] = ()
    every: int = 0


@dataclass(frozen=True)
class KnownCorpus:
    """A corpus with a name: its files are `<split>.<language>`, plain or with `.gz`.

    languages: any two of them are a pair, in both directions.
    origin: what the splits are and where they come from, for messages and lists.
    plans: how the splits are built; empty if synmt cannot build them.
    valid, test: the file names of these splits; the other one is `train`.
    paper: the paper that states the number of sentences.
    counts: that number for each split.
    remarks: for each split why the number differs, if that is known.
    ask: what a person has to do to get the text, if the owners want that.
    """

    languages: tuple[str, ...]
    origin: str
    plans: tuple[Plan, ...] = ()
    valid: str = "valid"
    test: tuple[str, ...] = ("test",)
    paper: str = ""
    counts: Mapping[str, int] = field(default_factory=dict)
    remarks: Mapping[str, str] = field(default_factory=dict)
    ask: str = ""

    @property
    def splits(self) -> tuple[str, ...]:
        """Name all splits: train, valid and every test set."""
        return ("train", self.valid, *self.test)


def texts_in(archive: RemoteFile, name: str, languages: str, *, form: str = "txt", outer: str = "") -> Texts:
    """Describe one text per language in an archive.

    name: the name inside the archive; `{}` stands for the language.
    languages: with a blank between two.
    outer: the name of the archive itself, if it lies inside another one.
    """
    return Texts(
        {
            language: Text((archive,), (*([outer] if outer else []), name.format(language)))
            for language in languages.split()
        },
        form,
    )
