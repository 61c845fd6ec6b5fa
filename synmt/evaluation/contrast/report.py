"""Judge models by contrastive sets: accuracy by group, each model against the first, as tables and as JSON."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from synmt.decode.translator import Translator
from synmt.errors import counted
from synmt.evaluation.bootstrap import SAMPLES, SEED
from synmt.evaluation.contrast.accuracy import (
    MOST_GROUPS,
    Accuracy,
    ContrastRow,
    ContrastTable,
    Decision,
    decide,
    groupings,
    tabulate,
    total,
)
from synmt.evaluation.contrast.sets import ContrastSet, read_contrasts
from synmt.evaluation.model_scores import ModelOptions, load_translator
from synmt.evaluation.report import Rows, format_p_value
from synmt.evaluation.significance import Comparison
from synmt.run import find_run
from synmt.syntax.conllu import format_conllu, parse_in, read_parses
from synmt.syntax.parse import Parse

_logger = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class ContrastOptions(ModelOptions):
    """Which models to judge by which contrastive sets.

    models: run folders.
    contrast: names of sets, see `sets.read_contrasts`.
    parses: a CoNLL-U file with trees of the sources.
    samples, seed: of the bootstrap.
    """

    models: Sequence[Path]
    contrast: Sequence[str]
    parses: Path | None = None
    samples: int = SAMPLES
    seed: int = SEED


@dataclass(frozen=True)
class ContrastReport:
    """The decisions of models on contrastive sets.

    models: their names.
    decisions: of each model, one for each contrast.
    total: all contrasts together.
    tables: one for each grouping.
    """

    models: list[str]
    contrast_set: ContrastSet
    decisions: list[list[Decision]]
    total: ContrastRow
    tables: list[ContrastTable]
    samples: int
    seed: int

    def to_rows(self) -> list[Rows]:
        """Make the rows of each table, followed by all contrasts together."""
        tables = [(table.by, [*table.rows, self.total]) for table in self.tables] or [("", [self.total])]
        columns = ["accuracy", "", "by piece"]
        if len(self.models) > 1:
            first, *others = self.models
            columns = [first, "", *(column for name in others for column in (name, "", "difference", "", "p"))]
        return [[[by, "pairs", *columns], *map(_cells, rows)] for by, rows in tables]

    def remarks(self) -> Iterator[str]:
        """Explain the numbers of the tables."""
        for name, groups in groupings(self.contrast_set.contrasts).items():
            if len(groups) > MOST_GROUPS:
                yield f"no table of {name}: more than {MOST_GROUPS} groups"
        yield "accuracy: pairs whose right translation has the higher log-probability, in percent, [95 %, Wilson]"
        results = list(zip(self.models, self.total.results, strict=True))
        by_piece = ", ".join(f"{name} {100 * one.accuracy_by_piece:.1f}" for name, one in results)
        why = "which does not favour shorter translations"
        yield f"by piece: accuracy by mean log-probability per piece, {why}: {by_piece}"
        if ties := [f"{name} {one.ties:,}" for name, one in results if one.ties]:
            yield f"ties, which count as lost: {', '.join(ties)}"
        if len(self.models) > 1:
            yield (
                f"difference from {self.models[0]} in points, [95 %, {self.samples:,} resamples of the sources, seed "
                f"{self.seed}]; p: McNemar's exact test"
            )

    def to_json(self) -> dict[str, Any]:
        """Write the report, with the decision of each model on each contrast, as plain values."""
        contrasts, sources = self.contrast_set.contrasts, self.contrast_set.sources
        return {
            "models": self.models,
            "bootstrap": {"samples": self.samples, "seed": self.seed},
            "left_out": self.contrast_set.identical,
            "total": self._row_json(self.total),
            "tables": [{"by": table.by, "rows": [self._row_json(row) for row in table.rows]} for table in self.tables],
            "pairs": [
                {
                    "where": contrast.where,
                    "source": sources[contrast.source],
                    "correct": contrast.correct,
                    "incorrect": list(contrast.incorrect),
                    "groups": dict(contrast.groups),
                    "models": [_decision_json(*one) for one in zip(self.models, decisions, strict=True)],
                }
                for contrast, *decisions in zip(contrasts, *self.decisions, strict=True)
            ],
        }

    def _row_json(self, row: ContrastRow) -> dict[str, Any]:
        models = [{"model": name, **asdict(result)} for name, result in zip(self.models, row.results, strict=True)]
        for values, comparison in zip(models[1:], row.comparisons, strict=True):
            values["comparison"] = asdict(comparison)
        return {"group": row.group, "pairs": row.pairs, "models": models}


def _cells(row: ContrastRow) -> list[str]:
    first, *others = row.results
    cells = [row.group, f"{row.pairs:,}", *_accuracy_cells(first)]
    # with several models the table would become too wide
    if not others:
        cells.append(f"{100 * first.accuracy_by_piece:.1f}")
    for result, comparison in zip(others, row.comparisons, strict=True):
        cells += [*_accuracy_cells(result), *_comparison_cells(comparison)]
    return cells


def _accuracy_cells(result: Accuracy) -> list[str]:
    return [f"{100 * result.accuracy:.1f}", f"[{100 * result.low:.1f}, {100 * result.high:.1f}]"]


def _comparison_cells(comparison: Comparison) -> list[str]:
    low, high = 100 * comparison.low, 100 * comparison.high
    return [f"{100 * comparison.difference:+.1f}", f"[{low:+.1f}, {high:+.1f}]", format_p_value(comparison.p_value)]


def _decision_json(model: str, decision: Decision) -> dict[str, Any]:
    return {
        "model": model,
        "won": decision.won,
        "tied": decision.tied,
        "log_probability": decision.log_probability,
        "pieces": decision.pieces,
        "incorrect": [{"log_probability": value, "pieces": pieces} for value, pieces in decision.incorrect],
        "cut": decision.truncated,
        "unknown": decision.unknown,
    }


def judge_models(options: ContrastOptions) -> ContrastReport:
    """Judge models by contrastive sets; warn of what is left out or scored in part."""
    contrast_set = read_contrasts(options.contrast)
    if same := contrast_set.identical:
        pairs = counted(len(same), "pair is", "pairs are")
        _logger.warning(f"{pairs} left out, since both translations are the same; the first: {same[0]}")
    decisions = []
    for model in options.models:
        _check_languages(model, contrast_set)
        translator = load_translator(model, options)
        if options.parses is not None and not translator.reads_trees:
            _logger.info(f"{model} reads no trees: --parses makes no difference")
        trees = _find_trees(translator, contrast_set, options.parses)
        decisions.append(decide(translator, contrast_set, trees, name=model.name))
        if truncated := sum(one.truncated for one in decisions[-1]):
            pairs = counted(truncated, "pair is", "pairs are")
            _logger.warning(f"{model}: {pairs} too long for the model (filters.max_pieces), and scored in part")
        if unknown := sum(one.unknown for one in decisions[-1]):
            pairs = counted(unknown, "pair has", "pairs have")
            _logger.warning(f"{model}: {pairs} pieces that are not in its vocabulary, scored as unknown")
    bootstrap = {"samples": options.samples, "seed": options.seed}
    return ContrastReport(
        models=_short_names(options.models),
        contrast_set=contrast_set,
        decisions=decisions,
        total=total(contrast_set.contrasts, decisions, **bootstrap),
        tables=list(tabulate(contrast_set.contrasts, decisions, **bootstrap)),
        **bootstrap,
    )


def _short_names(models: Sequence[Path]) -> list[str]:
    """Name models by their folders, or by their paths if two folders have the same name."""
    names = [path.resolve().name for path in models]
    return names if len(set(names)) == len(names) else [str(path) for path in models]


def _check_languages(model: Path, contrast_set: ContrastSet) -> None:
    recipe = find_run(model).recipe()
    if contrast_set.languages not in (None, (recipe.source, recipe.target)):
        languages = "-".join(contrast_set.languages)
        _logger.warning(f"{model} translates {recipe.source}-{recipe.target}, but the contrastive set is {languages}")


def _find_trees(translator: Translator, contrast_set: ContrastSet, parses: Path | None) -> list[Parse] | None:
    """Find the trees that a model reads: from a file, or those of the set; None if its own parser makes them."""
    if not translator.reads_trees:
        return None
    lines = translator.tokenizers["source"].tokenize_lines(contrast_set.sources)
    if parses is not None:
        return list(read_parses(parses, lines, brackets=True))
    # a run without a parser was trained on given trees, such as those of the controlled corpus
    if translator.parser_identity is not None or contrast_set.trees is None:
        return None
    trees = zip(contrast_set.trees, contrast_set.sources, lines, strict=True)
    return [tree if line == source else _placed(tree, source, line) for tree, source, line in trees]


def _placed(tree: Parse, source: str, line: str) -> Parse:
    """Place the tree of a source in the words that the run makes of it."""
    return parse_in(format_conllu(tree, source, 1), line, where=f"the tree of '{source}'")
