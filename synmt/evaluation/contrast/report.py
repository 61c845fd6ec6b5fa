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
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import chain
from pathlib import Path

import numpy as np

from synmt.arrays import Texts
from synmt.decode.pairs import PairScore, score_alternatives
from synmt.decode.translator import Translator
from synmt.errors import SynmtError
from synmt.evaluation.bootstrap import SAMPLES, SEED, ratio_intervals, sum_by_sentence, wilson
from synmt.evaluation.contrast.sets import CONTROLLED, Contrast, ContrastSet, read_contrasts
from synmt.evaluation.model_scores import ModelOptions
from synmt.evaluation.significance import difference_columns
from synmt.evaluation.systems import short_names
from synmt.reporting.progress import progress
from synmt.reporting.values import (
    Column,
    Report,
    Table,
    count_column,
    share_column,
    text_column,
)
from synmt.syntax.conllu import read_parses
from synmt.syntax.parse import Parse, Trees

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
    contrast: Texts
    parses: Path | None = None
    samples: int = SAMPLES
    seed: int = SEED


def judge_models(options: ContrastOptions) -> Report:
    """Judge models by contrastive sets; warn of pairs that are scored in part.

    The facts of the report are the `pairs`, with the decision of each model.
    """
    contrast_set = read_contrasts(options.contrast)
    contrasts = contrast_set.contrasts
    names = short_names([str(path.resolve()) for path in options.models])
    decisions = dict[str, list[Decision]]()
    for name, model in zip(names, options.models, strict=True):
        translator = Translator.load(model, **options.loading)
        recipe = translator.models[0].recipe
        if CONTROLLED in options.contrast and recipe.corpus.controlled.other_words:
            what = "its training text has other words (corpus.controlled) than the pairs"
            _logger.warning(f"{model}: {what}")
        trees = _find_trees(translator, contrast_set, options.parses)
        decisions[name] = decide(translator, contrast_set, trees)
        if truncated := sum(decision.truncated for decision in decisions[name]):
            what = "too long for the model (filters.max_pieces), and scored in part"
            _logger.warning(f"{model}: {truncated:,} of {len(contrasts):,} pairs are {what}")
    shown = {
        by: members for by, members in groupings(contrasts).items() if len(members) <= MOST_GROUPS
    }
    pairs = [
        {
            **asdict(contrast),
            "source": contrast_set.sources[contrast.source],
            "models": [
                {"model": name, **asdict(of_model[place])} for name, of_model in decisions.items()
            ],
        }
        for place, contrast in enumerate(contrasts)
    ]
    return Report(
        title="contrastive pairs",
        parts=[
            accuracy_table(
                by, members, contrasts, decisions, samples=options.samples, seed=options.seed
            )
            for by, members in (shown or {"group": []}).items()
        ],
        facts={"pairs": pairs},
    )


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
    needs_own_trees = translator.parser_identity is not None or lines != contrast_set.sources
    return None if needs_own_trees else contrast_set.trees


@dataclass(frozen=True)
class Decision:
    """The probabilities that a model gives to the translations of one contrast.

    log_probability, pieces: of the right translation.
    incorrect: the same of each wrong one.
    won: whether the right translation has a higher probability than all others.
    tied: whether the contrast is lost only because of equal probabilities.
    won_by_piece: whether its mean log-probability per piece is the highest.
    truncated: whether a text was too long for the model and scored in part.
    """

    log_probability: float
    pieces: int
    incorrect: Sequence[tuple[float, int]]
    won: bool
    tied: bool
    won_by_piece: bool
    truncated: bool


def compared(scores: Sequence[tuple[float, int]], *, truncated: bool = False) -> Decision:
    """Decide a contrast by log-probabilities and numbers of pieces, of the right translation
    first."""
    (right, pieces), *wrong = scores
    best = max(other for other, _ in wrong)
    by_piece = all(right / pieces > other / count for other, count in wrong)
    return Decision(right, pieces, wrong, right > best, right == best, by_piece, truncated)


