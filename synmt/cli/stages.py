"""The stages before training, shown as they go: fetch, prepare, parse, annotate; each only where it is missing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from itertools import chain, groupby
from pathlib import Path
from typing import TYPE_CHECKING

from synmt.cli import console

if TYPE_CHECKING:
    from synmt.arrays import Side
    from synmt.data.corpora import Corpus
    from synmt.data.encoding import Progress
    from synmt.parsing.parser import StanzaParser
    from synmt.recipe.schema import Recipe
    from synmt.training.parse_source import ParseSource
    from synmt.training.pipeline import Prepared
    from synmt.training.tree_requirements import TreeRequirements


def prepare_for(recipe: Recipe, data: Path, *, source_trees: bool = False) -> Prepared:
    """Make ready whatever a recipe needs and is missing or out of date, and say which.

    data: where trees and prepared corpora lie.
    source_trees: whether the source is parsed even where no variant wants it.
    """
    from synmt.data.corpora import resolve_corpus
    from synmt.data.corpus import PreparedCorpus
    from synmt.data.prepare import check_lengths, is_complete, prepare, prepared_folder
    from synmt.data.summary import COLUMNS, corpus_table
    from synmt.errors import UsageError
    from synmt.training.parse_source import find_parse_source
    from synmt.training.pipeline import Prepared
    from synmt.training.tree_requirements import relation_warnings, tree_requirements

    if source_trees and recipe.tasks.parsing != "none":
        raise UsageError("--trees wants trees of a source text that has task tags in it", do="Leave out --trees")
    corpus = resolve_corpus(recipe.corpus, recipe.source, recipe.target)
    needed = tree_requirements(recipe).items()
    wanted: dict[Side, TreeRequirements] = {s: n for s, n in needed if n.parses or (source_trees and s == "source")}
    # what makes the trees is found before anything long begins
    origins: dict[Side, ParseSource] = {
        side: find_parse_source(recipe, corpus, side, needs) for side, needs in wanted.items()
    }
    made_by = recipe
    if recipe.tasks.parsing != "none":
        made_by, corpus = _with_parsing_task(recipe, corpus, data)
    folder = prepared_folder(data / "prepared", made_by, corpus)
    if is_complete(folder):
        # the test sets are no part of it, and may be new
        check_lengths(corpus.test)
        console.remark(f"prepare: {folder} is there")
    else:
        _show(prepare(made_by, corpus, folder))
    trees: dict[Side, str] = {
        side: _annotated(recipe, corpus, folder, data, origin) for side, origin in origins.items()
    }
    found = PreparedCorpus.open(folder)
    title = f"{corpus.name}, {corpus.source}-{corpus.target}: {folder}"
    console.table(title, COLUMNS, corpus_table(found, tuple(trees.values())))
    for text in relation_warnings(recipe, found, trees):
        console.warn(text)
    parser = origins["source"].identity if "source" in origins else None
    made: dict[Side, str] = {side: origin.name() for side, origin in origins.items()}
    return Prepared(corpus, folder, trees, made, parser)


def _annotated(recipe: Recipe, corpus: Corpus, folder: Path, data: Path, origin: ParseSource) -> str:
    """Make the trees of one side, or find them; gives the name of the annotation."""
    from synmt.data.annotate import annotate
    from synmt.data.corpus import PreparedCorpus
    from synmt.syntax.arcs import without_arcs

    if (name := _existing(folder, origin)) is not None:
        console.remark(f"trees: {folder / name} is there")
        return name
    paths, arcs = origin.given, origin.arcs
    if origin.parser is not None:
        texts = {"train": getattr(corpus.train, origin.side), "valid": getattr(corpus.valid, origin.side)}
        parser = _parser_of(origin.parser, corpus, list(texts.values()), data)
        paths = {split: _parse(recipe, corpus, text, parser, data, origin.side) for split, text in texts.items()}
        arcs = parser.arcs
    _show(annotate(folder, corpus, paths, parser=origin.description(arcs=arcs), side=origin.side, arcs=arcs))
    name = origin.name(arcs=arcs)
    # given trees may have been added for a recipe that wanted no probabilities
    if origin.arcs and not PreparedCorpus.open(folder).annotations()[name]["arcs"]:
        raise without_arcs("some tree", ", ".join(map(str, paths.values())))
    return name


def _existing(folder: Path, origin: ParseSource) -> str | None:
    """Find trees by our parser that are there; those with probabilities are the same trees, so they serve all."""
    if origin.parser is None:
        return None
    names = [origin.name(arcs=arcs) for arcs in ([True] if origin.arcs else [False, True])]
    return next((name for name in names if (folder / name / "annotation.json").is_file()), None)


def _parser_of(parser: StanzaParser, corpus: Corpus, texts: list[Path], data: Path) -> StanzaParser:
    """Give the parser, or the same with probabilities where its trees of these texts are there: they are the same."""
    from synmt.parsing.bulk import read_summary
    from synmt.training.tree_requirements import trees_path

    other = parser.with_arcs()
    return other if all(read_summary(trees_path(data, corpus, text, other)) for text in texts) else parser


def _parse(recipe: Recipe, corpus: Corpus, text: Path, parser: StanzaParser, data: Path, side: Side) -> Path:
    from synmt.files import count_lines
    from synmt.parsing.bulk import parse_file
    from synmt.training.tree_requirements import parser_recipe, trees_path

    target = trees_path(data, corpus, text, parser)
    steps = parse_file(text, target, parser, workers=parser_recipe(recipe, side).workers or None)
    with closing(steps), console.progress(f"parse {text.name}", count_lines(text), "lines") as advance:
        for step in steps:
            if step.state in ("kept", "parsed"):
                advance(step.lines)
            else:
                how = "is there" if step.state == "unchanged" else f"{step.lines:,} lines in {step.seconds:,.0f} s"
                failures = (
                    f", {step.failures:,} failure{'s' * (step.failures > 1)} (see {target}.failures.jsonl)"
                    if step.failures
                    else ""
                )
                console.remark(f"parse: {target} {how}{failures}")
    return target


def _with_parsing_task(recipe: Recipe, corpus: Corpus, data: Path) -> tuple[Recipe, Corpus]:
    """Make the multi-task corpus; gives it, and the recipe to prepare it by."""
    from synmt.data.prepare import check_lengths
    from synmt.data.tasks import with_bracketings, with_trees, without_filters
    from synmt.training.tree_requirements import given_trees, make_parser

    check_lengths(corpus.splits())
    if recipe.tasks.parsing == "bracketings":
        return without_filters(recipe), with_bracketings(recipe, corpus, data / "tasks")
    trees = given_trees(recipe, corpus.train, "source")
    if trees is None:
        parser = _parser_of(make_parser(recipe, "source"), corpus, [corpus.train.source], data)
        trees = _parse(recipe, corpus, corpus.train.source, parser, data, "source")
    return without_filters(recipe), with_trees(recipe, corpus, trees, data / "tasks")


def _show(steps: Iterator[Progress]) -> None:
    """Run stages, with a bar for each."""
    for stage, records in groupby(steps, key=lambda step: step.stage):
        first, done = next(records), 0
        with console.progress(f"prepare: {stage}", first.total, "lines") as advance:
            for step in chain([first], records):
                advance(step.done - done)
                done = step.done
