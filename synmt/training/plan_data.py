"""The steps from text to prepared data: which results are there already, and what the others would take."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from synmt.arrays import Side
from synmt.corpora.corpus import Corpus
from synmt.data.corpus import is_complete
from synmt.data.prepare import prepared_folder
from synmt.data.task_corpus import task_corpus, without_filters
from synmt.errors import SynmtError
from synmt.parsing.bulk import read_summary
from synmt.parsing.parser import StanzaParser
from synmt.recipe.schema import Recipe
from synmt.training.parse_source import find_parse_source, parser_with_trees
from synmt.training.plan_text import PlannedText
from synmt.training.planned import PlannedStep, TextSize, parsing_step
from synmt.training.tree_requirements import (
    TreeRequirements,
    given_trees,
    make_parser,
    parser_recipe,
    sides_with_trees,
    trees_path,
)


@dataclass(frozen=True)
class PlannedData:
    """The steps of preparation.

    folder: the prepared corpus, if it is complete.
    """

    steps: list[PlannedStep] = field(default_factory=list)
    folder: Path | None = None


def plan_data(
    recipe: Recipe,
    requirements: Mapping[Side, TreeRequirements],
    text: PlannedText,
    data: Path,
    *,
    source_trees: bool = False,
) -> PlannedData:
    """Plan what `prepare_data` does after the text is there; its arguments mean the same."""
    steps, corpus, prepared_by = list[PlannedStep](), text.corpus, recipe
    if recipe.tasks.parsing != "none":
        steps, corpus = _plan_task(recipe, text, data)
        prepared_by = without_filters(recipe)
    folder = prepared_folder(data / "prepared", prepared_by, corpus) if corpus else None
    complete = folder is not None and is_complete(folder)
    steps.append(PlannedStep(f"prepare {folder or 'vocabulary and subwords'}", "there" if complete else "to do"))
    for side in sides_with_trees(requirements, source_trees=source_trees):
        steps += _plan_trees(recipe, text, data, side, requirements[side], folder)
    return PlannedData(steps, folder if complete else None)


def _plan_trees(
    recipe: Recipe, text: PlannedText, data: Path, side: Side, needs: TreeRequirements, folder: Path | None
) -> Iterator[PlannedStep]:
    """Plan the trees of one side: parse what is not parsed, and add it to the prepared corpus."""
    corpus, add, parser = text.corpus, f"add trees to the {side}", None
    try:
        if corpus is not None and folder is not None:
            source = find_parse_source(recipe, corpus, side, needs)
            if name := source.annotation_in(folder):
                yield PlannedStep(f"{add}: {folder / name}", "there")
                return
            if source.parser is None:
                yield PlannedStep(add, "to do")
                return
            texts = [getattr(files, side) for files in (corpus.train, corpus.valid)]
            parser = parser_with_trees(source.parser, corpus, texts, data)
        elif parser_recipe(recipe, side).control != "gold":
            parser = make_parser(recipe, side, arcs=bool(needs.arcs))
    except SynmtError as error:
        yield PlannedStep(f"load the parser of the {side}", "missing", problem=error)
    if parser_recipe(recipe, side).control != "gold":
        yield from (_plan_parse(recipe, text, data, side, split, parser) for split in ("train", "valid"))
    yield PlannedStep(add, "to do")


def _plan_parse(
    recipe: Recipe, text: PlannedText, data: Path, side: Side, split: str, parser: StanzaParser | None
) -> PlannedStep:
    language = recipe.source if side == "source" else recipe.target
    if text.corpus is None:
        name = text.valid if split == "valid" else split
        size = TextSize(text.counts.get(name))
        return parsing_step(f"parse {name}.{language}", size, parser, parser_recipe(recipe, side))
    path = getattr(text.corpus.splits()[split], side)
    target = trees_path(data, text.corpus, path, parser) if parser else None
    if target and read_summary(target):
        return PlannedStep(f"parse {path.name}: {target}", "there")
    return parsing_step(f"parse {path.name}", TextSize.of(path), parser, parser_recipe(recipe, side))


def _plan_task(recipe: Recipe, text: PlannedText, data: Path) -> tuple[list[PlannedStep], Corpus | None]:
    """Plan the multi-task corpus; without the text or its trees, nobody knows its name yet."""
    write, corpus, parser = "write sentences with tasks", text.corpus, None
    if recipe.tasks.parsing == "bracketings":
        given = corpus.train.source_bracketings if corpus else None
    else:
        given = given_trees(recipe, corpus.train, "source") if corpus else None
    steps = list[PlannedStep]()
    if given is None and recipe.tasks.parsing == "dependencies":
        try:
            parser = make_parser(recipe, "source")
        except SynmtError as error:
            steps.append(PlannedStep("load the parser of the source", "missing", problem=error))
        if parser and corpus:
            parser = parser_with_trees(parser, corpus, [corpus.train.source], data)
            given = trees_path(data, corpus, corpus.train.source, parser)
        steps.append(_plan_parse(recipe, text, data, "source", "train", parser))
    if corpus is None or given is None or not given.is_file():
        return [*steps, PlannedStep(write, "to do")], None
    made = task_corpus(recipe, corpus, given, data / "tasks")
    there = made.train.source.is_file()
    return [*steps, PlannedStep(f"{write}: {made.train.source.parent}", "there" if there else "to do")], (
        made if there else None
    )