def decide(
    translator: Translator,
    contrast_set: ContrastSet,
    trees: Trees | None = None,
) -> list[Decision]:
    """Score the translations of every contrast by a model.

    trees: of the sources; by default the model's parser makes them.
    """
    sources, contrasts = contrast_set.sources, contrast_set.contrasts
    # a source that occurs several times is read once, unless each has its own tree
    known = dict[str, int]()
    rows = [
        contrast.source if trees else known.setdefault(sources[contrast.source], contrast.source)
        for contrast in contrasts
    ]
    targets = {row: dict[str, None]() for row in (range(len(sources)) if trees else rows)}
    for row, contrast in zip(rows, contrasts, strict=True):
        targets[row].update(dict.fromkeys((contrast.correct, *contrast.incorrect)))
    alternatives = ((sources[row], tuple(texts)) for row, texts in targets.items())
    by_source = score_alternatives(translator, alternatives, trees)
    scores = {}
    with progress("scoring contrasts", len(targets), "sources") as advance:
        for (row, texts), of_source in zip(targets.items(), by_source, strict=True):
            # the targets of the scores are words, if the run tokenizes text
            scores[row] = dict(zip(texts, of_source, strict=True))
            advance(1)
    return [_decide(scores[row], contrast) for row, contrast in zip(rows, contrasts, strict=True)]


def _decide(scores: dict[str, PairScore], contrast: Contrast) -> Decision:
    chosen = [scores[text] for text in (contrast.correct, *contrast.incorrect)]
    if not all(score.pieces for score in chosen):
        raise SynmtError("the source has no piece that the model could read", where=contrast.where)
    return compared(
        [(float(score.log_probabilities.sum()), score.pieces) for score in chosen],
        truncated=any(score.source_dropped or score.target_dropped for score in chosen),
    )


def groupings(contrasts: Sequence[Contrast]) -> dict[str, list[str]]:
    """List the groups of each grouping, numbers in their order."""
    all_groups = [contrast.groups for contrast in contrasts]
    return {
        by: sorted({groups[by] for groups in all_groups if by in groups}, key=_order)
        for by in dict.fromkeys(chain(*all_groups))
    }


def _order(group: str) -> tuple[float, str]:
    """Sort numbers first, by size; `>15` follows 15."""
    number = re.match(r">?(\d[\d,]*)( to |$)", group)
    return float(number[1].replace(",", "")) if number else np.inf, group


def accuracy_table(
    by: str,
    groups: Texts,
    contrasts: Sequence[Contrast],
    decisions: Mapping[str, Sequence[Decision]],
    *,
    samples: int = SAMPLES,
    seed: int = SEED,
) -> Table:
    """Count the contrasts that each model wins, in each group of a grouping and in all, and compare
    each model with the first.

    decisions: of each model, by its name.
    """
    first, *_ = decisions
    names = [*groups, "all"]
    members = np.array(
        [[group in ("all", contrast.groups.get(by)) for group in names] for contrast in contrasts]
    )  # (N, G)
    _, sources = np.unique([contrast.source for contrast in contrasts], return_inverse=True)  # (N,)
    count = int(sources.max()) + 1
    sizes = sum_by_sentence(members, sources, count)  # (S, G)
    base = np.array([decision.won for decision in decisions[first]])  # (N,)
    rows = [[] for _ in names]
    for name, of_model in decisions.items():
        outcomes = np.array(
            [(decision.won, decision.won_by_piece, decision.tied) for decision in of_model]
        )  # (N, 3)
        gains = outcomes[:, 0].astype(float) - base  # (N,)
        gained = sum_by_sentence(gains[:, None] * members, sources, count)  # (S, G)
        intervals = ratio_intervals(gained, sizes, samples=samples, seed=seed)
        for place, group in enumerate(names):
            inside = members[:, place]  # (N,)
            pairs = int(inside.sum())
            wins, by_piece, ties = outcomes[inside].sum(0).tolist()
            share = wilson(wins, pairs)
            more, fewer = (int((gains[inside] == gain).sum()) for gain in (1, -1))
            compared = [(more - fewer) / pairs, intervals[place], mcnemar(more, fewer)]
            row = [group, pairs, name, share.value, share.interval, by_piece / pairs, ties]
            rows[place].append(row + ([None] * 3 if name == first else compared))
    resampled = f"bootstrap of the sources, {samples:,} resamples, seed {seed}"
    columns = [
        text_column(by, name="group"),
        count_column("pairs"),
        text_column("model"),
        share_column("accuracy", about="ties count as lost"),
        share_column("95 %", about="Wilson's interval"),
        share_column("by piece", about="by the mean log-probability of a piece"),
        count_column("ties"),
        *difference_columns(first, resampled, share_column),
        Column("p", kind="p", about="McNemar's exact test"),
    ]
    return Table(columns=columns, rows=list(chain(*rows)), shared=2).without_empty_columns()


def mcnemar(gained: int, lost: int) -> float:
    """Compute the exact two-sided p-value of two models that win so many contrasts alone."""
    from scipy.stats import binomtest

    return float(binomtest(gained, gained + lost).pvalue) if gained + lost else 1.0
