"""Tables of induced trees, for a terminal and for a web page."""

from __future__ import annotations

from collections.abc import Iterator

from synmt.analysis.report import TextTable
from synmt.analysis.trees.results import TreeResults, TreeRow
from synmt.reporting.page import paragraph, table

_MOST_RELATIONS = 12
"""Number of relations in the terminal's table, the most frequent ones."""
_MOST_RULES = 24
"""Number of rules in the page's table, the most frequent ones in the gold trees."""


def results_as_text(results: TreeResults) -> Iterator[str | TextTable]:
    """Yield the accuracy of all trees, and the accuracy of the best ones by relation."""
    yield f"{results.system}: trees of the {results.side}; {results.gold}"
    yield f"{_counts(results)}; in percent, [95 %]\n"
    yield _accuracy_table(results)
    yield from ("", *_legend(results), "")
    relations = _relation_table(results)
    yield TextTable(relations.columns, relations.rows[:_MOST_RELATIONS])
    if len(relations.rows) > _MOST_RELATIONS:
        yield f"\nthe {_MOST_RELATIONS} most frequent of {len(relations.rows)} relations; all with --json"


def results_as_html(results: TreeResults) -> str:
    """Write the same tables as HTML, with every relation."""
    accuracy, relations = _accuracy_table(results), _relation_table(results)
    return (
        paragraph(f"{results.system}; compared with {results.gold}.")
        + table(accuracy.columns, accuracy.rows, caption=f"{_counts(results)}; in percent, with 95 % intervals")
        + "".join(paragraph(line, faint=True) for line in _legend(results))
        + table(relations.columns, relations.rows, caption="Directed attachment accuracy by relation, in percent")
        + _grammar_as_html(results)
    )


def _counts(results: TreeResults) -> str:
    return f"{results.words:,} words without punctuation in {results.sentences:,} sentences"


def _has_choice(results: TreeResults) -> bool:
    """Tell whether the best row was selected from several."""
    return len(results.rows) > 1 + len(results.baselines)


def _legend(results: TreeResults) -> Iterator[str]:
    yield "DA, UA: directed and undirected attachment accuracy"
    yield "top choice: words whose highest weight is on their parent"
    yield "left, right branching: the parent is always the next, the previous word"
    yield "words are surface tokens: a multi-word token counts once"
    if results.gold.parser:
        yield f"gold trees come from a parser, which makes errors: {results.gold.parser}"
    if _has_choice(results):
        yield "best: selected on these sentences; expect a lower accuracy on others"


def _accuracy_table(results: TreeResults) -> TextTable:
    best = results.best if _has_choice(results) else None
    rows = [_accuracy_cells(row, best=number == best) for number, row in enumerate(results.rows)]
    return TextTable(["trees", "DA", "95 % of DA", "UA", "95 % of UA", "top choice"], rows)


def _accuracy_cells(row: TreeRow, *, best: bool) -> list[str]:
    cells = [row.name + ", best" * best]
    for share in (row.attachment.da, row.attachment.ua):
        cells += [f"{100 * share.value:.1f}", f"[{100 * share.low:.1f}, {100 * share.high:.1f}]"]
    return [*cells, f"{100 * row.choices.da.value:.1f}" if row.choices else "-"]


def _relation_table(results: TreeResults) -> TextTable:
    compared = [results.rows[results.best], *results.baselines]
    by_relation = [row.attachment.by_relation() for row in compared]
    rows = [
        [name, f"{words:,}", *(f"{100 * relations[name][1]:.1f}" for relations in by_relation)]
        for name, (words, *_) in by_relation[0].items()
    ]
    return TextTable(["DA by relation", "words", *(row.name for row in compared)], rows)


def _grammar_as_html(results: TreeResults) -> str:
    """Write the table of the grammar; nothing where the gold trees have no tags."""
    rules = [rule for rule, _ in sorted(results.grammar.counts.items(), key=lambda one: (-one[1], one[0]))][
        :_MOST_RULES
    ]
    compared = [results.rows[results.best], *results.baselines]
    grammars = [results.grammar, *(row.grammar for row in compared)]
    columns = ["parent → child", "gold", *(row.name for row in compared)]
    rows = [[" → ".join(rule), *(f"{100 * one.share(rule):.1f}" for one in grammars)] for rule in rules]
    caption = "Parts of speech of children: share of the parent's children, in percent, the most frequent first"
    return table(columns, rows, caption=caption) if rows else ""
