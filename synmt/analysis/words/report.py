"""How often is a word translated correctly? Groups of words and n-grams as tables, JSON and parts of a page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from synmt.analysis.groups.report import with_legends
from synmt.analysis.groups.sentences import read_systems
from synmt.analysis.inputs import check_name, save_plot, scoring_options
from synmt.analysis.report import AnalysisReport, TextTable
from synmt.analysis.words.aligned import by_aligned_words
from synmt.analysis.words.alignments import find_alignments, rarely_aligned
from synmt.analysis.words.counts import Measure, WordGroups
from synmt.analysis.words.groups import by_frequency, by_trees, count_source_words, count_target_words
from synmt.analysis.words.labels import TREE_LABELS
from synmt.analysis.words.ngrams import LONGEST, NgramTable, tell_apart
from synmt.analysis.words.plot import draw_words
from synmt.analysis.words.rendering import accuracy_table, caption, figure_caption, legend, ngram_heading, ngram_table
from synmt.analysis.words.table import WordTable, tabulate_words
from synmt.analysis.words.texts import WordTexts
from synmt.arrays import SIDES, Side
from synmt.errors import UsageError, did_you_mean, listed
from synmt.evaluation.metrics import MetricOptions
from synmt.evaluation.outputs import the_test_set
from synmt.reporting import page as html

if TYPE_CHECKING:
    from synmt.analysis.options import WordOptions

FREQUENCY = "frequency"
KINDS = (FREQUENCY, *TREE_LABELS)
"""What words can be grouped by."""

ALL = "all"
ALIGNED = "source-"
"""Before the name of a tree's label: target words by the label of the source word that they are aligned with."""


def analyze_words(options: WordOptions) -> AnalysisReport:
    """Find how often systems translate the words of a group right, and the n-grams that tell them apart."""
    kinds = _check_options(options)
    systems = read_systems(options)
    scoring = scoring_options(systems[0].seeds[0], options.tokenize, options.lowercase)
    texts = WordTexts(systems, scoring)
    if options.ngrams and len(systems) < 2:
        raise UsageError("n-grams tell two systems apart, and there is one", where="--ngrams", do="Add `--baseline`")
    tables = _tabulate(options, texts, kinds) if kinds else []
    ngrams: list[NgramTable] = []
    if options.ngrams:
        lines = [
            (name, [one.lines for one in seeds]) for name, seeds in zip(texts.names, texts.hypotheses, strict=True)
        ]
        ngrams = tell_apart(lines, texts.reference.lines, top=options.top)
    report = WordReport(texts.names, texts.first.test, scoring, tables, ngrams)
    if options.plot:
        save_plot(options.plot, partial(draw_words, tables, texts.names))
    system = ", ".join(report.names[1:] or report.names)
    return AnalysisReport(system, report.to_json, report.to_text, report.to_html, tuple(texts.runs))


def _check_options(options: WordOptions) -> list[str]:
    """Find what to group words by, and raise UsageError for options that do not fit together."""
    if options.words is None and not options.ngrams:
        raise UsageError("neither words nor n-grams are chosen", do="Add `--words` or `--ngrams`")
    kinds = [one.strip() for one in options.words.split(",")] if options.words is not None else []
    names = (*KINDS, *(ALIGNED + name for name in TREE_LABELS), ALL)
    if wrong := [kind for kind in kinds if kind not in names]:
        allowed, do = f"Words are grouped by {', '.join(names)}", did_you_mean(wrong[0], names)
        raise UsageError(f"there are no groups of words by '{wrong[0]}'", where="--words", allowed=allowed, do=do)
    if options.side is not None:
        check_name(options.side, SIDES, "side")
    if options.plot:
        from synmt.reporting.figures import check_plot

        check_plot(options.plot)
        if not kinds:
            raise UsageError("n-grams have no figure", where="--plot", do="Add `--words`")
    kinds = list(dict.fromkeys(one for kind in kinds for one in (KINDS if kind == ALL else [kind])))
    if options.training_text and FREQUENCY not in kinds:
        raise UsageError("no group is made by frequency", where="--training-text", do="Add `--words frequency`")
    if options.alignments and not _needs_alignments(kinds, options.side):
        do = "Leave it out, or choose source words by `--side source`"
        raise UsageError("target words need no alignments with the source", where="--alignments", do=do)
    return kinds


def _needs_alignments(kinds: Sequence[str], side: Side | None) -> bool:
    """Tell whether source words are counted, or target words by the trees of the source."""
    # without a side, trees are those of the source, which every syntactic system parses
    of_source = {"source": KINDS, "target": (), None: tuple(TREE_LABELS)}[side]
    return any(kind in of_source or kind.startswith(ALIGNED) for kind in kinds)


