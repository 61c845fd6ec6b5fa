"""The text of a known corpus: the files that the user has, and those that synmt builds in the
cache."""

from __future__ import annotations

from collections import Counter
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

from synmt.arrays import Pair, Strings
from synmt.corpora.corpus import corpus_folders, files_in, in_any
from synmt.corpora.download import RemoteFile
from synmt.corpora.formats import with_progress
from synmt.corpora.known import KnownCorpus, SplitPlan, cleaned, known_corpus, split_of
from synmt.errors import SynmtError
from synmt.files.reading import cache_folder, fingerprint, sha256
from synmt.files.writing import alone, write_atomically, write_folder_atomically
from synmt.recipe.corpus import ControlledRecipe, SplitFiles


@dataclass(frozen=True)
class KnownText:
    """Some splits of a known corpus in two languages.

    `downloads` raises SynmtError, before anything is downloaded, if only the user can provide a
    text.
    """

    name: str
    languages: Pair
    splits: Strings

    @property
    def known(self) -> KnownCorpus:
        """The description of the corpus; raises UsageError if it does not have these languages."""
        return known_corpus(self.name, *self.languages)

    @property
    def folder(self) -> Path:
        """The folder where files are built."""
        return cache_folder() / "corpora" / self.name

    def folders(self) -> list[Path]:
        """List the folders that may have files, in order."""
        return corpus_folders(self.name)

    def missing(self) -> list[str]:
        """Name the files that none of the folders has."""
        names = [
            f"{split}.{language}"
            for split in self.known.all_splits
            if split in self.splits
            for language in self.languages
        ]
        folders = self.folders()
        return [name for name in names if in_any(folders, name) is None]

    def is_done(self) -> bool:
        """Check whether all files are there."""
        return not self.missing()

    def downloads(self) -> list[RemoteFile]:
        """List the public files that missing ones are built from, each once."""
        plans = self._plans()
        lacking = [
            source
            for plan in plans
            for source in plan.sources
            if source.owners and source.found() is None
        ]
        if lacking or not plans:
            needed = ["/".join(source.inside) for source in lacking] or self.missing()
            folders = lacking[0].places() if lacking else self.folders()
            raise SynmtError(
                f"the corpus {self.name} needs files that are not on this machine: "
                f"{', '.join(needed)}",
                allowed=f"They are {self.known.origin}. {self.known.ask}",
                do=f"Put them into {' or '.join(map(str, folders))}",
            )
        for plan in plans:
            # a package that is missing is named before anything is downloaded
            cleaned((), self.languages, plan.clean)
        return list(dict.fromkeys(file for plan in plans for file in plan.files(self.languages)))

    def run(self) -> None:
        """Build the missing files from the downloaded ones."""
        with alone(self.folder):
            # another process may have built some in the meantime
            for plan in self._plans():
                self._build(plan)

    def files(self, split: str) -> SplitFiles:
        """Name the files of a split, which exist, and what belongs to them."""
        return files_in(self.folders(), split_of(self.name, split), *self.languages)

    def _plans(self) -> list[SplitPlan]:
        missing = {name.rpartition(".")[0] for name in self.missing()}
        return [plan for plan in self.known.plans if missing & set(plan.splits)]

    def _build(self, plan: SplitPlan) -> None:
        """Write the missing files of a plan; they get their names when all of them are complete."""
        counts, names = Counter[str](), replace(self, splits=plan.splits).missing()
        with ExitStack() as stack:
            streams = {
                name: stack.enter_context(write_atomically(self.folder / name)) for name in names
            }
            for split, pair in with_progress(
                plan.pairs(self.languages), f"build {self.name}/{plan.splits[0]}"
            ):
                counts[split] += 1
                for language, text in zip(self.languages, pair, strict=True):
                    if stream := streams.get(f"{split}.{language}"):
                        stream.write(f"{text}\n")
            if not all(counts[split] for split in plan.splits):
                raise SynmtError(
                    f"the text of {self.name}/{' and '.join(plan.splits)} has no sentences",
                    do="Remove the downloaded files if they are not the right ones",
                )


@dataclass(frozen=True)
class ControlledText(KnownText):
    """The controlled corpus, which is generated."""

    settings: ControlledRecipe

    @property
    def folder(self) -> Path:
        """The folder of the generated files; a changed generator gets a new one, and so do other
        settings."""
        package = Path(__file__).parents[1] / "controlled"
        changed = self.settings.model_dump(exclude_defaults=True)
        made_by = fingerprint(
            *map(sha256, sorted(package.glob("*.py"))),
            *(f"{name}={value}" for name, value in changed.items()),
        )
        return cache_folder() / "corpora" / f"controlled-{made_by}"

    def folders(self) -> list[Path]:
        """List the folders that may have files, in order."""
        return [*(super().folders() if self.settings == ControlledRecipe() else ()), self.folder]

    def downloads(self) -> list[RemoteFile]:
        """List no files."""
        return []

    def run(self) -> None:
        """Generate the corpus."""
        from synmt.controlled.corpus import generate, generate_hard, write_corpus

        with alone(self.folder):
            # another process may have generated it in the meantime
            if self.missing():
                with write_folder_atomically(self.folder) as unfinished:
                    texts = generate(settings=self.settings)
                    write_corpus(unfinished, texts | generate_hard(settings=self.settings))


def known_text(
    name: str, languages: Pair, splits: Strings, settings: ControlledRecipe
) -> KnownText:
    """Describe splits of a known corpus; raises UsageError if it does not have these languages."""
    known_corpus(name, *languages)
    if name == "controlled":
        return ControlledText(name, languages, splits, settings)
    return KnownText(name, languages, splits)
