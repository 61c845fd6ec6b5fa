"""The facts about a run that a page shows: its recipe, model, variants, steps and parser."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from synmt.evaluation.cost import cost_table, run_cost
from synmt.files.schemas import RunParser
from synmt.recipe.model import ModelRecipe
from synmt.recipe.schema import Recipe, VariantRecipe
from synmt.reporting.cells import shown_rows
from synmt.reporting.page import page_of
from synmt.reporting.values import Report, Table, text_column
from synmt.run_folder import Run

_NONE = "–"
_COSTS = {
    "weights": "weights",
    "time of training": "training",
    "processor time": "processor",
    "memory": "memory",
    "time of parsing": "parsing",
    "words parsed per second": "parsing, words/s",
    "sentences translated per second": "translation, sentences/s",
}
"""The columns of `score --cost` that are facts of a run, by the names of the facts."""


def run_facts(run: Run) -> dict[str, str]:
    """Describe a run: facts by name, as text."""
    recipe, info = run.recipe(), run.info()
    steps = info.get("steps")
    return {
        "recipe": recipe.name,
        "languages": f"{recipe.source} → {recipe.target}",
        "corpus": recipe.corpus.name or str(recipe.corpus.folder or "own files"),
        "model": _model(recipe.model),
        "variants": "; ".join(map(_variant, recipe.syntax.variants)) or "none",
        "parser": _parser(recipe, info.get("parser")),
        "steps": f"{steps:,}" if isinstance(steps, int) else _NONE,
        **_costs(run),
        "finished": str(info.get("finished_at") or _NONE)[:10],
    }


def page_with_facts(reports: Sequence[Report], command: Sequence[str]) -> str:
    """Write the page of analyses, with the facts about their runs on top.

    command: the words of the command line that made them.
    """
    runs = {folder.resolve(): Run(folder) for report in reports for folder in report.runs}
    about = facts_table(list(runs.values())) if runs else None
    return page_of(reports, about=about, command=shlex.join(command))


def facts_table(runs: Sequence[Run]) -> Table:
    """Make a table of the facts that any run has, with a column for each."""
    facts = [run_facts(run) for run in runs]
    rows = [[name, *(one[name] for one in facts)] for name in facts[0]]
    columns = [text_column(name) for name in ("run", *(run.folder.resolve().name for run in runs))]
    known = [row for row in rows if any(value != _NONE for value in row[1:])]
    return Table(title="Runs" if len(runs) > 1 else "The run", columns=columns, rows=known)


def _costs(run: Run) -> dict[str, str]:
    """Say what the run cost, as `synmt score --cost` does."""
    table = cost_table([(run.name, [run_cost(run)])])
    columns = [column.title for column in table.columns]
    known = dict(zip(columns, shown_rows(table)[0], strict=True))
    return {fact: known.get(column, _NONE) for fact, column in _COSTS.items()}


def _model(model: ModelRecipe) -> str:
    heads = "" if model.architecture == "lstm" else f", {model.heads} heads"
    layers = f"{model.encoder_layers} + {model.decoder_layers} layers"
    return f"{model.architecture}, {layers}, width {model.model_dim}{heads}"


def _variant(one: VariantRecipe) -> str:
    parts = [one.side]
    if one.layers == "all":
        parts.append("all layers")
    elif one.layers is not None:
        parts.append(f"layer{'s' * (len(one.layers) != 1)} {', '.join(map(str, one.layers))}")
    if one.heads is not None:
        parts.append(f"{one.heads} head{'s' * (one.heads != 1)}")
    parts += [f"{name} {value}" for name, value in one.options.items()]
    return f"{one.name} ({', '.join(parts)})"


def _parser(recipe: Recipe, identity: RunParser | None) -> str:
    """Name the parser of the trees that the model reads, and how they were changed."""
    section = recipe.parser
    changed = [f"{section.control} trees"] * (section.control != "none")
    changed += [f"{100 * section.rewire:g} % rewired"] * (section.rewire > 0)
    name = f"Stanza ({identity.get('model')}, {identity.get('language')})" if identity else ""
    return ", ".join([part for part in [name, *changed] if part]) or _NONE
