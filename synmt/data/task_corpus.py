"""Multi-task data: each source once as a translation and once with its parse as the target (Currey
& Heafield, 2019).

    <TR> A man sleeps . <TR>    Ein Mann schläft .
    <PA> A man sleeps . <PA>    (root (nsubj (det ) ) (punct ) )

The task tags come before and after the source, as in the re-implementation by Bugliarello & Okazaki
(2020), which parses into constituents; here, dependencies of the recipe's parser are linearised, or
bracketings are read from a file. Both tasks share all parameters. Validation and test sources are
translated, so they have translation tags too.

The mixed encoder has each pair twice, once with its source linearised, without tags:

    A man sleeps .                                         Ein Mann schläft .
    (root (nsubj (det A ) man ) sleeps (punct . ) )        Ein Mann schläft .

It translates plain text, so validation and test sources are plain. With `mixed_only` (parse2seq;
Currey & Heafield, 2018) all sources are linearised trees. The opening brackets are pieces of the
source's vocabulary.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TextIO

from synmt.corpora.corpus import Corpus, side_names
from synmt.data.corpus import PreparedCorpus
from synmt.data.filtering import KEPT, judge_pairs
from synmt.data.tasks import PARSING, TRANSLATION, tagged
from synmt.data.text_pairs import Pair, read_pairs
from synmt.errors import SynmtError, UsageError
from synmt.files.json_files import read_json
from synmt.files.reading import count_lines, fingerprint, read_lines, stored_sha256
from synmt.files.schemas import MixedFacts
from synmt.files.writing import locked, write_folder_atomically, write_json
from synmt.recipe.corpus import SplitFiles
from synmt.recipe.data import FilterRecipe, ParserRecipe
from synmt.recipe.schema import Recipe
from synmt.syntax.conllu import read_parses
from synmt.syntax.reading import reading_of
from synmt.syntax.trees import linearise, linearise_with_words

_FORMAT = 1
_FACTS = "mixed.json"

_TreeText = tuple[str, Iterable[str]]
"""A tree as text, and its opening brackets."""


def without_filters(recipe: Recipe) -> Recipe:
    """Copy a recipe for preparing a multi-task corpus: its pairs are filtered already, and parses
    would not pass."""
    # not 0: the number is part of the names of prepared corpora
    limit = FilterRecipe(max_words=10**9, max_pieces=recipe.filters.max_pieces)
    return recipe.model_copy(update={"filters": limit})


def with_trees(
    recipe: Recipe, corpus: Corpus, trees: Path, root: Path, valid_trees: Path | None = None
) -> Corpus:
    """Make the corpus of the task from trees of the training source, in a folder under `root`,
    unless it exists.

    valid_trees: those of the validation source, which `mixed_only` linearises too.
    """
    valid = () if valid_trees is None else _linearised(recipe, corpus.valid.source, valid_trees)
    made = task_corpus(recipe, corpus, trees, root, valid_trees)
    return _write_corpus(
        recipe, corpus, made, _linearised(recipe, corpus.train.source, trees), valid
    )


def _linearised(recipe: Recipe, text: Path, trees: Path) -> Iterator[_TreeText]:
    control, with_words = reading_of((), recipe.parser).control, recipe.tasks.mixed != "none"
    lines, again = (read_lines(text) for _ in range(2))
    for line, parse in zip(lines, read_parses(trees, again), strict=True):
        parse = control.apply(parse, line.encode())
        brackets = {f"({relation}" for relation in parse.relations} if with_words else ()
        yield linearise_with_words(parse).text if with_words else linearise(parse), brackets


def with_bracketings(recipe: Recipe, corpus: Corpus, root: Path) -> Corpus:
    """Make the multi-task corpus from bracketings, in a folder under `root`, unless it exists."""
    given = corpus.train.source_bracketings
    if given is None:
        raise UsageError(
            f"the training text has no bracketings, but tasks.{recipe.tasks.key} needs them",
            where=str(corpus.train.source),
            do="Set corpus.train.source_bracketings, or put them next to the text as "
            f"train.{corpus.source}.brackets",
        )
    lines, expected = count_lines(given), count_lines(corpus.train.source)
    if lines != expected:
        raise SynmtError(
            f"has {lines:,} lines, but the training text has {expected:,}", where=str(given)
        )
    trees = (
        (line, [token for token in line.split() if token[0] == "(" and token[1:]])
        for line in read_lines(given)
    )
    return _write_corpus(recipe, corpus, task_corpus(recipe, corpus, given, root), trees)


def task_corpus(
    recipe: Recipe, corpus: Corpus, given: Path, root: Path, valid_trees: Path | None = None
) -> Corpus:
    """Name the files of the multi-task corpus that is made from trees or bracketings, in a folder
    under `root`."""
    inputs = (
        corpus.train.source,
        corpus.train.target,
        corpus.valid.source,
        given,
        *filter(None, (valid_trees,)),
    )
    parser = recipe.parser if recipe.tasks.trees == "dependencies" else ParserRecipe()
    mixed = () if recipe.tasks.mixed == "none" else (recipe.tasks.mixed, recipe.tasks.mixed_only)
    settings = (recipe.filters.identity(), parser.control, parser.rewire, parser.seed, *mixed)
    key = fingerprint(_FORMAT, *settings, *(stored_sha256(path) for path in inputs))
    folder = root / f"{corpus.name}-{key}"
    source, target = side_names("train", corpus.source, corpus.target)
    train = SplitFiles(source=folder / source, target=folder / target)
    valid = SplitFiles(source=folder / f"valid.{corpus.source}", target=corpus.valid.target)
    if mixed and not recipe.tasks.mixed_only:
        valid = corpus.valid
    return replace(
        corpus,
        name=f"{corpus.name}-{'mixed' if mixed else 'tasks'}",
        train=train,
        valid=valid,
        parts=(),
    )


def bracket_units(recipe: Recipe, corpus: Corpus) -> tuple[str, ...]:
    """List the opening brackets in the corpus of a mixed encoder, such as `(nsubj`; other recipes
    have none."""
    return () if recipe.tasks.mixed == "none" else tuple(_facts(corpus)["units"])


def describe_dropped(recipe: Recipe, corpus: Corpus, prepared: Path) -> list[str]:
    """Describe how many linearised sources of a mixed encoder are too long to be learned; nothing
    if none is."""
    if recipe.tasks.mixed == "none":
        return []
    first, lines = _facts(corpus)["plain"], PreparedCorpus.open(prepared).split("train").lines
    linearised = count_lines(corpus.train.source) - first
    dropped = linearised - int((lines >= first).sum())
    said = (
        f"{dropped:,} of {linearised:,} linearised sources have more pieces than "
        "filters.max_pieces, and are left out"
    )
    return [f"{said}; their plain sources stay unless they are too long themselves"] * bool(dropped)


def _facts(corpus: Corpus) -> MixedFacts:
    return read_json(corpus.train.source.parent / _FACTS, MixedFacts)


def _write_corpus(
    recipe: Recipe,
    corpus: Corpus,
    made: Corpus,
    trees: Iterable[_TreeText],
    valid: Iterable[_TreeText] = (),
) -> Corpus:
    folder = made.train.source.parent
    if not folder.is_dir():
        with (
            locked(folder.parent, "multi-task texts"),
            write_folder_atomically(folder) as unfinished,
        ):
            train = unfinished / made.train.source.name, unfinished / made.train.target.name
            units, plain = _write_pairs(recipe, corpus, trees, train)
            if recipe.tasks.mixed != "none":
                write_json(unfinished / _FACTS, {"units": units, "plain": plain})
            if made.valid.source.parent == folder:
                with _open(unfinished / made.valid.source.name) as out:
                    out.writelines(f"{line}\n" for line in _valid_sources(recipe, corpus, valid))
    return made


def _valid_sources(recipe: Recipe, corpus: Corpus, trees: Iterable[_TreeText]) -> Iterator[str]:
    if not recipe.tasks.mixed_only:
        return (tagged(line, TRANSLATION) for line in read_lines(corpus.valid.source))
    return (
        tree or line for line, (tree, _) in zip(read_lines(corpus.valid.source), trees, strict=True)
    )


def _pairs_of(recipe: Recipe, pair: Pair, tree: str) -> tuple[Pair | None, Pair | None]:
    """Make the pair of a translation and the one with a tree; a line that could not be parsed has
    only the first."""
    text, translation = pair
    if recipe.tasks.parsing != "none":
        return (tagged(text, TRANSLATION), translation), (
            tagged(text, PARSING),
            tree,
        ) if tree.strip() else None
    twin = (tree, translation) if tree.strip() else None
    return (None if recipe.tasks.mixed_only and twin else pair), twin


def _write_pairs(
    recipe: Recipe, corpus: Corpus, trees: Iterable[_TreeText], paths: tuple[Path, Path]
) -> tuple[list[str], int]:
    """Write the translations, followed by the pairs with trees, in constant memory.

    Returns the opening brackets, and how many translations there are.
    """
    judged = judge_pairs(corpus.train, recipe.filters, (corpus.source, corpus.target))
    codes = (code for chunk in judged for code in chunk.tolist())
    later = tuple(path.with_name(f"{path.name}.trees") for path in paths)
    units, plain = set[str](), 0
    with ExitStack() as stack:
        streams = [stack.enter_context(_open(path)) for path in paths + later]
        for pair, (tree, brackets), code in zip(
            read_pairs(corpus.train), trees, codes, strict=True
        ):
            if code != KEPT:
                continue
            first, second = _pairs_of(recipe, pair, tree)
            units.update(brackets)
            plain += first is not None
            for made, outs in ((first, streams[:2]), (second, streams[2:])):
                for text, out in zip(made or (), outs, strict=False):
                    out.write(f"{text}\n")
    if not later[0].stat().st_size:
        raise SynmtError(
            "there are no parses to learn: all lines are empty or filtered",
            where=f"tasks.{recipe.tasks.key}",
        )
    for path, rest in zip(paths, later, strict=True):
        with open(path, "ab") as out, open(rest, "rb") as stream:
            shutil.copyfileobj(stream, out)
        rest.unlink()
    return sorted(units), plain


def _open(path: Path) -> TextIO:
    return open(path, "w", encoding="utf-8", newline="\n")
