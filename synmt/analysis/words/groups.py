"""Groups of the words of a test set, by their frequency in the training text and by the trees of their side."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from synmt.analysis.groups.trees import parse_side
from synmt.analysis.inputs import find_parser, name_language, name_parser, parse_lines
from synmt.analysis.words.counts import WordCounts, WordGroups, count_groups, count_source, count_target
from synmt.analysis.words.frequency import count_file, count_prepared, prepared_text
from synmt.analysis.words.labels import TreeLabel, group_by_frequency, group_words, tree_labels
from synmt.analysis.words.matching import found_words, right_sources
from synmt.analysis.words.texts import WordTexts
from synmt.arrays import IntArray, Side
from synmt.errors import SynmtError, UsageError
from synmt.parsing.parser import StanzaParser
from synmt.run import Run
from synmt.syntax.conllu import read_parses

if TYPE_CHECKING:
    from synmt.analysis.options import WordOptions


_logger = logging.getLogger(__name__)


def count_target_words(texts: WordTexts, groups: WordGroups) -> list[list[WordCounts]]:
    """Count target words by group, for each system and seed: without groups of translated words, those found only."""
    if not groups.translated:
        return [[_count_found(texts, groups, one) for one in seeds] for seeds in texts.matches]
    return [
        [
            count_target((groups.words, own), matches, (texts.reference, hypothesis), len(groups.names))
            for own, matches, hypothesis in zip(*seeds, strict=True)
        ]
        for seeds in zip(groups.translated, texts.matches, texts.hypotheses, strict=True)
    ]


def _count_found(texts: WordTexts, groups: WordGroups, matches: IntArray) -> WordCounts:
    reference, names = texts.reference, len(groups.names)
    found = found_words(matches, len(reference))
    return WordCounts(
        count_groups(groups.words, reference, names), count_groups(groups.words, reference, names, only=found)
    )


def count_source_words(texts: WordTexts, pairs: IntArray, groups: WordGroups) -> list[list[WordCounts]]:
    """Count source words by group, for each system and seed.

    pairs: (A, 2) aligned words of source and references, numbered through the whole text.
    """
    source, reference = texts.source, texts.reference
    counts = []
    for seeds in texts.matches:
        flags = [right_sources(found_words(one, len(reference)), pairs, len(source)) for one in seeds]
        counts.append([count_source(groups.words, source, *both, len(groups.names)) for both in flags])
    return counts


def by_frequency(options: WordOptions, texts: WordTexts, side: Side) -> WordGroups:
    """Group the words of one side by how often the training text has them.

    Without a training text, the words of the test set are counted: the references or the source.
    """
    words = texts.reference if side == "target" else texts.source
    counts, name = _count_training_text(options, texts, side)
    if counts is None:
        counts, where = Counter(words), "the test set"
        test_set = "the references have" if side == "target" else "the source of the test set has"
        about = f"frequency: how often {test_set} the word; for that in the training text: --training-text FILE"
        if texts.runs:
            _logger.warning(
                "%s: the training text is not there, so words are grouped by how often %s them. Give the text with "
                "`--training-text FILE`",
                texts.runs[0],
                test_set,
            )
    else:
        where, about = "", f"frequency: how often the training text has the word ({name})"
    translated = texts.hypotheses if side == "target" else []
    return group_by_frequency(counts, words, translated, whose=side, where=where, about=about)


def _count_training_text(options: WordOptions, texts: WordTexts, side: Side) -> tuple[Counter[str] | None, str]:
    if options.training_text is not None:
        return count_file(options.training_text, texts.options), options.training_text.name
    for run in map(Run, texts.runs):
        if prepared := prepared_text(run):
            return count_prepared(run, prepared, side, texts.options), prepared.name
    return None, ""


def by_trees(
    options: WordOptions, texts: WordTexts, kinds: Sequence[TreeLabel], side: Side
) -> tuple[list[WordGroups], str]:
    """Group the words of one side by labels that trees give them; returns the groups, and a line about the trees."""
    find = _by_source_trees if side == "source" else _by_target_trees
    groups, trees = find(options, texts, kinds)
    return groups, f"trees: {trees}"


def _by_source_trees(
    options: WordOptions, texts: WordTexts, kinds: Sequence[TreeLabel]
) -> tuple[list[WordGroups], str]:
    lines = texts.first.as_read().source
    if options.parses:
        parses, trees = list(read_parses(options.parses, lines)), options.parses.name
    else:
        parses, trees = parse_side(options, _parsing_run(texts.runs), lines, side="source")
    labels = ((kind, tree_labels(kind, texts.source, lines, parses)) for kind in kinds)
    return [group_words(kind, found, [], whose="source") for kind, found in labels], trees


def _parsing_run(runs: Sequence[Path]) -> Run | None:
    """Choose the run whose parser is used: the first one that has recorded its parser, else the first one."""
    opened = [Run(run) for run in runs]
    return next((run for run in opened if run.info().get("parser")), opened[0] if opened else None)


def _by_target_trees(
    options: WordOptions, texts: WordTexts, kinds: Sequence[TreeLabel]
) -> tuple[list[WordGroups], str]:
    parser = _target_parser(options, _parsing_run(texts.runs))
    lines = texts.first.as_read().reference
    given = list(read_parses(options.parses, lines)) if options.parses else None
    of_references = given or parse_lines(parser, lines)
    of_translations = [
        [parse_lines(parser, seed.as_read().hypothesis) for seed in system.seeds] for system in texts.systems
    ]
    groups = []
    for kind in kinds:
        labels = [
            [
                tree_labels(kind, words, seed.as_read().hypothesis, parses)
                for words, seed, parses in zip(tokenized, system.seeds, some, strict=True)
            ]
            for tokenized, system, some in zip(texts.hypotheses, texts.systems, of_translations, strict=True)
        ]
        groups.append(
            group_words(kind, tree_labels(kind, texts.reference, lines, of_references), labels, whose="target")
        )
    trees = f"{options.parses.name} for the references, " if options.parses else ""
    return groups, trees + name_parser(parser)


def _target_parser(options: WordOptions, run: Run | None) -> StanzaParser:
    """Find the parser of the target: that of the run's recipe, or of the language in the name of the references."""
    try:
        if run:
            return find_parser(run.recipe(), "target", options.parser, to="parse")
        language = name_language(options.references)
        if language is None:
            raise UsageError(
                "the language of the target is unknown", do="End the name of the references in it: `test.de`"
            )
        return StanzaParser(language, model=options.parser or "auto", download=True)
    except SynmtError as error:
        raise error.with_(do=f"{error.do}, or choose `--words frequency`, which needs no trees") from None