def _tabulate(options: WordOptions, texts: WordTexts, kinds: Sequence[str]) -> list[WordTable]:
    """Make a table of each kind."""
    frequency_side: Side = options.side or "target"
    tree_side: Side = options.side or "source"
    own = [TREE_LABELS[kind] for kind in kinds if kind in TREE_LABELS]
    carried = [TREE_LABELS[kind.removeprefix(ALIGNED)] for kind in kinds if kind.startswith(ALIGNED)]
    pairs, aligned = np.zeros((0, 2), dtype=np.int64), ""
    if _needs_alignments(kinds, options.side):
        pairs, aligned = find_alignments(options, texts)
    groups: list[tuple[WordGroups, list[str]]] = []
    if FREQUENCY in kinds:
        groups.append((by_frequency(options, texts, frequency_side), [aligned] * (frequency_side == "source")))
    if own:
        found, trees = by_trees(options, texts, own, tree_side)
        groups += [(one, [aligned] * (tree_side == "source") + [trees]) for one in found]
    if carried:
        found, trees = by_trees(options, texts, carried, "source")
        groups += [(one, [aligned, trees]) for one in by_aligned_words(options, texts, found, pairs)]
    tables = []
    for one, remarks in groups:
        of_source = one.side == "source"
        counts = count_source_words(texts, pairs, one) if of_source else count_target_words(texts, one)
        rarely = rarely_aligned(one, pairs) if of_source else []
        tables.append(replace(tabulate_words(one, counts), remarks=(*remarks, *rarely)))
    return tables


@dataclass(frozen=True, eq=False)
class WordReport:
    """The tables of an analysis.

    names: of the systems, the baseline first.
    test: name of the test set; empty for files.
    scoring: how lines were tokenized.
    """

    names: list[str]
    test: str
    scoring: MetricOptions
    tables: list[WordTable]
    ngrams: list[NgramTable]

    @property
    def heading(self) -> str:
        """Title of all tables: systems and test set."""
        systems = self.names[1:] or self.names
        translate = "translates" if len(systems) == 1 else "translate"
        where = f" of {the_test_set(self.test)}" if self.test else ""
        compared = f", compared with {self.names[0]}" if len(self.names) > 1 else ""
        return f"How well {listed(systems)} {translate} words{where}{compared}"

    @property
    def tokenized(self) -> str:
        """How lines were tokenized."""
        how = "between spaces" if self.scoring.tokenize == "none" else f"tokenized as by BLEU ({self.scoring.tokenize})"
        return how + (", in lower case" if self.scoring.lowercase else "")

    def to_json(self) -> dict[str, Any]:
        """Return all numbers as plain values."""
        return {
            "systems": self.names,
            "test": self.test or None,
            "tokenize": self.scoring.tokenize,
            "lowercase": self.scoring.lowercase,
            "remarks": list(dict.fromkeys(one for table in self.tables for one in table.remarks)),
            "words": [table.to_json(self.names) for table in self.tables],
            "ngrams": [asdict(table) for table in self.ngrams],
        }

    def to_text(self) -> Iterator[str | TextTable]:
        """Yield the heading, the tables and the legend."""
        yield self.heading
        alone = len(self.names) == 1
        written = [
            (accuracy_table(table, self.names), list(self._legend(table, table.measures if alone else [table.shown])))
            for table in self.tables
        ]
        parts, shared = with_legends(written)
        for table, part in zip(self.tables, parts, strict=True):
            yield from (f"\n{caption(table, self.names)}", *part)
        if shared:
            yield from ("", *shared)
        for table in self.ngrams:
            yield f"\n{ngram_heading(table)}"
            yield ngram_table(table)
        if self.ngrams:
            yield f"\n{_NGRAM_LEGEND}"

    def to_html(self) -> list[html.Section]:
        """Make a section of each table with its figure, and one of the n-grams of each system."""
        return [*map(self._section, self.tables), *map(self._ngram_section, self.ngrams)]

    def _legend(self, table: WordTable, measures: Sequence[Measure]) -> Iterator[str]:
        yield from legend(table, self.names, tokenized=self.tokenized, measures=measures)
        yield from table.remarks

    def _section(self, table: WordTable) -> html.Section:
        title = f"Accuracy by {table.by}"
        # a single system has all measures in one table
        measures = table.measures[::-1] if len(self.names) > 1 else (table.shown,)
        body = html.paragraph(f"{self.heading}.")
        for number, measure in enumerate(measures):
            cells = accuracy_table(table, self.names, measure)
            body += html.table(cells.columns, cells.shown(), caption=caption(table, self.names, measure))
            if not number:
                body += html.figure(partial(draw_words, [table], self.names), caption=figure_caption(table, self.names))
        lines = self._legend(table, table.measures)
        return html.Section(title, body + "".join(html.paragraph(line, faint=True) for line in lines))

    def _ngram_section(self, table: NgramTable) -> html.Section:
        cells = ngram_table(table)
        ngrams = html.table(cells.columns, cells.shown(), caption=ngram_heading(table))
        body = html.paragraph(f"{self.heading}.") + ngrams + html.paragraph(_NGRAM_LEGEND, faint=True)
        return html.Section(f"n-grams of {table.system} and {table.baseline}", body)


_NGRAM_LEGEND = (
    f"n-grams of 1 to {LONGEST} words. Numbers: how often the n-grams of the translations are in the reference of "
    "their sentence (mean over seeds), and how often the references have them. Score: (a + 1) / (a + b + 2), where a "
    "and b are these numbers for the system and for the one it is compared with, as in compare-mt."
)
