"""`synmt score --model --contrast`: how often models prefer the right translation to a wrong one."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from synmt.cli import console

if TYPE_CHECKING:
    from synmt.decode.translator import Translator
    from synmt.evaluation.contrast.accuracy import Accuracy, Decision, Row
    from synmt.evaluation.contrast.sets import Contrast, ContrastSet
    from synmt.evaluation.significance import Comparison
    from synmt.syntax.parse import Parse


def score_contrast(
    *,
    models: list[Path],
    names: list[str],
    parses: Path | None,
    load: Callable[[Path], Translator],
    bootstrap: dict[str, int],
    as_json: bool,
) -> None:
    """Judge models by contrastive sets, and compare each with the first."""
    from synmt.evaluation.contrast.sets import read_contrasts

    given = read_contrasts(names)
    _say_left_out(given)
    decisions = []
    for model in models:
        _compare_languages(model, given)
        decisions.append(_decide(load(model), model, given, parses))
    called = _short_names(models)
    show = _print_json if as_json else _print_tables
    show(given, called, decisions, bootstrap)


def _short_names(models: list[Path]) -> list[str]:
    """Name models by their folders, or by their paths where two are named alike."""
    names = [path.resolve().name for path in models]
    return names if len(set(names)) == len(names) else [str(path) for path in models]


def _say_left_out(given: ContrastSet) -> None:
    if given.identical:
        console.warn(
            f"{len(given.identical):,} pairs are left out, since their two translations are the same; the first: "
            f"{given.identical[0]}"
        )


def _compare_languages(model: Path, given: ContrastSet) -> None:
    from synmt.run import find_run

    recipe = find_run(model).recipe()
    if given.languages not in (None, (recipe.source, recipe.target)):
        languages = "-".join(given.languages)
        console.warn(f"{model} translates {recipe.source}-{recipe.target}, but the contrastive set is {languages}")


def _decide(translator: Translator, model: Path, given: ContrastSet, parses: Path | None) -> list[Decision]:
    from synmt.evaluation.contrast.accuracy import decide

    trees = _trees(translator, given, parses)
    sources = len(given.sources if trees is not None else {given.sources[one.source] for one in given.contrasts})
    with console.progress(f"scoring by {model.name}", sources, "sources") as advance:
        decisions = decide(translator, given, trees, advance)
    if cut := sum(one.cut for one in decisions):
        console.warn(f"{model}: {cut:,} pairs are too long for the model (filters.max_pieces), and scored in part")
    if unknown := sum(one.unknown for one in decisions):
        console.warn(
            f"{model}: {unknown:,} pairs have pieces that its vocabulary does not know, and are scored as such"
        )
    return decisions


def _trees(translator: Translator, given: ContrastSet, parses: Path | None) -> list[Parse] | None:
    """Find the trees that come with the set; without them the model's own parser makes some."""
    from synmt.syntax.conllu import read_parses

    if not translator.reads_trees:
        return None
    if parses is not None:
        return list(read_parses(parses, given.sources))
    # a run that names no parser was trained on trees that were given, as those of the controlled corpus are
    return given.trees if translator.parser_identity is None else None


def _print_tables(
    given: ContrastSet, names: list[str], decisions: list[list[Decision]], bootstrap: dict[str, int]
) -> None:
    from synmt.evaluation.contrast.accuracy import MOST_GROUPS, groupings, tabulate, total

    whole = total(given.contrasts, decisions, **bootstrap)
    tables = list(tabulate(given.contrasts, decisions, **bootstrap))
    shown = [(table.by, [*table.rows, whole]) for table in tables] or [("", [whole])]
    for by, rows in shown:
        console.table("", [by, "pairs", *_columns(names)], [_cells(row) for row in rows], to_stdout=True)
        print()
    many = [name for name, groups in groupings(given.contrasts).items() if len(groups) > MOST_GROUPS]
    if many:
        print(f"no table of {', '.join(many)}: more than {MOST_GROUPS} groups")
    print("accuracy: pairs whose right translation has the higher log-probability, in percent, [95 %, Wilson]")
    by_piece = (f"{name} {100 * one.accuracy_by_piece:.1f}" for name, one in zip(names, whole.results, strict=True))
    print(f"by piece, by the mean of the pieces, which does not favour the shorter: {', '.join(by_piece)}")
    if ties := [f"{name} {one.ties:,}" for name, one in zip(names, whole.results, strict=True) if one.ties]:
        print(f"ties, which count as lost: {', '.join(ties)}")
    if len(names) > 1:
        print(
            f"difference to {names[0]} in points, [95 %, {bootstrap['samples']:,} resamples of the sources, seed "
            f"{bootstrap['seed']}]; p: McNemar's exact test"
        )


def _columns(names: Sequence[str]) -> list[str]:
    if len(names) == 1:
        return ["accuracy", "", "by piece"]
    first, *others = names
    return [first, "", *(column for name in others for column in (name, "", "difference", "", "p"))]


def _cells(row: Row) -> list[str]:
    first, *others = row.results
    cells = [row.group, f"{row.pairs:,}", *_accuracy(first)]
    # with several models there is no room for it
    if not others:
        cells.append(f"{100 * first.accuracy_by_piece:.1f}")
    for result, comparison in zip(others, row.comparisons, strict=True):
        cells += [*_accuracy(result), *_comparison(comparison)]
    return cells


def _accuracy(result: Accuracy) -> list[str]:
    return [f"{100 * result.accuracy:.1f}", f"[{100 * result.low:.1f}, {100 * result.high:.1f}]"]


def _comparison(found: Comparison) -> list[str]:
    p = "<0.001" if found.p_value < 0.0005 else f"{found.p_value:.3f}"
    return [f"{100 * found.difference:+.1f}", f"[{100 * found.low:+.1f}, {100 * found.high:+.1f}]", p]


def _print_json(
    given: ContrastSet, names: list[str], decisions: list[list[Decision]], bootstrap: dict[str, int]
) -> None:
    from synmt.evaluation.contrast.accuracy import as_json, tabulate, total

    report = {
        "models": names,
        "bootstrap": bootstrap,
        "left_out": given.identical,
        "total": as_json(total(given.contrasts, decisions, **bootstrap), names),
        "tables": [
            {"by": table.by, "rows": [as_json(row, names) for row in table.rows]}
            for table in tabulate(given.contrasts, decisions, **bootstrap)
        ],
        "pairs": [
            _values(contrast, given.sources[contrast.source], dict(zip(names, judged, strict=True)))
            for contrast, *judged in zip(given.contrasts, *decisions, strict=True)
        ],
    }
    print(json.dumps(report, ensure_ascii=False, indent=2))


def _values(contrast: Contrast, source: str, judged: dict[str, Decision]) -> dict[str, Any]:
    return {
        "where": contrast.where,
        "source": source,
        "correct": contrast.correct,
        "incorrect": list(contrast.incorrect),
        "groups": dict(contrast.groups),
        "models": [
            {
                "model": name,
                "won": one.won,
                "tied": one.tied,
                "log_probability": one.log_probability,
                "pieces": one.pieces,
                "incorrect": [{"log_probability": value, "pieces": pieces} for value, pieces in one.incorrect],
                "cut": one.cut,
                "unknown": one.unknown,
            }
            for name, one in judged.items()
        ],
    }
