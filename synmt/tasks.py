"""Multi-task data: each source once as a translation and once with its parse as the target (Currey & Heafield, 2019).

    <TR> A man sleeps . <TR>    Ein Mann schläft .
    <PA> A man sleeps . <PA>    (root (nsubj (det ) ) (punct ) )

The task tags stand before and after the source, as in the re-implementation by Bugliarello & Okazaki (2020), which
parses into constituents; here the dependencies of the recipe's parser are linearised, or bracketings are given as text.
Both tasks share everything. Validation and test sources are translated, so they are between translation tags too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import chain, compress
from pathlib import Path

from synmt.batch import reading_of
from synmt.corpora import Corpus
from synmt.encoding import read_pairs
from synmt.errors import SynmtError, UsageError
from synmt.files import count_lines, fingerprint, read_lines, sha256, write_folder_atomically
from synmt.filtering import KEPT, judge_pairs
from synmt.recipe import Recipe
from synmt.recipe_data import FilterRecipe, SplitFiles
from synmt.syntax.conllu import read_parses
from synmt.syntax.trees import linearise

TRANSLATION, PARSING = "<TR>", "<PA>"

_FORMAT = 1


def task_tags(recipe: Recipe) -> tuple[str, ...]:
    """Give the tags that are units of the vocabulary."""
    return () if recipe.tasks.parsing == "none" else (TRANSLATION, PARSING)


def tagged(text: str, tag: str) -> str:
    """Put a task tag before and after a source; an empty tag leaves it as it is."""
    return f"{tag} {text} {tag}" if tag else text


def without_filters(recipe: Recipe) -> Recipe:
    """Give the recipe to prepare a multi-task corpus by: its pairs are filtered, and a parse is no translation."""
    limit = FilterRecipe(max_words=10**9, max_pieces=recipe.filters.max_pieces)
    return recipe.model_copy(update={"filters": limit})


def with_trees(recipe: Recipe, corpus: Corpus, trees: Path, root: Path) -> Corpus:
    """Make the multi-task corpus from trees of the training source, in a folder below `root`; once."""
    control = reading_of((), recipe.parser).control
    lines = list(read_lines(corpus.train.source))
    parses = (control.apply(parse, line.encode()) for line, parse in zip(lines, read_parses(trees, lines), strict=True))
    return _made(recipe, corpus, trees, map(linearise, parses), root)


def with_bracketings(recipe: Recipe, corpus: Corpus, root: Path) -> Corpus:
    """Make the multi-task corpus from given bracketings, in a folder below `root`; once."""
    given = corpus.train.source_bracketings
    if given is None:
        raise UsageError(
            "there are no bracketings beside the training text, but tasks.parsing asks for them",
            where=str(corpus.train.source),
            do=f"Name them (corpus.train.source_bracketings), or put them beside it as train.{corpus.source}.brackets",
        )
    lines, wanted = count_lines(given), count_lines(corpus.train.source)
    if lines != wanted:
        raise SynmtError(f"has {lines:,} lines, but the training text has {wanted:,}", where=str(given))
    return _made(recipe, corpus, given, read_lines(given), root)


def _made(recipe: Recipe, corpus: Corpus, given: Path, parses: Iterable[str], root: Path) -> Corpus:
    inputs = (corpus.train.source, corpus.train.target, corpus.valid.source, given)
    settings = (recipe.filters.model_dump_json(), recipe.parser.control, recipe.parser.rewire, recipe.parser.seed)
    key = fingerprint(_FORMAT, *settings, *(sha256(path) for path in inputs))
    folder = root / f"{corpus.name}-{key}"
    names = {"train.source": corpus.source, "train.target": corpus.target, "valid.source": corpus.source}
    paths = {split: folder / f"{split.split('.')[0]}.{language}" for split, language in names.items()}
    if not folder.is_dir():
        root.mkdir(parents=True, exist_ok=True)
        with write_folder_atomically(folder) as unfinished:
            texts = dict(zip(paths, _texts(recipe, corpus, parses), strict=True))
            for split, lines in texts.items():
                _write(unfinished / paths[split].name, lines)
    train = SplitFiles(source=paths["train.source"], target=paths["train.target"])
    valid = SplitFiles(source=paths["valid.source"], target=corpus.valid.target)
    return replace(corpus, name=f"{corpus.name}-tasks", train=train, valid=valid)


def _texts(recipe: Recipe, corpus: Corpus, parses: Iterable[str]) -> tuple[Iterable[str], Iterable[str], Iterable[str]]:
    """Give the training source, the training target, and the validation source."""
    codes = judge_pairs(read_pairs(corpus.train), recipe.filters, (corpus.source, corpus.target))
    good = [code == KEPT for chunk in codes for code in chunk.tolist()]
    linearised = list(compress(parses, good))
    source = list(compress(read_lines(corpus.train.source), good))
    # a line that no parser could read has no parse to learn
    parsed = [bool(parse.strip()) for parse in linearised]
    if good.count(True) and not any(parsed):
        raise SynmtError("there is no parse to learn: every line is empty", where="tasks.parsing")
    return (
        chain(_all_tagged(source, TRANSLATION), _all_tagged(compress(source, parsed), PARSING)),
        chain(compress(read_lines(corpus.train.target), good), compress(linearised, parsed)),
        _all_tagged(read_lines(corpus.valid.source), TRANSLATION),
    )


def _all_tagged(lines: Iterable[str], tag: str) -> Iterator[str]:
    return (tagged(line, tag) for line in lines)


def _write(path: Path, lines: Iterable[str]) -> None:
    with open(path, "w", encoding="utf-8", newline="\n") as stream:
        stream.writelines(f"{line}\n" for line in lines)
