"""Judge models by contrastive sets: accuracy by group, each model against the first."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

from synmt.decode.translator import Translator
from synmt.errors import counted
from synmt.evaluation.bootstrap import SAMPLES, SEED
from synmt.evaluation.contrast.accuracy import (
    MOST_GROUPS,
    ContrastRow,
    Decision,
    decide,
    groupings,
    tabulate,
)
from synmt.evaluation.contrast.sets import ContrastSet, read_contrasts
from synmt.evaluation.model_scores import ModelOptions, load_translator
from synmt.reporting.values import Column, Report, Table, Value, count_column, text_column
from synmt.run_folder import find_run
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
    # two folders may have the same name
    models = [path.resolve().name for path in options.models]
    if len(set(models)) < len(models):
        models = [str(path) for path in options.models]
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
    decisions = decide(
        translator,
        contrast_set,
        _find_trees(translator, contrast_set, options.parses),
        name=model.name,
    )
    if truncated := sum(one.truncated for one in decisions):
        pairs = counted(truncated, "pair is", "pairs are")
        _logger.warning(
            f"{model}: {pairs} too long for the model (filters.max_pieces), and scored in part"
        )
    if unknown := sum(one.unknown for one in decisions):
        pairs = counted(unknown, "pair has", "pairs have")
        _logger.warning(
            f"{model}: {pairs} pieces that are not in its vocabulary, scored as unknown"
        )
    return decisions


def _find_trees(
    translator: Translator, contrast_set: ContrastSet, parses: Path | None
) -> list[Parse] | None:
    """Find the trees that a model reads: from a file, or those of the set; None if its own parser
    makes them."""
    if not translator.reads_trees:
        return None
    lines = translator.tokenizers["source"].tokenize_lines(contrast_set.sources)
    if parses is not None:
        return list(read_parses(parses, lines, brackets=True))
    # a run without a parser was trained on given trees, such as those of the controlled corpus
    if translator.parser_identity is not None or contrast_set.trees is None:
        return None
    found = []
    for tree, source, line in zip(contrast_set.trees, contrast_set.sources, lines, strict=True):
        where = f"the tree of '{source}'"
        # a tree is placed in the words that the run makes of its source
        found.append(
            tree if line == source else parse_in(format_conllu(tree, source, 1), line, where=where)
        )
    return found


def _table(
    by: str, rows: Sequence[ContrastRow], models: Sequence[str], options: ContrastOptions
) -> Table:
    """Show the accuracy in each group; with several models, it by piece would make the table too
    wide."""
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
    ]
    columns.append(share(title="95 %", name=f"{first}, interval"))
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
    return Table(columns=columns, rows=[_cells(row) for row in rows])


def _cells(row: ContrastRow) -> list[Value]:
    cells = [row.group, row.pairs]
    for number, result in enumerate(row.results):
        cells += [result.accuracy, result.interval]
        if number:
            found = row.comparisons[number - 1]
            cells += [found.difference, found.interval, found.p_value]
    return cells if row.comparisons else [*cells, row.results[0].accuracy_by_piece]


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
