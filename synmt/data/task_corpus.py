"""Multi-task data: each source once as a translation and once with its parse as the target (Currey & Heafield, 2019).

    <TR> A man sleeps . <TR>    Ein Mann schläft .
    <PA> A man sleeps . <PA>    (root (nsubj (det ) ) (punct ) )

The task tags come before and after the source, as in the re-implementation by Bugliarello & Okazaki (2020), which
parses into constituents; here, dependencies of the recipe's parser are linearised, or bracketings are read from a file.
Both tasks share all parameters. Validation and test sources are translated, so they have translation tags too.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TextIO

from synmt.corpora.corpus import Corpus, side_names
from synmt.data.batch import reading_of
from synmt.data.encoding import read_pairs
from synmt.data.filtering import KEPT, judge_pairs
from synmt.data.tasks import PARSING, TRANSLATION, tagged
from synmt.errors import SynmtError, UsageError
from synmt.files import count_lines, fingerprint, locked, read_lines, stored_sha256, write_folder_atomically
from synmt.recipe.corpus import SplitFiles
from synmt.recipe.data import FilterRecipe, ParserRecipe
from synmt.recipe.schema import Recipe
from synmt.syntax.conllu import read_parses
from synmt.syntax.trees import linearise

_FORMAT = 1


def without_filters(recipe: Recipe) -> Recipe:
    """Copy a recipe for preparing a multi-task corpus: its pairs are filtered already, and parses would not pass."""
    # not 0: the number is part of the names of prepared corpora
    limit = FilterRecipe(max_words=10**9, max_pieces=recipe.filters.max_pieces)
    return recipe.model_copy(update={"filters": limit})


def with_trees(recipe: Recipe, corpus: Corpus, trees: Path, root: Path) -> Corpus:
    """Make the multi-task corpus from trees of the training source, in a folder under `root`, unless it exists."""
    control = reading_of((), recipe.parser).control
    texts, again = (read_lines(corpus.train.source) for _ in range(2))
    parses = (control.apply(parse, line.encode()) for line, parse in zip(texts, read_parses(trees, again), strict=True))
    return _write_corpus(recipe, corpus, trees, map(linearise, parses), root)


def with_bracketings(recipe: Recipe, corpus: Corpus, root: Path) -> Corpus:
    """Make the multi-task corpus from bracketings, in a folder under `root`, unless it exists."""
    given = corpus.train.source_bracketings
    if given is None:
        raise UsageError(
            "the training text has no bracketings, but tasks.parsing needs them",
            where=str(corpus.train.source),
            do=f"Set corpus.train.source_bracketings, or put them next to the text as train.{corpus.source}.brackets",
        )
    lines, expected = count_lines(given), count_lines(corpus.train.source)
    if lines != expected:
        raise SynmtError(f"has {lines:,} lines, but the training text has {expected:,}", where=str(given))
    return _write_corpus(recipe, corpus, given, read_lines(given), root)


def task_corpus(recipe: Recipe, corpus: Corpus, given: Path, root: Path) -> Corpus:
    """Name the files of the multi-task corpus that is made from trees or bracketings, in a folder under `root`."""
    inputs = (corpus.train.source, corpus.train.target, corpus.valid.source, given)
    parser = recipe.parser if recipe.tasks.parsing == "dependencies" else ParserRecipe()
    settings = (recipe.filters.identity(), parser.control, parser.rewire, parser.seed)
    key = fingerprint(_FORMAT, *settings, *(stored_sha256(path) for path in inputs))
    folder = root / f"{corpus.name}-{key}"
    source, target = side_names("train", corpus.source, corpus.target)
    train = SplitFiles(source=folder / source, target=folder / target)
    valid = SplitFiles(source=folder / f"valid.{corpus.source}", target=corpus.valid.target)
    return replace(corpus, name=f"{corpus.name}-tasks", train=train, valid=valid, parts=())


def _write_corpus(recipe: Recipe, corpus: Corpus, given: Path, parses: Iterable[str], root: Path) -> Corpus:
    made = task_corpus(recipe, corpus, given, root)
    folder = made.train.source.parent
    if not folder.is_dir():
        with locked(root, "multi-task texts"), write_folder_atomically(folder) as unfinished:
            train = unfinished / made.train.source.name, unfinished / made.train.target.name
            _write_pairs(recipe, corpus, parses, train)
            with _open(unfinished / made.valid.source.name) as out:
                out.writelines(f"{tagged(line, TRANSLATION)}\n" for line in read_lines(corpus.valid.source))
    return made


def _write_pairs(recipe: Recipe, corpus: Corpus, parses: Iterable[str], paths: tuple[Path, Path]) -> None:
    """Write the translations, followed by the parses of the same sources, in constant memory."""
    judged = judge_pairs(read_pairs(corpus.train), recipe.filters, (corpus.source, corpus.target))
    codes = (code for chunk in judged for code in chunk.tolist())
    later = tuple(path.with_name(f"{path.name}.parsing") for path in paths)
    with ExitStack() as stack:
        source, target, parsing_source, parsing_target = (stack.enter_context(_open(path)) for path in paths + later)
        for (text, translation), parse, code in zip(read_pairs(corpus.train), parses, codes, strict=True):
            if code != KEPT:
                continue
            source.write(f"{tagged(text, TRANSLATION)}\n")
            target.write(f"{translation}\n")
            # a line that could not be parsed has no parse to learn
            if parse.strip():
                parsing_source.write(f"{tagged(text, PARSING)}\n")
                parsing_target.write(f"{parse}\n")
    if not later[0].stat().st_size:
        raise SynmtError("there are no parses to learn: all lines are empty or filtered", where="tasks.parsing")
    for path, rest in zip(paths, later, strict=True):
        with open(path, "ab") as out, open(rest, "rb") as stream:
            shutil.copyfileobj(stream, out)
        rest.unlink()


def _open(path: Path) -> TextIO:
    return open(path, "w", encoding="utf-8", newline="\n")
