"""The corpora that a recipe can name, as `known.yaml` describes them: addresses, formats, splits,
sums and counts."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from html import unescape
from itertools import chain, islice
from pathlib import Path

from pydantic import TypeAdapter

from synmt.arrays import Pair, Strings
from synmt.corpora.archives import Packed
from synmt.corpora.corpus import corpus_folders
from synmt.corpora.download import RemoteFile, local_path
from synmt.corpora.formats import one_line, read_fields, read_pairs
from synmt.errors import SynmtError, UsageError, did_you_mean
from synmt.recipe.yaml_text import load_yaml

Step = tuple[str | int | float, ...]
"""The name of a function of this file that cleans text, and its numbers."""


@dataclass(frozen=True, kw_only=True)
class PublicSource:
    """Parallel text of two or more languages; in addresses and names, `{}` stands for the language.

    archive: the address of a file, or those of the parts of a file that was split.
    inside: the way to the text in it: the name inside the archive, then the name inside the archive
        of that name; the first may be a pattern with `*`. Without names, the file itself is the
        text.
    form: one of those of `synmt.corpora.formats`.
    columns: for a table, the column of each language, counted from 0.
    owners: in place of an address, the folder of a corpus that owners give to those who accept a
        licence; the environment variable `SYNMT_<FOLDER>` can name it. ` ||| ` separates the
        columns of these tables.
    """

    archive: Strings = ()
    inside: Strings = ()
    form: str = "txt"
    columns: Mapping[str, int] = field(default_factory=dict)
    owners: str = ""

    def files(self, languages: Pair) -> list[RemoteFile]:
        """List the files to download for two languages."""
        addresses = [address.format(language) for language in languages for address in self.archive]
        return [FILES.get(address, RemoteFile(address)) for address in dict.fromkeys(addresses)]

    def pairs(self, languages: Pair) -> Iterator[Pair]:
        """Read the sentences of two languages from the files on this disk."""
        first, second = languages
        if self.columns:
            return read_fields(
                self._text(first),
                (self.columns[first], self.columns[second]),
                separator=" ||| " if self.owners else "\t",
            )
        return read_pairs((self._text(first), self._text(second)), self.form)

    def _text(self, language: str) -> Packed:
        if self.owners:
            path = self.found()
            assert path is not None, self
            return Packed((path,))
        return Packed(
            tuple(map(local_path, self.files((language, language)))),
            tuple(name.format(language) for name in self.inside),
        )

    def found(self) -> Path | None:
        """Find a file of owners on this disk; the upper folders of its path may be missing or be in
        another folder."""
        inner = Path(*self.inside)
        paths = self.owners.upper() / inner, inner, Path(*inner.parts[1:])
        places = (folder / path for folder in self.places() for path in paths)
        return next((place for place in places if place.is_file()), None)

    def places(self) -> list[Path]:
        """List the folders where files of owners are looked for, in order."""
        folder = os.environ.get(f"SYNMT_{self.owners.upper()}")
        return [*([Path(folder).expanduser()] if folder else []), *corpus_folders(self.owners)]


@dataclass(frozen=True, kw_only=True)
class SplitPlan:
    """How a split is put together: all sources one after the other, then the steps of cleaning.

    splits: the name of the split; with `every`, the names of two, and each `every`-th pair belongs
        to the second.
    clean: functions at the end of this file with their numbers.
    """

    splits: Strings
    sources: tuple[PublicSource, ...]
    clean: tuple[Step, ...] = ()
    every: int = 0

    def files(self, languages: Pair) -> list[RemoteFile]:
        """List the files to download for two languages."""
        return [file for source in self.sources for file in source.files(languages)]

    def pairs(self, languages: Pair) -> Iterator[tuple[str, Pair]]:
        """Read every pair, a line each, with the split that it belongs to."""
        pairs = chain.from_iterable(source.pairs(languages) for source in self.sources)
        for number, (first, second) in enumerate(cleaned(pairs, languages, self.clean), start=1):
            split = self.splits[1 if self.every and number % self.every == 0 else 0]
            # an entity such as `&#10;` is a line end once it is a character
            yield split, (one_line(first), one_line(second))


@dataclass(frozen=True, kw_only=True)
class KnownCorpus:
    """A corpus with a name: its files are `<split>.<language>`, plain or with `.gz`.

    languages: any two of them are a pair, in both directions.
    origin: what the splits are and where they come from, for messages.
    licence: of the text, as far as it is known.
    plans: how the splits are built; empty if synmt cannot build them, or generates them.
    valid, test: the file names of these splits; the other one is `train`.
    more_tests: test sets that a recipe gets only if it names them, as
        `corpus: {test: {hard: controlled}}` does.
    counts: the number of sentences of each split that the paper states.
    ask: what the user has to do to get the text, if the owners want that.
    """

    languages: Strings
    origin: str
    licence: str = ""
    plans: tuple[SplitPlan, ...] = ()
    valid: str = "valid"
    test: Strings = ("test",)
    more_tests: Strings = ()
    counts: Mapping[str, int] = field(default_factory=dict)
    ask: str = ""

    @property
    def splits(self) -> Strings:
        """Name the splits of a recipe that names only the corpus: train, valid and its test
        sets."""
        return ("train", self.valid, *self.test)

    @property
    def all_splits(self) -> Strings:
        """Name all splits."""
        return (*self.splits, *self.more_tests)


_DESCRIBED = load_yaml(Path(__file__).with_name("known.yaml"))

KNOWN_CORPORA = TypeAdapter(dict[str, KnownCorpus]).validate_python(_DESCRIBED["corpora"])
"""The corpora by name."""

FILES = {
    file.address: file
    for file in TypeAdapter(list[RemoteFile]).validate_python(_DESCRIBED["files"])
}
"""By address, the files of which more is known."""


def known_corpus(name: str, source: str, target: str) -> KnownCorpus:
    """Find a known corpus; raises UsageError if there is none, or none with these languages."""
    known = KNOWN_CORPORA.get(name)
    if known is None:
        raise UsageError(
            f"unknown corpus '{name}'",
            allowed=f"Known: {', '.join(sorted(KNOWN_CORPORA))}",
            do=did_you_mean(name, KNOWN_CORPORA)
            or "For your own files, set corpus.folder or corpus.train",
        )
    if source == target or not {source, target} <= set(known.languages):
        raise UsageError(
            f"the corpus {name} has no language pair {source}-{target}",
            allowed=f"Any two of {', '.join(known.languages)}",
        )
    return known


def split_of(name: str, split: str) -> str:
    """Choose the split of a known corpus: train, valid, one by its own name, or its only test set
    under a new name."""
    known = KNOWN_CORPORA[name]
    if split in known.all_splits:
        return split
    if split == "valid":
        return known.valid
    if len(known.test) != 1:
        raise UsageError(
            f"the corpus {name} has {len(known.test)} test sets, and '{split}' is none of them",
            where="corpus.test",
            allowed=f"Its splits are {', '.join(known.all_splits)}",
        )
    return known.test[0]


# the steps in which papers cleaned their text before anything else was done with it

_ENTITY = re.compile(r"&(?:#\d+|#x[0-9a-fA-F]+|\w+);")
_DATE = re.compile(r"(?<=.)［[０-９．]+］$")


def cleaned(pairs: Iterable[Pair], languages: Pair, steps: Sequence[Step]) -> Iterator[Pair]:
    """Apply steps, each by the name of its function and its numbers, to pairs of sentences in two
    languages.

    Raises SynmtError at once if a package that a step needs is not installed.
    """
    for name, *numbers in steps:
        pairs = _STEPS[str(name)](pairs, languages, *numbers)
    return iter(pairs)


def unescaped(pairs: Iterable[Pair], languages: Pair) -> Iterator[Pair]:
    """Replace entities such as `&amp;` by their characters."""
    return _of_both_sides(partial(_ENTITY.sub, lambda entity: unescape(entity[0])), pairs)


def straight_apostrophes(pairs: Iterable[Pair], languages: Pair) -> Iterator[Pair]:
    """Replace typographic apostrophes by straight ones, as fairseq's prepare-iwslt14.sh does in the
    test text."""
    return _of_both_sides(lambda text: text.replace("’", "'"), pairs)


def _of_both_sides(change: Callable[[str], str], pairs: Iterable[Pair]) -> Iterator[Pair]:
    return ((change(first), change(second)) for first, second in pairs)


def without_dates(pairs: Iterable[Pair], languages: Pair) -> Iterator[Pair]:
    """Remove the dates at the end of Japanese sentences of ASPEC, such as ［９．１２］.

    The organizers of WAT do so, too.
    """
    for first, second in pairs:
        if languages[0] == "ja":
            yield _DATE.sub("", first), second
        else:
            yield first, _DATE.sub("", second)


def first_pairs(pairs: Iterable[Pair], languages: Pair, count: int) -> Iterator[Pair]:
    """Keep the first pairs."""
    return islice(pairs, count)


def moses_lengths(
    pairs: Iterable[Pair], languages: Pair, most: int, ratio: float
) -> Iterator[Pair]:
    """Keep pairs by their length in words, as Moses' clean-corpus-n.perl does, and leave the text
    uncut.

    most: how many words, by Moses' tokenizer, a side has at most; the fewest is 1.
    ratio: how many times as many words one side has at most.
    """
    try:
        from sacremoses import MosesTokenizer
    except ImportError:
        raise SynmtError(
            "the words of this corpus are counted by sacremoses, which is not installed",
            do="`pip install 'synmt[tokenizers]'`",
        ) from None
    first, second = (MosesTokenizer(lang=language).tokenize for language in languages)

    def fits(pair: Pair) -> bool:
        fewer, more = sorted((len(first(pair[0])), len(second(pair[1]))))
        return fewer >= 1 and more <= min(most, ratio * fewer)

    return filter(fits, pairs)


_STEPS: Mapping[str, Callable[..., Iterator[Pair]]] = {
    step.__name__: step
    for step in (unescaped, straight_apostrophes, without_dates, first_pairs, moses_lengths)
}
