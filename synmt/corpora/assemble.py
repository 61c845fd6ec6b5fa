"""Builds a known corpus from public files: one text per split and language, one sentence a line."""

from __future__ import annotations

import logging
import os
from collections import Counter
from collections.abc import Collection, Generator, Iterator
from contextlib import ExitStack
from itertools import chain
from pathlib import Path
from typing import IO

from synmt.corpora.cleaning import MosesLengths, Pair, moses_tokenizer
from synmt.corpora.corpus import in_any
from synmt.corpora.download import RemoteFile, alone, downloading, is_there, local_path
from synmt.corpora.formats import one_line
from synmt.corpora.known import KNOWN_CORPORA
from synmt.corpora.plan import KnownCorpus, Plan
from synmt.corpora.progress import Progress
from synmt.corpora.sources import FromOwners
from synmt.errors import SynmtError
from synmt.files.writing import write_atomically

_logger = logging.getLogger(__name__)

_PAIRS_PER_STEP = 20_000


def building_known(
    name: str, languages: Pair, folders: list[Path], splits: Collection[str]
) -> Generator[Progress, None, None]:
    """Build the files of some splits of a known corpus that none of the folders has; they get into the last folder.

    What is missing on this machine is downloaded first. Raises SynmtError, before anything is downloaded, if a text can
    only be provided by hand, and, without a network, one that lists every file with its address and its place.
    """
    if not missing_texts(name, languages, folders, splits):
        return
    with alone(folders[-1], f"builds the corpus {name}"):
        # another process may have built it in the meantime
        missing = missing_texts(name, languages, folders, splits)
        plans = _plans(name, missing)
        if missing:
            check_own_files(name, missing, folders)
            yield from _download(name, languages, plans, missing, folders)
        for plan in plans:
            rest = missing_texts(name, languages, folders, plan.splits)
            yield from _build(name, plan, languages, rest, folders[-1])


def files_of(name: str, languages: Pair, folders: list[Path], splits: Collection[str]) -> list[RemoteFile]:
    """List what must be on this machine for the files of some splits that none of the folders has, each file once."""
    return _remote_files(_plans(name, missing_texts(name, languages, folders, splits)), languages)


def _plans(name: str, missing: list[tuple[str, str]]) -> list[Plan]:
    return [plan for plan in KNOWN_CORPORA[name].plans if set(plan.splits) & {split for split, _ in missing}]


def _remote_files(plans: list[Plan], languages: Pair) -> list[RemoteFile]:
    return list(dict.fromkeys(file for plan in plans for source in plan.sources for file in source.files(languages)))


def missing_texts(name: str, languages: Pair, folders: list[Path], splits: Collection[str]) -> list[tuple[str, str]]:
    """List split and language of every file of some splits that no folder has."""
    wanted = (
        (split, language) for split in KNOWN_CORPORA[name].all_splits if split in splits for language in languages
    )
    return [file for file in wanted if in_any(folders, ".".join(file)) is None]


def check_own_files(name: str, missing: list[tuple[str, str]], folders: list[Path]) -> None:
    """Refuse a corpus if only the user can provide missing texts, or if a package that builds them is missing."""
    known = KNOWN_CORPORA[name]
    plans = _plans(name, missing)
    if not known.plans:
        raise SynmtError(
            f"files of the corpus {name} are missing: {_names(missing)}",
            allowed=f"They are {known.origin}",
            do=_with_own_files(known.ask, missing, folders),
        )
    licensed = [source for plan in plans for source in plan.sources if isinstance(source, FromOwners)]
    lacking = [source for source in licensed if source.found() is None]
    if lacking:
        folder = lacking[0].folder
        raise SynmtError(
            f"the corpus {name} is built from files that are not on this machine: "
            f"{', '.join(source.path for source in lacking)}",
            allowed=known.ask,
            do=_with_own_files(
                f"Put the folder {lacking[0].path.partition('/')[0]} into {_either(lacking[0].places())}, or set "
                f"SYNMT_{folder.upper()} to its path",
                missing,
                folders,
            ),
        )
    if any(isinstance(step, MosesLengths) for plan in plans for step in plan.steps):
        moses_tokenizer("en")


def _download(
    name: str, languages: Pair, plans: list[Plan], missing: list[tuple[str, str]], folders: list[Path]
) -> Generator[Progress, None, None]:
    files = _remote_files(plans, languages)
    try:
        yield from downloading(files, f"the corpus {name}")
    except SynmtError as error:
        if all(map(is_there, files)):
            raise
        raise error.with_(do=_with_own_files(error.do, missing, folders)) from None


def _with_own_files(do: str, missing: list[tuple[str, str]], folders: list[Path]) -> str:
    """Add to an advice that the files of the corpus can also be put into its folder."""
    also = "" if os.environ.get("SYNMT_DATA") else f" (or into {folders[-1].name}/ in a folder that SYNMT_DATA names)"
    own = f"put your own {_names(missing)}, plain or as `.gz`, into {_either(folders)}{also}"
    return f"{do}. Or {own}" if do else f"Or {own}"


def _names(missing: list[tuple[str, str]]) -> str:
    return ", ".join(map(".".join, missing))


def _either(folders: list[Path]) -> str:
    return " or ".join(map(str, folders))


def _build(
    name: str, plan: Plan, languages: Pair, missing: list[tuple[str, str]], folder: Path
) -> Generator[Progress, None, None]:
    """Write the missing files of a plan; they get their names when all of them are complete."""
    known, counts = KNOWN_CORPORA[name], Counter[str]()
    expected = sum(known.counts.get(split, 0) for split in plan.splits)
    with ExitStack() as stack:
        streams: dict[tuple[str, str], IO[str]] = {
            file: stack.enter_context(write_atomically(folder / ".".join(file))) for file in missing
        }
        for number, (split, pair) in enumerate(_routed(plan, languages)):
            counts[split] += 1
            for language, text in zip(languages, pair, strict=True):
                if stream := streams.get((split, language)):
                    stream.write(f"{text}\n")
            if number % _PAIRS_PER_STEP == 0:
                yield Progress(f"build {name}/{plan.splits[0]}", number, expected or None)
        if not all(counts[split] for split in plan.splits):
            raise SynmtError(
                f"the text of {name}/{' and '.join(plan.splits)} has no sentences",
                do="If its files are not the right ones, remove them: "
                + ", ".join(str(local_path(file)) for file in _remote_files([plan], languages)),
            )
    for split in plan.splits:
        _compare(name, known, split, counts[split])


def _routed(plan: Plan, languages: Pair) -> Iterator[tuple[str, Pair]]:
    """Yield every pair of a plan, a line each, with the split that it belongs to."""
    pairs: Iterator[Pair] = chain.from_iterable(source.pairs(languages) for source in plan.sources)
    for step in plan.steps:
        pairs = step(pairs, languages)
    for number, (first, second) in enumerate(pairs, start=1):
        # an entity such as `&#10;` is a line end once it is a character
        yield plan.splits[1 if plan.every and number % plan.every == 0 else 0], (one_line(first), one_line(second))


def _compare(name: str, known: KnownCorpus, split: str, count: int) -> None:
    """Say how a split differs in size from what its paper states."""
    stated = known.counts.get(split, count)
    if count == stated:
        return
    what = f"{name}/{split} has {count:,} sentence pairs, {known.paper} states {stated:,}"
    remark = known.remarks.get(split)
    if remark:
        _logger.info("%s: %s", what, remark)
    else:
        _logger.warning("%s", what)
