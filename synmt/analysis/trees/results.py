"""What is shown of a model's trees: how well those of each source agree with gold, and what chains reach."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from synmt.analysis.trees.attachment import Attachment, branchings, compare
from synmt.analysis.trees.induced import ModelTrees, Texts, TreeSource
from synmt.arrays import Side
from synmt.errors import SynmtError


@dataclass(frozen=True)
class Gold:
    """Whose the trees are that those of the model are compared with.

    test: the test set that they are of; empty where a treebank brings its own sentences.
    treebank: the file of given trees; empty where a parser made them.
    parser: what made them otherwise.
    read: how the model itself reads them; empty where it does not.
    """

    test: str = ""
    treebank: str = ""
    parser: str = ""
    read: str = ""

    def __str__(self) -> str:
        name = f"gold, {self.treebank}" if self.treebank else f"test set {self.test}, parsed by {self.parser}"
        return name + self.read


@dataclass(frozen=True, eq=False)
class TreeRow:
    """One row of the table: what was compared with gold.

    source: where the trees were read off; None for a chain.
    choices: how often a word gives most weight to its parent; None for a chain.
    """

    name: str
    source: TreeSource | None
    attachment: Attachment
    choices: Attachment | None = None


@dataclass(frozen=True, eq=False)
class TreeReport:
    """All that is shown of the trees of one model.

    sentences: those that were compared.
    too_long, empty: sentences left out.
    rows: those of the model, then the chains.
    best: the number of the row with the highest DA among the model's.
    """

    system: str
    side: Side
    gold: Gold
    sentences: int
    too_long: int
    empty: int
    rows: list[TreeRow]
    best: int

    @property
    def words(self) -> int:
        """How many words count."""
        return self.rows[0].attachment.words


def report_trees(trees: ModelTrees, texts: Texts, *, system: str, gold: Gold) -> TreeReport:
    """Compare all trees that were read off a model with gold ones, and the chains too."""
    parses = [texts.gold[index] for index in trees.kept]
    if not parses:
        raise SynmtError("no sentence is left to read trees off: all are empty, or longer than the model takes")
    rows = [
        TreeRow(found.source.name, found.source, compare(found.trees, parses), compare(found.choices, parses))
        for found in trees.found
    ]
    if not rows[0].attachment.words:
        raise SynmtError("all words are punctuation, which does not count", where=str(gold))
    return TreeReport(
        system=system,
        side=texts.side,
        gold=gold,
        sentences=len(parses),
        too_long=trees.too_long,
        empty=len(texts.source) - len(parses) - trees.too_long,
        rows=rows + [TreeRow(name, None, attachment) for name, attachment in branchings(parses)],
        best=max(range(len(rows)), key=lambda row: rows[row].attachment.da.value),
    )


def as_json(report: TreeReport) -> dict[str, Any]:
    """Write a report as plain values; shares are from 0 to 1, and what is missing is None."""
    return {
        "system": report.system,
        "side": report.side,
        "test": report.gold.test or None,
        "gold": str(report.gold),
        "parser": report.gold.parser or None,
        "sentences": report.sentences,
        "left_out": {"too_long": report.too_long, "empty": report.empty},
        "words": report.words,
        "best": report.rows[report.best].name,
        "rows": [_row_as_json(row) for row in report.rows],
    }


def _row_as_json(row: TreeRow) -> dict[str, Any]:
    source = row.source
    return {
        "trees": row.name,
        "variant": source.variant or None if source else None,
        "layer": source.layer or None if source else None,
        "head": source.head or None if source else None,
        "directed": asdict(row.attachment.da),
        "undirected": asdict(row.attachment.ua),
        "top_choice": asdict(row.choices.da) if row.choices else None,
        "relations": {
            name: {"words": words, "directed": da, "undirected": ua}
            for name, (words, da, ua) in row.attachment.by_relation().items()
        },
    }
