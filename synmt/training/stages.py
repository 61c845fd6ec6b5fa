"""The stages before training: fetch, prepare, parse, annotate. Each runs only if its result is missing or outdated."""

from __future__ import annotations

import logging
from collections.abc import Generator, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

from synmt.arrays import SIDES, Side
from synmt.corpora.progress import Progress
from synmt.corpora.resolve import Corpus, local_texts, resolving
from synmt.data.annotate import annotate
from synmt.data.corpus import PreparedCorpus, is_complete
from synmt.data.encoding import KEPT_FILE
from synmt.data.inputs import Inputs, hash_files
from synmt.data.prepare import check_lengths, prepare, prepared_folder
from synmt.data.task_corpus import describe_dropped, with_bracketings, with_trees, without_filters
from synmt.data.vocabulary import Vocabularies
from synmt.errors import SynmtError, all_in_one
from synmt.files.language import warn_of_file
from synmt.files.links import own_folder
from synmt.recipe.corpus import SplitFiles
from synmt.recipe.schema import Recipe
from synmt.syntax.arcs import without_arcs
from synmt.training.trees.label_warnings import relation_warnings
from synmt.training.trees.parse_source import ParseSource, check_source_trees, find_parse_source, parser_with_trees
from synmt.training.trees.parse_text import parse_text, read_parse_cost
from synmt.training.trees.requirements import (
    TreeRequirements,
    all_given_trees,
    fetch_parser,
    given_trees,
    make_parser,
    missing_parser,
    parser_section,
    sides_with_trees,
    trees_path,
)
from synmt.words.casing import Truecaser
from synmt.words.corpus import find_words, make_tokenizers, tokenize_corpus
from synmt.words.word_tokenizer import WordTokenizer

_logger = logging.getLogger(__name__)
_Result = TypeVar("_Result")
_ParseCosts = dict[Side, Mapping[str, Any]]
"""By side, lines, words and processor seconds of its training text."""


@dataclass(frozen=True)
class Prepared:
    """The data that training reads.

    corpus: the text that was prepared; the test sets are raw.
    folder: the prepared corpus.
    trees: for each side with trees, the name of their annotation.
    made_by: the part of the annotation's name that identifies the trees alone; it changes only if the trees do.
    parser: the identity of the parser of the source, which also parses new text.
    tokenizers: what tokenizes each side.
    raw: the corpus before it was tokenized, also if nothing was.
    parse_costs: what it took to parse the training text of each side, if synmt did it.
    inputs: the hashes of what all this was made from.
    """

    corpus: Corpus
    folder: Path
    trees: Mapping[Side, str] = field(default_factory=dict)
    made_by: Mapping[Side, str] = field(default_factory=dict)
    parser: Mapping[str, Any] | None = None
    tokenizers: Mapping[Side, WordTokenizer] = field(default_factory=dict)
    raw: Corpus | None = None
    parse_costs: _ParseCosts = field(default_factory=dict)
    inputs: Inputs = field(default_factory=dict)


