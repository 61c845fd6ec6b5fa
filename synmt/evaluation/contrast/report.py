"""How often models prefer a right translation to wrong ones (Sennrich, 2017), by group, each model
against the first.

    a contrast is won if log P(correct | source) > log P(incorrect | source) for every incorrect
    translation

The log-probability is the sum over all pieces and EOS. Ties count as lost. Accuracies have Wilson's
interval (1927). Two models are compared by the contrasts that only one of them wins, with McNemar's
exact test; the interval of the difference comes from resamples of the sources, each with all its
contrasts.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from synmt.arrays import BoolArray, DoubleArray, IntArray
from synmt.decode.pairs import PairScore, score_alternatives
from synmt.decode.translator import Translator
from synmt.errors import SynmtError, counted
from synmt.evaluation.bootstrap import (
    SAMPLES,
    SEED,
    WithInterval,
    ratio_intervals,
    sum_by_sentence,
    wilson,
)
from synmt.evaluation.contrast.sets import Contrast, ContrastSet, read_contrasts
from synmt.evaluation.model_scores import ModelOptions, load_translator
from synmt.evaluation.significance import Comparison
from synmt.evaluation.systems import short_names
from synmt.reporting.progress import progress
from synmt.reporting.values import Column, Report, Table, Value, count_column, text_column
from synmt.run_folder import find_run
from synmt.syntax.conllu import format_conllu, parse_in, read_parses
from synmt.syntax.parse import Parse

_logger = logging.getLogger(__name__)

MOST_GROUPS = 40
"""A grouping with more groups than this has no table: it probably numbers the contrasts."""


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


def judge_models(options: ContrastOptions) -> Report:
    """Judge models by contrastive sets; warn of what is left out or scored in part.

    The facts of the report are, beside the numbers of the tables, the `pairs` with the decision of
    each model.
    """
    contrast_set = read_contrasts(options.contrast)
    contrasts, same = contrast_set.contrasts, contrast_set.identical
    if same:
        pairs = counted(len(same), "pair is", "pairs are")
        _logger.warning(
            f"{pairs} left out, since both translations are the same; the first: {same[0]}"
        )
    decisions = [_judge(model, contrast_set, options) for model in options.models]
    tables = tabulate(contrasts, decisions, samples=options.samples, seed=options.seed)
    models = short_names([str(path.resolve()) for path in options.models])
    [total] = tables.pop(None)
    pairs = [
        {
            **asdict(contrast),
            "source": contrast_set.sources[contrast.source],
            "models": [one.as_json(model) for model, one in zip(models, of_models, strict=True)],
        }
        for contrast, *of_models in zip(contrasts, *decisions, strict=True)
    ]
    groups = {by: [asdict(row) for row in rows] for by, rows in tables.items()}
    return Report(
        title="contrastive pairs",
        parts=[
            _table(by or "", [*rows, total], models, options)
            for by, rows in (tables or {"": []}).items()
        ],
        notes=list(_notes(contrast_set, models, total)),
        facts={
            "models": models,
            "bootstrap": {"samples": options.samples, "seed": options.seed},
            "left_out": same,
            "total": asdict(total),
            "groups": groups,
            "pairs": pairs,
        },
    )


def _judge(model: Path, contrast_set: ContrastSet, options: ContrastOptions) -> list[Decision]:
    recipe = find_run(model).recipe()
    if contrast_set.languages not in (None, (recipe.source, recipe.target)):
        languages = "-".join(contrast_set.languages)
        _logger.warning(
            f"{model} translates {recipe.source}-{recipe.target}, but the contrastive set is "
            f"{languages}"
        )
    translator = load_translator(model, options)
    if options.parses is not None and not translator.reads_trees:
        _logger.info(f"{model} reads no trees: --parses makes no difference")
    trees = _find_trees(translator, contrast_set, options.parses)
    decisions = decide(translator, contrast_set, trees, name=model.name)
    if truncated := sum(one.truncated for one in decisions):
        what = "too long for the model (filters.max_pieces), and scored in part"
        _logger.warning(f"{model}: {counted(truncated, 'pair is', 'pairs are')} {what}")
    if unknown := sum(one.unknown for one in decisions):
        what = "pieces that are not in its vocabulary, scored as unknown"
        _logger.warning(f"{model}: {counted(unknown, 'pair has', 'pairs have')} {what}")
    return decisions


def _find_trees(
    translator: Translator, contrast_set: ContrastSet, parses: Path | None
) -> list[Parse] | None:
    """Find the trees that a model reads; None if its own parser makes them."""
    if not translator.reads_trees:
        return None
    lines = translator.tokenizers["source"].tokenize_lines(contrast_set.sources)
    if parses is not None:
        return list(read_parses(parses, lines, brackets=True))
    # a run without a parser was trained on given trees, such as those of the controlled corpus
    if translator.parser_identity is not None or contrast_set.trees is None:
        return None
    found = list(contrast_set.trees)
    for place, (source, line) in enumerate(zip(contrast_set.sources, lines, strict=True)):
        if line != source:
            # a tree is placed in the words that the run makes of its source
            text = format_conllu(found[place], source, 1)
            found[place] = parse_in(text, line, where=f"the tree of '{source}'")
    return found


def _table(
    by: str, rows: Sequence[ContrastRow], models: Sequence[str], options: ContrastOptions
) -> Table:
    """Show the accuracy in each group, and for a single model that by piece."""
    first, *others = models
    about = (
        "pairs whose right translation has the higher log-probability, and their 95 % interval "
        "(Wilson)"
    )
    share = partial(Column, kind="share", digits=1)
    columns = [
        text_column(by),
        count_column("pairs"),
        share(title=first if others else "accuracy", about=about),
        share(title="95 %", name=f"{first}, interval"),
    ]
    if not others:
        columns.append(share(title="by piece"))
    about = (
        f"from {first}, with its interval over {options.samples:,} resamples of the sources, "
        f"seed {options.seed}"
    )
    for name in others:
        columns += [
            share(title=name),
            share(title="95 %", name=f"{name}, interval"),
            share(title="difference", signed=True, about=about, name=f"{name}, difference"),
            share(title="95 %", signed=True, name=f"{name}, interval of the difference"),
            Column(title="p", kind="p", about="McNemar's exact test", name=f"{name}, p"),
        ]
    cells = []
    for row in rows:
        base, *results = row.results
        values: list[Value] = [row.group, row.pairs, base.accuracy, base.interval]
        if not others:
            values.append(base.accuracy_by_piece)
        for result, found in zip(results, row.comparisons, strict=True):
            values += [result.accuracy, result.interval]
            values += [found.difference, found.interval, found.p_value]
        cells.append(values)
    return Table(columns=columns, rows=cells)


def _notes(contrast_set: ContrastSet, models: Sequence[str], total: ContrastRow) -> Iterator[str]:
    for name, groups in groupings(contrast_set.contrasts).items():
        if len(groups) > MOST_GROUPS:
            yield f"no table of {name}: more than {MOST_GROUPS} groups"
    results = dict(zip(models, total.results, strict=True))
    by_piece = ", ".join(f"{name} {one.accuracy_by_piece:.1%}" for name, one in results.items())
    why = "which does not favour shorter translations"
    yield f"by piece: accuracy by mean log-probability per piece, {why}: {by_piece}"
    if ties := [f"{name} {one.ties:,}" for name, one in results.items() if one.ties]:
        yield f"ties, which count as lost: {', '.join(ties)}"


@dataclass(frozen=True)
class Decision:
    """The probabilities that a model gives to the translations of one contrast.

    log_probability, pieces: of the right translation.
    incorrect: the same of each wrong one.
    truncated: whether a text was too long for the model and scored in part.
    unknown: whether a translation has pieces that are not in the vocabulary.
    """

    log_probability: float
    pieces: int
    incorrect: tuple[tuple[float, int], ...]
    truncated: bool = False
    unknown: bool = False

    @property
    def won(self) -> bool:
        """Tell whether the right translation has a higher probability than all others."""
        return all(self.log_probability > other for other, _ in self.incorrect)

    @property
    def tied(self) -> bool:
        """Tell whether the contrast is lost only because of equal probabilities."""
        return not self.won and all(self.log_probability >= other for other, _ in self.incorrect)

    @property
    def won_by_piece(self) -> bool:
        """Tell whether the right translation has the highest mean log-probability per piece."""
        return all(
            self.log_probability / self.pieces > other / pieces for other, pieces in self.incorrect
        )

    def as_json(self, model: str) -> dict[str, Any]:
        """Return plain values, with the name of the model."""
        wrong = [{"log_probability": value, "pieces": pieces} for value, pieces in self.incorrect]
        decision = {"model": model, "won": self.won, "tied": self.tied, **asdict(self)}
        return decision | {"incorrect": wrong}


@dataclass(frozen=True)
class Accuracy(WithInterval):
    """The number of contrasts that a model wins, and their proportion with its 95 % interval."""

    won: int
    ties: int
    accuracy: float
    low: float
    high: float
    accuracy_by_piece: float


@dataclass(frozen=True)
class ContrastRow:
    """One group of contrasts: the accuracy of each model, and the difference of each further model
    from the first."""

    group: str
    pairs: int
    results: list[Accuracy]
    comparisons: list[Comparison]


def decide(
    translator: Translator,
    contrast_set: ContrastSet,
    trees: Sequence[Parse] | None = None,
    *,
    name: str = "the model",
) -> list[Decision]:
    """Score the translations of every contrast by a model.

    Sources that occur several times are read once, unless each has its own tree.

    trees: of the sources; by default the model's parser makes them.
    name: of the model, for the progress.
    """
    sources, contrasts, first = contrast_set.sources, contrast_set.contrasts, {}
    rows = [
        one.source if trees else first.setdefault(sources[one.source], one.source)
        for one in contrasts
    ]
    # with trees: all sources, so that they stay aligned with the trees
    targets: dict[int, dict[str, None]] = {row: {} for row in range(len(sources))} if trees else {}
    for row, one in zip(rows, contrasts, strict=True):
        targets.setdefault(row, {}).update(dict.fromkeys((one.correct, *one.incorrect)))
    found = score_alternatives(
        translator, ((sources[row], tuple(texts)) for row, texts in targets.items()), trees
    )
    scores = {}
    with progress(f"scoring by {name}", len(targets), "sources") as advance:
        for (row, texts), of_source in zip(targets.items(), found, strict=True):
            # the targets of the scores are words, if the run tokenizes text
            scores[row] = dict(zip(texts, of_source, strict=True))
            advance(1)
    return [_decide(scores[row], one) for row, one in zip(rows, contrasts, strict=True)]


def _decide(scores: dict[str, PairScore], contrast: Contrast) -> Decision:
    chosen = [scores[text] for text in (contrast.correct, *contrast.incorrect)]
    if not all(one.pieces for one in chosen):
        raise SynmtError("the source has no piece that the model could read", where=contrast.where)
    (right, pieces), *wrong = [(float(one.log_probabilities.sum()), one.pieces) for one in chosen]
    truncated = any(one.source_dropped or one.target_dropped for one in chosen)
    return Decision(right, pieces, tuple(wrong), truncated, any(one.unknown for one in chosen))


def groupings(contrasts: Sequence[Contrast]) -> dict[str, list[str]]:
    """List the groups of each grouping, numbers in their order."""
    groups = {}
    for contrast in contrasts:
        for name, group in contrast.groups.items():
            groups.setdefault(name, {})[group] = None
    return {name: sorted(members, key=_order) for name, members in groups.items()}


def _order(group: str) -> tuple[bool, float, bool, str]:
    """Sort numbers first, by size; `>15` follows 15."""
    number = group.lstrip(">").split(" ")[0].replace(",", "")
    is_number = number.isdecimal()
    return not is_number, float(number) if is_number else 0.0, group.startswith(">"), group


def tabulate(
    contrasts: Sequence[Contrast],
    models: Sequence[Sequence[Decision]],
    *,
    samples: int = SAMPLES,
    seed: int = SEED,
) -> dict[str | None, list[ContrastRow]]:
    """Count the contrasts of each group, for each grouping; that of all contrasts together is None,
    and `models` has the decisions of each model."""
    # won, tied, won by piece
    flags = [
        np.array([(one.won, one.tied, one.won_by_piece) for one in decisions])
        for decisions in models
    ]  # (N, 3) each
    base = flags[0][:, 0]  # (N,)
    sources = np.array([one.source for one in contrasts])  # (N,)
    tables = {}
    for by, groups in [(None, ["all"]), *groupings(contrasts).items()]:
        if len(groups) > MOST_GROUPS:
            continue
        # (N, G)
        members = np.array(
            [[by is None or one.groups.get(by) == group for group in groups] for one in contrasts]
        )
        sizes = members.sum(0).tolist()
        tables[by] = [ContrastRow(*one, [], []) for one in zip(groups, sizes, strict=True)]
        for number, model in enumerate(flags):
            gains = model[:, 0].astype(float) - base  # (N,)
            ends = _intervals(gains, sources, members, samples=samples, seed=seed) if number else []
            for g, row in enumerate(tables[by]):
                inside = members[:, g]
                won, ties, by_piece = model[inside].sum(0).tolist()
                share = wilson(won, row.pairs)
                row.results.append(
                    Accuracy(won, ties, share.value, share.low, share.high, by_piece / row.pairs)
                )
                if ends:
                    row.comparisons.append(_compare(base[inside], model[inside, 0], ends[g]))
    return tables


def _compare(first: BoolArray, other: BoolArray, ends: tuple[float, float]) -> Comparison:
    """Compare the contrasts that two models win, (M,) both."""
    from scipy.stats import binomtest

    gained, lost = int((other & ~first).sum()), int((first & ~other).sum())
    p_value = float(binomtest(gained, gained + lost).pvalue) if gained + lost else 1.0
    return Comparison((gained - lost) / len(first), *ends, p_value)


def _intervals(
    differences: DoubleArray, sources: IntArray, members: BoolArray, *, samples: int, seed: int
) -> list[tuple[float, float]]:
    """Resample the sources: differences (N,), sources (N,) and members (N, G) -> G intervals.

    A group that is in no resample has the widest interval, [-1, 1].
    """
    places, rows = np.unique(sources, return_inverse=True)
    above = sum_by_sentence(differences[:, None] * members, rows, len(places))  # (S, G)
    below = sum_by_sentence(members, rows, len(places))  # (S, G)
    with warnings.catch_warnings():
        # numpy warns of groups that are in no resample
        warnings.simplefilter("ignore", RuntimeWarning)
        intervals = ratio_intervals(above, below, samples=samples, seed=seed)
    return [(-1.0, 1.0) if np.isnan(low) else (low, high) for low, high in intervals]
