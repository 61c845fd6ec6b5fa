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

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryFile

from synmt.arrays import Strings
from synmt.corpora.corpus import Corpus, side_names
from synmt.data.filtering import KEPT, judge_pairs
from synmt.data.text_pairs import read_pairs
from synmt.errors import SynmtError, UsageError
from synmt.files.json_files import read_json
from synmt.files.reading import count_lines, fingerprint, read_lines, stored_sha256
from synmt.files.schemas import MixedFacts
from synmt.files.writing import (
    locked,
    write_atomically,
    write_folder_atomically,
    write_json,
    write_lines,
)
from synmt.recipe.corpus import SplitFiles
from synmt.recipe.data import FilterRecipe, ParserRecipe
from synmt.recipe.schema import Recipe
from synmt.syntax.conllu import read_unparsed
from synmt.syntax.reading import reading_of
from synmt.syntax.trees import linearise, linearise_with_words

TRANSLATION, PARSING = "<TR>", "<PA>"
"""The tags that tell a multi-task model whether to translate or to parse."""
_FORMAT = 1
_FACTS = "mixed.json"

_TreeText = tuple[str, Iterable[str]]
"""A tree as text, and its opening brackets."""


def task_tags(recipe: Recipe) -> Strings:
    """List the tags that the vocabulary has as pieces."""
    return () if recipe.tasks.parsing == "none" else (TRANSLATION, PARSING)


def tagged(text: str, tag: str) -> str:
    """Put a task tag before and after a source; an empty tag leaves it unchanged."""
    return f"{tag} {text} {tag}" if tag else text


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
    task_files = task_corpus(recipe, corpus, trees, root, valid_trees)
    return _write_corpus(
        recipe, corpus, task_files, _linearised(recipe, corpus.train.source, trees), valid
    )


def _linearised(recipe: Recipe, text: Path, trees: Path) -> Iterator[_TreeText]:
    control, with_words = reading_of((), recipe.parser).control, recipe.tasks.mixed != "none"
    for unread in read_unparsed(trees, read_lines(text)):
        parse = control.apply(unread.parse(where=str(trees)), unread.text.encode())
        tree = linearise_with_words(parse).text if with_words else linearise(parse)
        yield tree, {f"({relation}" for relation in parse.relations}


def with_bracketings(recipe: Recipe, corpus: Corpus, root: Path) -> Corpus:
    """Make the multi-task corpus from bracketings, in a folder under `root`, unless it exists."""
    bracketings = corpus.train.source_bracketings
    if bracketings is None:
        raise UsageError(
            f"the training text has no bracketings, but tasks.{recipe.tasks.key} needs them",
            where=corpus.train.source,
            do="Set corpus.train.source_bracketings, or put them next to the text as "
            f"train.{corpus.source}.brackets",
        )
    lines, expected = count_lines(bracketings), count_lines(corpus.train.source)
    if lines != expected:
        raise SynmtError(
            f"has {lines:,} lines, but the training text has {expected:,}", where=bracketings
        )
    trees = (
        (line, [token for token in line.split() if token[0] == "(" and token[1:]])
        for line in read_lines(bracketings)
    )
    return _write_corpus(recipe, corpus, task_corpus(recipe, corpus, bracketings, root), trees)


def task_corpus(
    recipe: Recipe, corpus: Corpus, trees: Path, root: Path, valid_trees: Path | None = None
) -> Corpus:
    """Name the files of the multi-task corpus that is made from trees or bracketings, in a folder
    under `root`."""
    inputs = [corpus.train.source, corpus.train.target, corpus.valid.source, trees]
    inputs += filter(None, [valid_trees])
    parser = recipe.parser if recipe.tasks.trees == "dependencies" else ParserRecipe()
    mixed = () if recipe.tasks.mixed == "none" else (recipe.tasks.mixed, recipe.tasks.mixed_only)
    settings = (recipe.filters.identity(), parser.control, parser.rewire, parser.seed, *mixed)
    key = fingerprint(_FORMAT, *settings, *(stored_sha256(path) for path in inputs))
    folder = root / f"{corpus.name}-{key}"
    source, target = side_names("train", corpus.source, corpus.target)
    valid = SplitFiles(source=folder / f"valid.{corpus.source}", target=corpus.valid.target)
    if mixed and not recipe.tasks.mixed_only:
        valid = corpus.valid
    return replace(
        corpus,
        name=f"{corpus.name}-{'mixed' if mixed else 'tasks'}",
        train=SplitFiles(source=folder / source, target=folder / target),
        valid=valid,
        parts=(),
    )


def bracket_units(recipe: Recipe, corpus: Corpus) -> Strings:
    """List the opening brackets in the corpus of a mixed encoder, such as `(nsubj`; other recipes
    have none."""
    if recipe.tasks.mixed == "none":
        return ()
    return tuple(read_json(corpus.train.source.parent / _FACTS, MixedFacts)["units"])


def _write_corpus(
    recipe: Recipe,
    corpus: Corpus,
    task_files: Corpus,
    trees: Iterable[_TreeText],
    valid: Iterable[_TreeText] = (),
) -> Corpus:
    folder = task_files.train.source.parent
    if folder.is_dir():
        return task_files
    with locked(folder.parent, "multi-task texts"), write_folder_atomically(folder) as unfinished:
        train = unfinished / task_files.train.source.name, unfinished / task_files.train.target.name
        units = _write_pairs(recipe, corpus, trees, train)
        if recipe.tasks.mixed != "none":
            write_json(unfinished / _FACTS, {"units": units})
        if task_files.valid.source.parent == folder:
            lines = read_lines(corpus.valid.source)
            if recipe.tasks.mixed_only:
                sources = (tree or line for line, (tree, _) in zip(lines, valid, strict=True))
            else:
                sources = (tagged(line, TRANSLATION) for line in lines)
            write_lines(unfinished / task_files.valid.source.name, sources)
    return task_files


def _write_pairs(
    recipe: Recipe, corpus: Corpus, trees: Iterable[_TreeText], paths: Sequence[Path]
) -> list[str]:
    """Write the translations, followed by the pairs with trees, in constant memory; a line that
    could not be parsed has no tree.

    Returns the opening brackets.
    """
    tasks, units, folder = recipe.tasks, set[str](), paths[0].parent
    codes = judge_pairs(
        corpus.train,
        recipe.filters,
        (corpus.source, corpus.target),
        lines=count_lines(corpus.train.source),
        where=folder,
    )
    with (
        write_atomically(paths[0]) as source,
        write_atomically(paths[1]) as target,
        TemporaryFile("w+", encoding="utf-8", newline="\n", dir=folder) as later,
    ):
        rows = zip(read_pairs(corpus.train), trees, codes.tolist(), strict=True)
        for (text, translation), (tree, brackets), code in rows:
            if code != KEPT:
                continue
            units.update(brackets)
            pair, twin = (text, translation), (tree, translation)
            if tasks.parsing != "none":
                pair, twin = (tagged(text, TRANSLATION), translation), (tagged(text, PARSING), tree)
            if tree.strip():
                later.write(f"{twin[0]}\n{twin[1]}\n")
            if not (tasks.mixed_only and tree.strip()):
                source.write(f"{pair[0]}\n")
                target.write(f"{pair[1]}\n")
        if not later.tell():
            raise SynmtError(
                "there are no parses to learn: all lines are empty or filtered",
                where=f"tasks.{tasks.key}",
            )
        later.seek(0)
        for number, line in enumerate(later):
            (target if number % 2 else source).write(line)
    return sorted(units)
