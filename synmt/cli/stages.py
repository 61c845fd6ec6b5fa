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
    from synmt.encoding import Progress
    from synmt.experiment import Prepared
    from synmt.recipe import Recipe, SplitFiles
    from synmt.syntax.parsers import StanzaParser


def prepare_for(recipe: Recipe, data: Path, *, parses: bool) -> Prepared:
    """Make ready whatever a recipe needs and is missing or out of date, and say which.

    data: where trees and prepared corpora lie.
    parses: whether the source has to be parsed.
    """
    from synmt.corpora import resolve_corpus
    from synmt.corpus import PreparedCorpus
    from synmt.corpus_table import COLUMNS, corpus_table
    from synmt.experiment import Prepared
    from synmt.preparing import is_complete, prepare, prepared_folder

    corpus = resolve_corpus(recipe.corpus, recipe.source, recipe.target)
    folder = prepared_folder(data / "prepared", recipe, corpus)
    if is_complete(folder):
        console.remark(f"prepare: {folder} is there")
    else:
        _show(prepare(recipe, corpus, folder))
    trees, identity, parser_made = _trees(recipe, corpus, data) if parses else ({}, None, False)
    name = _annotate(folder, corpus, trees, identity) if identity is not None else None
    title = f"{corpus.name}, {corpus.source}-{corpus.target}: {folder}"
    console.table(title, COLUMNS, corpus_table(PreparedCorpus.open(folder), name))
    return Prepared(corpus, folder, name, identity if parser_made else None)


def _trees(recipe: Recipe, corpus: Corpus, data: Path) -> tuple[dict[str, Path], Mapping[str, Any], bool]:
    """Find or make the trees of train and valid; say what made them, and whether that was our parser."""
    from synmt.annotating import describe_files
    from synmt.experiment import all_given_trees, make_parser

    splits = {"train": corpus.train, "valid": corpus.valid}
    if given := all_given_trees(recipe, corpus):
        paths = {name: given[name] for name in splits}
        return paths, describe_files(paths), False
    parser = make_parser(recipe)
    return {name: _parse(recipe, corpus, files, parser, data) for name, files in splits.items()}, parser.identity, True


def _parse(recipe: Recipe, corpus: Corpus, files: SplitFiles, parser: StanzaParser, data: Path) -> Path:
    from synmt.experiment import trees_path
    from synmt.files import count_lines
    from synmt.syntax.parsing import parse_file

    target = trees_path(data, corpus, files, parser)
    steps = parse_file(files.source, target, parser, workers=recipe.parser.workers or None)
    with closing(steps), console.progress(f"parse {files.source.name}", count_lines(files.source), "lines") as advance:
        for step in steps:
            if step.state in ("kept", "parsed"):
                advance(step.lines)
            else:
                how = "is there" if step.state == "unchanged" else f"{step.lines:,} lines in {step.seconds:,.0f} s"
                failures = f", {step.failures:,} failures (see {target}.failures.jsonl)" if step.failures else ""
                console.remark(f"parse: {target} {how}{failures}")
    return target


def _annotate(folder: Path, corpus: Corpus, trees: Mapping[str, Path], made_by: Mapping[str, Any]) -> str:
    from synmt.annotating import annotate, annotation_name

    # where the model files lie does not change the trees
    description = {key: value for key, value in made_by.items() if key != "model"}
    _show(annotate(folder, corpus, trees, parser=description))
    return annotation_name("source", description)


def _show(steps: Iterator[Progress]) -> None:
    """Run stages, with a bar for each."""
    for stage, records in groupby(steps, key=lambda step: step.stage):
        first, done = next(records), 0
        with console.progress(f"prepare: {stage}", first.total, "lines") as advance:
            for step in chain([first], records):
                advance(step.done - done)
                done = step.done
