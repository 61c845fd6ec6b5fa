"""How often is a word translated correctly? The report of groups of words and of n-grams."""

from __future__ import annotations

from functools import partial

from synmt.analysis.answers import differences_in_words
from synmt.analysis.groups.results import draw_results, with_figures
from synmt.analysis.inputs import read_systems
from synmt.analysis.options import WordOptions
from synmt.analysis.words.accuracy import WordGroups, count_words, tabulate_words
from synmt.analysis.words.alignments import by_aligned_words, find_alignments
from synmt.analysis.words.grouping import TREE_LABELS, by_frequency, by_trees
from synmt.analysis.words.ngrams import ngram_tables
from synmt.analysis.words.texts import WordTexts
from synmt.arrays import Texts, int_pairs
from synmt.errors import UsageError, unknown_name
from synmt.evaluation.outputs import the_test_set
from synmt.reporting.figures import check_plot, save_figure
from synmt.reporting.values import Report, Table

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
    kinds = _read_kinds(options.words) if options.words is not None else []
    check_plot(options.plot)
    if options.plot and not kinds:
        raise UsageError("--plot does not apply to --ngrams", do="Add `--words`")
    systems = read_systems(options)
    texts = WordTexts(systems, systems[0].seeds[0].scoring.updated(options))
    if options.ngrams and len(systems) < 2:
        what = "--ngrams compares systems, but only one was given"
        raise UsageError(what, do="Add `--baseline`")
    tables = _tabulate(options, texts, kinds)
    parts, first = with_figures(tables), [of_kind[0] for of_kind in tables]
    if options.ngrams:
        lines = texts.by_system(translation.words.lines for translation in texts.translations)
        parts += ngram_tables(lines, texts.reference.lines, top=options.top)
    save_figure(partial(draw_results, first), options.plot)
    names, test = [system.name for system in systems], texts.first.test
    if first:
        parts.insert(0, differences_in_words(first, names[0]))
    return Report(
        title=f"Words of {', '.join(names)}" + (f" on {the_test_set(test)}" if test else ""),
        parts=parts,
        runs=texts.runs,
    )


def _read_kinds(text: str) -> list[str]:
    """Read what to group words by: names with commas, or `all`."""
    names = (*KINDS, *(ALIGNED + name for name in TREE_LABELS), ALL)
    kinds = []
    for kind in map(str.strip, text.split(",")):
        if kind not in names:
            raise unknown_name("kind", kind, names, where="--words")
        kinds += KINDS if kind == ALL else [kind]
    return list(dict.fromkeys(kinds))


def _tabulate(options: WordOptions, texts: WordTexts, kinds: Texts) -> list[list[Table]]:
    """Make the tables of each kind of groups, with remarks on alignments of the source and on
    trees."""
    # without a side, trees are those of the source, which every syntactic system parses
    side = options.side or "source"
    direct = [TREE_LABELS[kind] for kind in kinds if kind in TREE_LABELS]
    carried = [TREE_LABELS[kind.removeprefix(ALIGNED)] for kind in kinds if ALIGNED in kind]
    pairs, aligned = int_pairs([]), ""
    # without a side, frequencies are those of target words
    of_source = kinds if options.side else direct
    if carried or (of_source and side == "source"):
        pairs, aligned = find_alignments(options, texts)
    all_groups, trees = list[WordGroups](), list[str]()
    if FREQUENCY in kinds:
        all_groups.append(by_frequency(options, texts, options.side or "target"))
    if direct:
        groups, of_own = by_trees(options, texts, direct, side)
        all_groups += groups
        trees.append(of_own)
    if carried:
        groups, of_source = by_trees(options, texts, carried, "source")
        all_groups += by_aligned_words(options, texts, groups, pairs)
        trees.append(of_source)
    lower = ", in lower case" * texts.scoring.lowercase
    notes = [f"words: tokenized as by BLEU ({texts.scoring.tokenize}){lower}", aligned, *trees]
    return [
        tabulate_words(
            groups,
            count_words(texts, groups, pairs),
            notes=list(filter(None, [groups.about, *notes])),
        )
        for groups in all_groups
    ]
