"""Tables of words and n-grams as rows of text, and the lines that explain them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from synmt.analysis.groups.scores import FEW_SENTENCES, NAMED_GROUPS
from synmt.analysis.report import TextTable
from synmt.analysis.words.counts import Measure
from synmt.analysis.words.ngrams import Ngram, NgramTable
from synmt.analysis.words.table import WordAccuracy, WordRow, WordTable, resamples_for
from synmt.errors import counted, listed
from synmt.evaluation.bootstrap import SEED
from synmt.evaluation.seeds import FEW_SEEDS


def shown_rows(table: WordTable) -> list[WordRow]:
    """Leave out groups in few sentences, unless the groups are in order, or all are that rare."""
    frequent = [row for row in table.rows if not row.few]
    return table.rows if table.unit or not frequent else frequent


def accuracy_table(table: WordTable, names: Sequence[str], measure: Measure | None = None) -> TextTable:
    """Write a table: all measures of each system, with the differences in the last one, or one measure.

    measure: the only one.
    """
    by = f"{table.by} ({table.unit})" if table.unit else table.by
    rows = [*shown_rows(table), table.total]
    if len(names) == 1:
        cells = [[*_facts(row), *(_with_interval(row.systems[0][one]) for one in table.measures)] for row in rows]
        return TextTable([by, "words", "share", *table.measures], cells)
    chosen = measure or table.shown
    measures: Sequence[Measure] = (measure,) if measure else table.measures
    if len(names) == 2 and len(measures) == 1:
        columns = [by, "words", "share", *names, "difference", "95 % interval", "p (Holm)"]
        pairs = ((row, *(system[chosen] for system in row.systems)) for row in rows)
        return TextTable(columns, [[*_facts(row), _points(one), *_compared(other)] for row, one, other in pairs])
    columns = [by, "words", "share", "system", *measures, "difference", "95 % interval", "p (Holm)"]
    return TextTable(columns, [cells for row in rows for cells in _lines(row, names, measures)], shared=3)


def _lines(row: WordRow, names: Sequence[str], measures: Sequence[Measure]) -> Iterator[list[str]]:
    """Write one line for each system; the last measure is compared."""
    others, last = measures[:-1], measures[-1]
    for name, system in zip(names, row.systems, strict=True):
        yield [*_facts(row), name, *(_points(system[one]) for one in others), *_compared(system[last])]


def _facts(row: WordRow) -> list[str]:
    return [row.group + " *" * (row.few and row.words > 0), f"{row.words:,}", f"{row.share:.1%}"]


def _points(one: WordAccuracy) -> str:
    return "-" if one.value is None else f"{one.value:.1f}"


def _with_interval(one: WordAccuracy) -> str:
    return _points(one) + ("" if one.low is None else f" ({one.low:.1f} to {one.high:.1f})")


def _compared(one: WordAccuracy) -> list[str]:
    found = one.comparison
    if found is None:
        return [_points(one), "", "", ""]
    interval = f"{found.low:+.1f} to {found.high:+.1f}"
    return [_points(one), f"{found.difference:+.1f}", interval, f"{one.holm_p:.3f}"]


def caption(table: WordTable, names: Sequence[str], measure: Measure | None = None) -> str:
    """Say what a table has: its measures, and how many comparisons, if there are any.

    measure: as for `accuracy_table`.
    """
    shown: Sequence[Measure] = (measure,) if measure and len(names) > 1 else table.measures
    measures, last = listed(shown), shown[-1]
    title = f"{measures[0].upper()}{measures[1:]} in percent"
    if len(names) == 1:
        return f"{title}, with 95 % intervals"
    compared = f"; differences in {last}" * (len(shown) > 1)
    count = table.comparisons[last]
    return f"{title}{compared}" + (f"; p-values corrected for {counted(count, 'comparison')}" if count else "")


def figure_caption(table: WordTable, names: Sequence[str]) -> str:
    """Say what the panels of a figure have."""
    right = f"; on the right, differences from {names[0]}" if len(names) > 1 else ""
    return f"{table.shown[0].upper()}{table.shown[1:]} by {table.by}, with 95 % intervals{right}."


def legend(table: WordTable, names: Sequence[str], *, tokenized: str, measures: Sequence[Measure]) -> Iterator[str]:
    """Explain a table.

    tokenized: how lines are tokenized.
    measures: those with intervals.
    """
    yield table.about
    if table.side == "source":
        yield (
            "recall of source words: share of those whose aligned words of the reference are all in the translation; "
            "words without an alignment do not count"
        )
    else:
        recall = "recall: share of the reference's words that the translation has"
        others = "precision: share of the translated words that the reference has; ", "; F1: their harmonic mean"
        yield recall if table.measures == ("recall",) else recall.join(others)
    yield f"words: {tokenized}"
    seeded = any(len(one[table.shown].seeds) > 1 for one in table.total.systems)
    resampled = f"{resamples_for(table.comparisons[table.shown]):,} resamples"
    yield f"95 % intervals: {resampled} of the sentences{' and of the seeds' * seeded}, seed {SEED}"
    if seeded:
        yield f"values: means over the seeds; {FEW_SEEDS}"
    if len(names) > 1:
        yield (
            f"difference from {names[0]} in points; p: two-sided, paired bootstrap (Koehn, 2004), corrected for all "
            "comparisons of the table (Holm, 1979); intervals are not corrected"
        )
    hidden = [row.group for row in table.rows if row not in shown_rows(table)]
    if hidden:
        yield f"left out, in fewer than {FEW_SENTENCES} sentences: {listed(hidden, NAMED_GROUPS)}"
    if any(row.few and row.words for row in (*shown_rows(table), table.total)):
        yield f"*: in fewer than {FEW_SENTENCES} sentences, too few for an interval"
    shown = (system[one] for row in shown_rows(table) if not row.few for system in row.systems for one in measures)
    if any(one.low is None for one in shown):
        yield f"no interval: a system has words of the group in fewer than {FEW_SENTENCES} sentences"


def ngram_heading(table: NgramTable) -> str:
    """Say which n-grams a table has."""
    return f"n-grams that {table.system} gets right more or less often than {table.baseline}"


def ngram_table(table: NgramTable) -> TextTable:
    """Write the n-grams that a system gets right more often, and below them those less often."""
    sides = (("more often", table.more), ("less often", table.less))
    rows = [[how, *_ngram_cells(one)] for how, ngrams in sides for one in ngrams]
    return TextTable(["is right", "n-gram", "score", table.system, table.baseline, "references"], rows, shared=1)


def _ngram_cells(one: Ngram) -> list[str]:
    return [one.text, f"{one.score:.3f}", f"{one.system:g}", f"{one.baseline:g}", f"{one.reference:,}"]