def prepare_data(
    recipe: Recipe,
    requirements: Mapping[Side, TreeRequirements],
    data: Path,
    *,
    source_trees: bool = False,
    vocabularies: Vocabularies | None = None,
    truecasers: Mapping[Side, Truecaser] | None = None,
) -> Generator[Progress | Prepared, None, Prepared]:
    """Make all data of a recipe that are missing or outdated; yields the progress and, at the end, the result.

    data: the folder of trees and prepared corpora.
    source_trees: parse the source even if no variant reads its trees.
    vocabularies, truecasers: those of another run; without them, they are learned from the corpus.
    """
    if source_trees:
        check_source_trees(recipe)
    sides = sides_with_trees(requirements, source_trees=source_trees)
    try:
        raw = yield from find_text(recipe)
    except SynmtError as error:
        # offline, one message names all that has to be copied from elsewhere
        parsers: list[Side] = [side for side in SIDES if side in sides or recipe.text_of(side).tokenizer == "stanza"]
        raise all_in_one([error, *filter(None, (missing_parser(recipe, side) for side in parsers))]) from error
    # a missing parser or tree file is reported before any long work
    sources = yield from _find_sources(recipe, raw, {side: requirements[side] for side in sides})
    tokenizers = make_tokenizers(recipe, truecasers)
    if find_words(raw, tokenizers, data / "words") is None:
        check_lengths(raw.splits())
    corpus, tokenizers = yield from tokenize_corpus(raw, tokenizers, own_folder(data / "words"))
    prepared_by, identity = recipe, None
    costs: _ParseCosts = {}
    if recipe.tasks.trees != "none":
        corpus, identity, costs = yield from _with_task(recipe, requirements, corpus, data)
        prepared_by = without_filters(recipe)
    inputs = _inputs(recipe, raw, sources)
    folder = prepared_folder(data / "prepared", prepared_by, corpus, vocabularies)
    if is_complete(folder):
        # a prepared corpus does not cover the test sets, which may be new
        check_lengths(corpus.test)
        _logger.info("prepare: %s exists already", folder)
    else:
        _check_languages(raw, folder)
        yield from _labelled(prepare(prepared_by, corpus, folder, vocabularies))
    trees: dict[Side, str] = {}
    for side, source in sources.items():
        trees[side] = yield from _annotated(recipe, corpus, folder, data, source)
    made_by: dict[Side, str] = {side: source.trees for side, source in sources.items()}
    identity = sources["source"].identity if "source" in sources else identity
    costs |= _parse_costs(sources, trees, corpus, data)
    prepared = Prepared(corpus, folder, trees, made_by, identity, tokenizers, raw, costs, inputs)
    yield prepared
    _warn_of_losses(recipe, corpus, folder, trees)
    return prepared


def _warn_of_losses(recipe: Recipe, corpus: Corpus, folder: Path, trees: Mapping[Side, str]) -> None:
    """Warn of relations that a variant does not know, and of what filters have dropped."""
    for text in relation_warnings(recipe, PreparedCorpus.open(folder), trees):
        _logger.warning("%s", text)
    for text in describe_dropped(recipe, corpus, folder):
        _logger.warning("%s", text)


def _check_languages(corpus: Corpus, folder: Path) -> None:
    """Warn of texts that are not in their language, unless an interrupted preparation has done so."""
    if (folder / KEPT_FILE).exists():
        return
    languages = {"source": corpus.source, "target": corpus.target}
    for files in corpus.splits().values():
        for side, other in zip(SIDES, reversed(SIDES), strict=True):
            warn_of_file(getattr(files, side), languages[side], other=languages[other])


def _find_sources(
    recipe: Recipe, corpus: Corpus, requirements: Mapping[Side, TreeRequirements]
) -> Generator[Progress, None, dict[Side, ParseSource]]:
    """Find the trees or the parser of each side that needs trees; Stanza's missing models are downloaded."""
    sources: dict[Side, ParseSource] = {}
    for side, needs in requirements.items():
        if not all_given_trees(recipe, corpus, side, needs):
            yield from fetch_parser(recipe, side)
        sources[side] = find_parse_source(recipe, corpus, side, needs)
    for side in SIDES:
        if recipe.text_of(side).tokenizer == "stanza":
            yield from fetch_parser(recipe, side)
    return sources


def find_text(recipe: Recipe) -> Generator[Progress, None, Corpus]:
    """Find the files of a recipe's corpus; what is public and missing is downloaded and built."""
    return (yield from resolving(recipe.corpus, recipe.source, recipe.target))


def _annotated(
    recipe: Recipe, corpus: Corpus, folder: Path, data: Path, source: ParseSource
) -> Generator[Progress, None, str]:
    """Find or make the trees of one side; returns the name of the annotation."""
    if (name := source.annotation_in(folder)) is not None:
        _logger.info("trees: %s exists already", folder / name)
        return name
    paths, arcs = source.given, source.arcs
    if source.parser is not None:
        texts = {"train": getattr(corpus.train, source.side), "valid": getattr(corpus.valid, source.side)}
        parser = parser_with_trees(source.parser, corpus, list(texts.values()), data)
        paths = {}
        for split, text in texts.items():
            paths[split] = yield from parse_text(recipe, corpus, text, parser, data, source.side)
        arcs = parser.arcs
    description = source.description(arcs=arcs)
    options: dict[str, Any] = {"side": source.side, "arcs": arcs, "whole": source.whole}
    options["constituents"] = source.constituents
    yield from _labelled(annotate(folder, corpus, paths, parser=description, **options))
    name = source.name(arcs=arcs)
    # given trees may have been annotated for a recipe that needs no probabilities
    if source.arcs and not PreparedCorpus.open(folder).annotations()[name]["arcs"]:
        raise without_arcs("some tree", ", ".join(map(str, paths.values())))
    return name


