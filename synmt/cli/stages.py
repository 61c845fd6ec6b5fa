"""The stages before training, shown as they go: fetch, prepare, parse, annotate; each only where it is missing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing
from itertools import chain, groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

from synmt.cli import console

if TYPE_CHECKING:
    from synmt.corpora import Corpus
    from synmt.corpus import Side
    from synmt.encoding import Progress
    from synmt.experiment import Prepared
    from synmt.recipe import Recipe
    from synmt.syntax.parsers import StanzaParser


def prepare_for(recipe: Recipe, data: Path, *, source_trees: bool = False) -> Prepared:
    """Make ready whatever a recipe needs and is missing or out of date, and say which.

    data: where trees and prepared corpora lie.
    source_trees: whether the source is parsed even where no variant wants it.
    """
    from synmt.corpora import resolve_corpus
    from synmt.corpus import PreparedCorpus
    from synmt.corpus_table import COLUMNS, corpus_table
    from synmt.experiment import Prepared
    from synmt.needs import check_variants, remarks
    from synmt.preparing import is_complete, prepare, prepared_folder

    corpus = resolve_corpus(recipe.corpus, recipe.source, recipe.target)
    if recipe.tasks.parsing != "none":
        recipe, corpus = _with_parsing_task(recipe, corpus, data)
    folder = prepared_folder(data / "prepared", recipe, corpus)
    if is_complete(folder):
        console.remark(f"prepare: {folder} is there")
    else:
        _show(prepare(recipe, corpus, folder))
    trees: dict[Side, str] = {}
    parser = None
    for side, needs in check_variants(recipe).items():
        if needs.parses or (source_trees and side == "source"):
            trees[side], identity = _annotated(recipe, corpus, folder, data, side, needs.arcs)
            parser = identity if side == "source" else parser
    found = PreparedCorpus.open(folder)
    title = f"{corpus.name}, {corpus.source}-{corpus.target}: {folder}"
    console.table(title, COLUMNS, corpus_table(found, tuple(trees.values())))
    for text in remarks(recipe, found, trees):
        console.warn(text)
    return Prepared(corpus, folder, trees, parser)


def _annotated(
    recipe: Recipe, corpus: Corpus, folder: Path, data: Path, side: Side, arcs: tuple[str, ...]
) -> tuple[str, Mapping[str, Any] | None]:
    """Find or make the trees of one side; gives their name, and the identity of the parser if it was ours."""
    from synmt.annotating import annotation_name, describe_files
    from synmt.corpus import PreparedCorpus
    from synmt.needs import all_given_trees, make_parser, no_arcs

    texts = {"train": getattr(corpus.train, side), "valid": getattr(corpus.valid, side)}
    if given := all_given_trees(recipe, corpus, side):
        paths = {name: given[name] for name in texts}
        name = _annotate(folder, corpus, paths, describe_files(paths), side)
        if arcs and not PreparedCorpus.open(folder).annotations()[name]["arcs"]:
            raise no_arcs(arcs, f"some sentences of {', '.join(map(str, paths.values()))}")
        return name, None
    parser = make_parser(recipe, side, arcs=bool(arcs))
    identity = {key: value for key, value in parser.identity.items() if key != "arcs"}
    # trees with probabilities are the same trees: who only wants these takes them, too
    for has_arcs in [True] if arcs else [False, True]:
        name = annotation_name(side, _described(identity, has_arcs))
        if (folder / name / "annotation.json").is_file():
            console.remark(f"trees: {folder / name} is there")
            return name, identity
    paths = {name: _parse(recipe, corpus, text, parser, data, side) for name, text in texts.items()}
    return _annotate(folder, corpus, paths, _described(identity, bool(arcs)), side), identity


def _described(identity: Mapping[str, Any], arcs: bool) -> dict[str, Any]:
    # where the model files lie does not change the trees
    description = {key: value for key, value in identity.items() if key != "model"}
    return {**description, "arcs": True} if arcs else description


def _parse(recipe: Recipe, corpus: Corpus, text: Path, parser: StanzaParser, data: Path, side: Side) -> Path:
    from synmt.files import count_lines
    from synmt.needs import parser_recipe, trees_path
    from synmt.syntax.parsing import parse_file

    target = trees_path(data, corpus, text, parser)
    steps = parse_file(text, target, parser, workers=parser_recipe(recipe, side).workers or None)
    with closing(steps), console.progress(f"parse {text.name}", count_lines(text), "lines") as advance:
        for step in steps:
            if step.state in ("kept", "parsed"):
                advance(step.lines)
            else:
                how = "is there" if step.state == "unchanged" else f"{step.lines:,} lines in {step.seconds:,.0f} s"
                failures = f", {step.failures:,} failures (see {target}.failures.jsonl)" if step.failures else ""
                console.remark(f"parse: {target} {how}{failures}")
    return target


def _annotate(
    folder: Path, corpus: Corpus, trees: Mapping[str, Path], description: Mapping[str, Any], side: Side
) -> str:
    from synmt.annotating import annotate, annotation_name

    _show(annotate(folder, corpus, trees, parser=description, side=side))
    return annotation_name(side, description)


def _with_parsing_task(recipe: Recipe, corpus: Corpus, data: Path) -> tuple[Recipe, Corpus]:
    """Make the multi-task corpus; gives it, and the recipe to prepare it by."""
    from synmt.needs import given_trees, make_parser
    from synmt.tasks import with_bracketings, with_trees, without_filters

    if recipe.tasks.parsing == "bracketings":
        return without_filters(recipe), with_bracketings(recipe, corpus, data / "tasks")
    trees = given_trees(recipe, corpus.train, "source")
    if trees is None:
        trees = _parse(recipe, corpus, corpus.train.source, make_parser(recipe, "source"), data, "source")
    return without_filters(recipe), with_trees(recipe, corpus, trees, data / "tasks")


def _show(steps: Iterator[Progress]) -> None:
    """Run stages, with a bar for each."""
    for stage, records in groupby(steps, key=lambda step: step.stage):
        first, done = next(records), 0
        with console.progress(f"prepare: {stage}", first.total, "lines") as advance:
            for step in chain([first], records):
                advance(step.done - done)
                done = step.done
