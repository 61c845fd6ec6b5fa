"""The probabilities that a model gives to translations in files."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import tee
from pathlib import Path

from synmt.arrays import Values
from synmt.decode.pairs import PairScore, Totals, score_pairs
from synmt.decode.remote import shared_translator
from synmt.decode.translator import Translator
from synmt.files.reading import known_lines, read_lines
from synmt.reporting.values import Column, Table, count_column, text_column
from synmt.syntax.conllu import read_parses


@dataclass(frozen=True, kw_only=True)
class ModelOptions:
    """How to load a model.

    checkpoint: final, best, last or average.
    batch_size: sentences in a batch; None for the recipe's.
    parser: model or folder of the parser, if it is no longer where the run recorded it.
    """

    checkpoint: str = "final"
    batch_size: int | None = None
    device: str = "auto"
    parser: str | None = None

    @property
    def loading(self) -> Values:
        """The arguments of `Translator.load`, which remote translators also get."""
        return {
            name: value
            for name in ("device", "checkpoint", "parser", "batch_size")
            if (value := getattr(self, name)) is not None
        }


@dataclass(frozen=True, kw_only=True)
class PairOptions(ModelOptions):
    """Which translations to score by which model.

    model: a run folder.
    source, target: line n of both belong together.
    parses: a CoNLL-U file with trees of the source; by default the model's parser makes them.
    """

    model: Path
    source: Path
    target: Path
    parses: Path | None = None


def score_files(options: PairOptions) -> Iterator[PairScore]:
    """Score the translations of a file line by line."""
    translator = Translator.load(options.model, **options.loading)
    count, trees = known_lines(options.source), None
    lines = read_lines(options.source)
    if options.parses is not None and translator.reads_trees:
        lines, again = tee(lines)
        tokenized = map(translator.tokenizers["source"].tokenize, again)
        trees = read_parses(options.parses, tokenized, brackets=True)
    with shared_translator(
        translator, [options.model], options.loading, lines=count, has_trees=trees is not None
    ) as shared:
        yield from score_pairs(shared, lines, read_lines(options.target), trees)


def pair_json(score: PairScore) -> Values:
    """Return the score of one pair as plain values."""
    values = {
        "line": score.line,
        "source": score.source,
        "target": score.target,
        "log_probability": score.log_probability,
        "pieces": score.pieces,
        "perplexity": score.perplexity,
        "tokens": [asdict(token) for token in score.tokens],
    }
    dropped = {"source": score.source_dropped, "target": score.target_dropped}
    return values | {"dropped": dropped} if any(dropped.values()) else values


def summary_table(totals: Totals) -> Table:
    """Show the mean log-probability and the perplexities, and what is not in them."""
    rows = [
        ["log-probability by sentence", totals.pairs, totals.mean],
        *(
            [f"perplexity by {unit}", count, totals.perplexity(unit)]
            for unit, count in totals.units.items()
        ),
        ["pieces that are not in the vocabulary", totals.unknown, None],
        ["left out: no source, or a truncated target", totals.left_out, None],
    ]
    return Table(
        columns=[text_column("summary"), count_column("number"), Column("value", digits=3)],
        rows=rows,
        notes=["in nats; the end of a sentence counts as one piece, word and character"],
    )