def _inputs(recipe: Recipe, corpus: Corpus, sources: Mapping[Side, ParseSource]) -> Inputs:
    """Hash the texts of a recipe, the trees that come with them, and the parsers of the others."""
    trees = {path for source in sources.values() for path in source.given.values()}
    parsers = {side: source.parser for side, source in sources.items()}
    parses: list[Side] = [side for side in SIDES if recipe.text_of(side).tokenizer == "stanza"]
    if recipe.tasks.trees == "bracketings":
        trees |= {path for path in [corpus.train.source_bracketings] if path}
    elif recipe.tasks.trees == "dependencies":
        given = [given_trees(recipe, text, "source") for text in (corpus.train, corpus.valid)]
        trees |= {path for path in given if path}
        if not trees:
            parses.append("source")
    parsers |= {side: make_parser(recipe, side) for side in parses}
    texts = local_texts(recipe.corpus, recipe.source, recipe.target)
    read = {key: [name for name, path in files if name in SIDES or path in trees] for key, files in texts.items()}
    files = {parser_section(side): parser.identity["files"] for side in SIDES if (parser := parsers.get(side))}
    return hash_files(texts, read) | files


def _parse_costs(
    sources: Mapping[Side, ParseSource], annotations: Mapping[Side, str], corpus: Corpus, data: Path
) -> _ParseCosts:
    """Read what the trees of each side cost; the same text may also have been parsed with probabilities, or without."""
    costs: _ParseCosts = {}
    for side, source in sources.items():
        if source.parser is not None:
            with_arcs = annotations[side] == source.name(arcs=True)
            parser = source.parser.with_arcs() if with_arcs else source.parser
            costs |= _cost_of(trees_path(data, corpus, getattr(corpus.train, side), parser), side)
    return costs


def _with_task(
    recipe: Recipe, requirements: Mapping[Side, TreeRequirements], corpus: Corpus, data: Path
) -> Generator[Progress, None, tuple[Corpus, Mapping[str, Any] | None, _ParseCosts]]:
    """Make the corpus of a task; returns the parser of what is translated, if it is parsed, and what parsing took."""
    check_lengths(corpus.splits())
    if recipe.tasks.trees == "bracketings":
        return with_bracketings(recipe, corpus, own_folder(data / "tasks")), None, {}
    if not recipe.tasks.mixed_only:
        [trees] = yield from _trees_of(recipe, corpus, [corpus.train], data)
        return with_trees(recipe, corpus, trees, own_folder(data / "tasks")), None, _cost_of(trees, "source")
    if not all_given_trees(recipe, corpus, "source", requirements["source"]):
        yield from fetch_parser(recipe, "source")
    identity = find_parse_source(recipe, corpus, "source", requirements["source"]).identity
    train, valid = yield from _trees_of(recipe, corpus, [corpus.train, corpus.valid], data)
    return with_trees(recipe, corpus, train, own_folder(data / "tasks"), valid), identity, _cost_of(train, "source")


def _cost_of(trees: Path, side: Side) -> _ParseCosts:
    cost = read_parse_cost(trees)
    return {side: cost} if cost else {}


def _trees_of(
    recipe: Recipe, corpus: Corpus, texts: list[SplitFiles], data: Path
) -> Generator[Progress, None, list[Path]]:
    """Find the trees of the sources of some texts, or parse them."""
    paths: list[Path] = []
    for text in texts:
        trees = given_trees(recipe, text, "source")
        if trees is None:
            yield from fetch_parser(recipe, "source")
            parser = parser_with_trees(make_parser(recipe, "source"), corpus, [text.source], data)
            trees = yield from parse_text(recipe, corpus, text.source, parser, data, "source")
        paths.append(trees)
    return paths


def _labelled(steps: Iterator[Progress]) -> Iterator[Progress]:
    return (replace(step, stage=f"prepare: {step.stage}") for step in steps)
