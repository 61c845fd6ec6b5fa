"""How often is a word translated correctly? The report of groups of words and of n-grams."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from synmt.analysis.groups.figure import draw_results, figure_caption
from synmt.analysis.groups.results import FEW_SENTENCES, NAMED_GROUPS, ResultTable, results_table
from synmt.analysis.inputs import check_name, save_plot, scoring_options
from synmt.analysis.options import WordOptions
from synmt.analysis.systems import read_systems
from synmt.analysis.words.accuracy import WordGroups, count_words, tabulate_words
from synmt.analysis.words.alignments import by_aligned_words, find_alignments
from synmt.analysis.words.grouping import TREE_LABELS, by_frequency, by_trees
from synmt.analysis.words.ngrams import ngram_tables
from synmt.analysis.words.texts import WordTexts
from synmt.arrays import SIDES, Side
from synmt.errors import UsageError, did_you_mean, listed
from synmt.evaluation.outputs import the_test_set
from synmt.reporting.figures import check_plot
from synmt.reporting.page import fragment
from synmt.reporting.values import Figure, Part, Report, TextBlock

FREQUENCY = "frequency"
KINDS = (FREQUENCY, *TREE_LABELS)
"""What words can be grouped by."""

ALL = "all"
ALIGNED = "source-"
"""Before the name of a tree's label: target words by the label of the source word that they are
aligned with."""


def analyze_words(options: WordOptions) -> Report:
    """Find how often systems translate the words of a group right, and the n-grams that tell them
    apart."""
    kinds = _check_options(options)
    systems = read_systems(options)
    scoring = scoring_options(systems[0].seeds[0], options.tokenize, options.lowercase)
    texts = WordTexts(systems, scoring)
    if options.ngrams and len(systems) < 2:
        what = "--ngrams compares systems, but only one was given"
        raise UsageError(what, do="Add `--baseline`")
    tables = _tabulate(options, texts, kinds)
    test, names = texts.first.test, texts.names
    where = f" of {the_test_set(test)}" if test else ""
    translate = "translate" if len(names) > 2 else "translates"
    heading = f"How well {listed(names[1:] or names)} {translate} words{where}"
    if len(names) > 1:
        heading += f", compared with {names[0]}"
    parts: list[Part] = [part for table in tables for part in _parts(table, heading)]
    if options.ngrams:
        lines = texts.by_system(one.words.lines for one in texts.translations)
        parts += ngram_tables(lines, texts.reference.lines, top=options.top, where=where)
    if options.plot:
        save_plot(options.plot, partial(draw_results, list(map(_shown, tables))))
    facts = {
        "systems": names,
        "test": test or None,
        "tokenize": scoring.tokenize,
        "lowercase": scoring.lowercase,
        "words": [table.as_json() for table in tables],
    }
    return Report(title=heading, parts=parts, facts=facts, system=texts.title, runs=texts.runs)


def _check_options(options: WordOptions) -> list[str]:
    """Find what to group words by, and raise UsageError for options that do not fit together."""
    if options.words is None and not options.ngrams:
        raise UsageError("neither words nor n-grams are chosen", do="Add `--words` or `--ngrams`")
    names = (*KINDS, *(ALIGNED + name for name in TREE_LABELS), ALL)
    kinds = []
    for kind in options.words.split(",") if options.words is not None else []:
        kind = kind.strip()
        if kind not in names:
            raise UsageError(
                f"there are no groups of words by '{kind}'",
                where="--words",
                allowed=f"Words are grouped by {', '.join(names)}",
                do=did_you_mean(kind, names),
            )
        kinds += KINDS if kind == ALL else [kind]
    if options.side is not None:
        check_name(options.side, SIDES, "side")
    if options.plot:
        check_plot(options.plot)
        if not kinds:
            raise UsageError("--plot does not apply to --ngrams", do="Add `--words`")
    if options.training_text and FREQUENCY not in kinds:
        raise UsageError(
            "no group is made by frequency", where="--training-text", do="Add `--words frequency`"
        )
    if options.alignments and not _needs_alignments(kinds, options.side):
        do = "Leave it out, or choose source words by `--side source`"
        raise UsageError(
            "target words need no alignments with the source", where="--alignments", do=do
        )
    return list(dict.fromkeys(kinds))


def _needs_alignments(kinds: Sequence[str], side: Side | None) -> bool:
    """Tell whether source words are counted, or target words by the trees of the source."""
    # without a side, trees are those of the source, which every syntactic system parses
    of_source = {"source": KINDS, "target": (), None: tuple(TREE_LABELS)}[side]
    return any(kind in of_source or kind.startswith(ALIGNED) for kind in kinds)


def _tabulate(options: WordOptions, texts: WordTexts, kinds: Sequence[str]) -> list[ResultTable]:
    """Make a table for each kind of groups, with remarks on alignments of the source and on
    trees."""
    pairs, aligned = np.zeros((0, 2), dtype=np.int64), ""
    if _needs_alignments(kinds, options.side):
        pairs, aligned = find_alignments(options, texts)
    found = list[tuple[WordGroups, list[str]]]()
    if FREQUENCY in kinds:
        side = options.side or "target"
        found.append((by_frequency(options, texts, side), [aligned] * (side == "source")))
    if own := [TREE_LABELS[kind] for kind in kinds if kind in TREE_LABELS]:
        side = options.side or "source"
        groups, trees = by_trees(options, texts, own, side)
        found += [(one, [aligned] * (side == "source") + [trees]) for one in groups]
    carried = [kind.removeprefix(ALIGNED) for kind in kinds if kind.startswith(ALIGNED)]
    if carried:
        labels = [TREE_LABELS[kind] for kind in carried]
        groups, trees = by_trees(options, texts, labels, "source")
        groups = by_aligned_words(options, texts, groups, pairs)
        found += [(one, [aligned, trees]) for one in groups]
    tokenize, lower = texts.scoring.tokenize, ", in lower case" * texts.scoring.lowercase
    cut = "between spaces" if tokenize == "none" else f"tokenized as by BLEU ({tokenize})"
    return [
        tabulate_words(
            groups,
            count_words(texts, groups, pairs),
            notes=[groups.about, f"words: {cut}{lower}", *remarks],
        )
        for groups, remarks in found
    ]


def _shown(table: ResultTable) -> ResultTable:
    """Leave out groups in few sentences, unless the groups are in order, or all are that rare."""
    frequent = [row for row in table.rows if not row.few]
    if table.unit or not frequent:
        return table
    hidden = [row.group for row in table.rows if row.few]
    notes = [
        f"left out, in fewer than {FEW_SENTENCES} sentences: {listed(hidden, NAMED_GROUPS)}"
    ] * bool(hidden)
    return replace(table, rows=frequent, notes=[*table.notes, *notes])


def _parts(whole: ResultTable, heading: str) -> list[Part]:
    """Make the table and the figure; a page has the differences by all measures."""
    table, title = _shown(whole), f"Accuracy by {whole.by}"
    others = [
        results_table(replace(table, measures=[one]), f"{title}: {one.title}")
        for one in table.measures[-2::-1]
        if table.compared
    ]
    if any(
        one.low is None and not row.few
        for name in table.names
        for _, row, one in table.results(name)
    ):
        note = (
            f"no interval: a system has words of the group in fewer than {FEW_SENTENCES} sentences"
        )
        table = replace(table, notes=[*table.notes, note])
    caption = f"{heading}. {figure_caption(table)}"
    figure = Figure(draw=partial(draw_results, [table]), caption=caption)
    return [results_table(table, title), figure, *[TextBlock(html=fragment(others))] * bool(others)]
