"""The steps from text to prepared data: which results are there already, and what the others would take."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from synmt.arrays import SIDES, Side
from synmt.corpora.corpus import Corpus
from synmt.data.corpus import is_complete
from synmt.data.prepare import prepared_folder
from synmt.data.task_corpus import task_corpus, without_filters
from synmt.data.vocabulary import Vocabularies
from synmt.errors import SynmtError
from synmt.files.reading import count_lines
from synmt.parsing.official import check_language
from synmt.parsing.official import is_complete as is_downloaded
from synmt.parsing.parser import StanzaParser
from synmt.parsing.target import read_summary
from synmt.recipe.schema import Recipe
from synmt.training.plan.step import PlannedStep, TextSize, parsing_step
from synmt.training.plan.text import PlannedText
from synmt.training.trees.parse_source import find_parse_source, parser_with_trees
from synmt.training.trees.requirements import (
    TreeRequirements,
    all_given_trees,
    given_trees,
    make_parser,
    missing_parser,
    sides_with_trees,
    trees_path,
)
from synmt.words.casing import Truecaser
from synmt.words.corpus import find_words, make_tokenizers


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
    vocabularies: Vocabularies | None = None,
    truecasers: Mapping[Side, Truecaser] | None = None,
) -> PlannedData:
    """Plan what `prepare_data` does after the text is there; its arguments mean the same."""
    steps, text = _plan_words(recipe, text, data, truecasers)
    corpus, prepared_by = text.corpus, recipe
    if recipe.tasks.trees != "none":
        task, corpus = _plan_task(recipe, text, data)
        steps, prepared_by = [*steps, *task], without_filters(recipe)
    folder = prepared_folder(data / "prepared", prepared_by, corpus, vocabularies) if corpus else None
    complete = folder is not None and is_complete(folder)
    steps.append(PlannedStep(f"prepare {folder or 'vocabulary and subwords'}", "done" if complete else "to do"))
    for side in sides_with_trees(requirements, source_trees=source_trees):
        steps += _plan_trees(recipe, text, data, side, requirements[side], folder)
    # one parser can tokenize both sides and parse them
    once = {step.what: step for step in reversed(steps)}
    return PlannedData(list(once.values())[::-1], folder if complete else None)


def _plan_words(
    recipe: Recipe, text: PlannedText, data: Path, truecasers: Mapping[Side, Truecaser] | None
) -> tuple[list[PlannedStep], PlannedText]:
    """Plan to tokenize the text; as long as the words are not there, only the number of their lines is known."""
    if not any(recipe.text_of(side).changes for side in SIDES):
        return [], text
    what, raw = "tokenize the text", text.corpus
    stanza: list[Side] = [side for side in SIDES if recipe.text_of(side).tokenizer == "stanza"]
    try:
        downloads = [step for side in stanza if (step := _plan_parser(recipe, side))]
        words = find_words(raw, make_tokenizers(recipe, truecasers), data / "words") if raw and not downloads else None
    except SynmtError as error:
        return [PlannedStep(what, "missing", problem=error)], replace(text, corpus=None)
    if words:
        return [PlannedStep(f"{what}: {words.train.source.parent}", "done")], replace(text, corpus=words)
    files = {"train": raw.train, text.valid: raw.valid} if raw else {}
    counts = {**text.counts, **{split: count_lines(pair.source) for split, pair in files.items()}}
    lines = TextSize(counts.get("train"))
    return [*downloads, PlannedStep(what, "to do", str(lines))], replace(text, corpus=None, counts=counts)


def _plan_trees(
    recipe: Recipe, text: PlannedText, data: Path, side: Side, needs: TreeRequirements, folder: Path | None
) -> Iterator[PlannedStep]:
    """Plan the trees of one side: parse what is not parsed, and add it to the prepared corpus."""
    corpus, add, settings = text.corpus, f"add trees to the {side}", recipe.parser_of(side)
    named = settings.control == "gold" or settings.constituents == "given"
    given: bool = named
    try:
        given = named or bool(corpus and all_given_trees(recipe, corpus, side, needs))
        download = None if given else _plan_parser(recipe, side)
        source = None if download or not corpus else find_parse_source(recipe, corpus, side, needs)
    except SynmtError as error:
        yield PlannedStep(f"find the trees of the {side}", "missing", problem=error)
        return
    if source and folder and (name := source.annotation_in(folder)):
        yield PlannedStep(f"{add}: {folder / name}", "done")
        return
    if download:
        yield download
    if not given:
        parser = source.parser if source else None
        if parser and corpus:
            texts = [getattr(files, side) for files in (corpus.train, corpus.valid)]
            parser = parser_with_trees(parser, corpus, texts, data)
        yield from (_plan_parse(recipe, text, data, side, split, parser) for split in ("train", "valid"))
    yield PlannedStep(add, "to do")


def _plan_parser(recipe: Recipe, side: Side) -> PlannedStep | None:
    """Plan the download of an official parser; None if it is there. Raises SynmtError if the parser cannot be had."""
    settings, language = recipe.parser_of(side), recipe.language_of(side)
    if settings.model != "official" or is_downloaded(language, settings.package):
        make_parser(recipe, side)
        return None
    check_language(language)
    what = f"download the parser: Stanza's official model for '{language}', package {settings.package}"
    if problem := missing_parser(recipe, side):
        return PlannedStep(what, "missing", problem=problem)
    return PlannedStep(what, "to do", "size unknown", "the list of Stanza's models has no sizes")


def _plan_parse(
    recipe: Recipe, text: PlannedText, data: Path, side: Side, split: str, parser: StanzaParser | None
) -> PlannedStep:
    language = recipe.language_of(side)
    if text.corpus is None:
        name = text.valid if split == "valid" else split
        size = TextSize(text.counts.get(name))
        return parsing_step(f"parse {name}.{language}", size, parser, recipe.parser_of(side))
    path = getattr(text.corpus.splits()[split], side)
    target = trees_path(data, text.corpus, path, parser) if parser else None
    if target and read_summary(target):
        return PlannedStep(f"parse {path.name}: {target}", "done")
    return parsing_step(f"parse {path.name}", TextSize.of(path), parser, recipe.parser_of(side))


def _plan_task(recipe: Recipe, text: PlannedText, data: Path) -> tuple[list[PlannedStep], Corpus | None]:
    """Plan the corpus of the task, and name its files; None as long as they are not there."""
    write, corpus, steps = "write sentences with tasks", text.corpus, list[PlannedStep]()
    splits = ("train", "valid") if recipe.tasks.mixed_only else ("train",)
    try:
        given = [_bracketings(corpus)] if recipe.tasks.trees == "bracketings" else []
        for split in splits if recipe.tasks.trees == "dependencies" else ():
            trees = given_trees(recipe, corpus.splits()[split], "source") if corpus else None
            if trees is None and recipe.parser.control != "gold":
                more, trees = _plan_trees_of_task(recipe, text, data, split)
                steps += more
            given.append(trees)
    except SynmtError as error:
        return [PlannedStep("find the trees of the source", "missing", problem=error)], None
    found = [path for path in given if path and path.is_file()]
    made = None
    if corpus and len(found) == len(given):
        made = task_corpus(recipe, corpus, found[0], data / "tasks", *found[1:])
    if made is None or not made.train.source.is_file():
        return [*steps, PlannedStep(write, "to do")], None
    return [*steps, PlannedStep(f"{write}: {made.train.source.parent}", "done")], made


def _bracketings(corpus: Corpus | None) -> Path | None:
    return corpus.train.source_bracketings if corpus else None


def _plan_trees_of_task(
    recipe: Recipe, text: PlannedText, data: Path, split: str
) -> tuple[list[PlannedStep], Path | None]:
    """Plan the trees of the source of train or valid, and name their file."""
    download, corpus = _plan_parser(recipe, "source"), text.corpus
    parser = None if download else make_parser(recipe, "source")
    path = None
    if parser and corpus:
        source = corpus.splits()[split].source
        parser = parser_with_trees(parser, corpus, [source], data)
        path = trees_path(data, corpus, source, parser)
    parse = _plan_parse(recipe, text, data, "source", split, parser)
    return [*([download] if download else []), parse], path
