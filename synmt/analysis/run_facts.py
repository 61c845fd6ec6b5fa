"""The facts about a run that a page shows: its recipe, model, variants, steps and parser."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from synmt.evaluation.cost import cost_line
from synmt.files.schemas import RunParser
from synmt.recipe.model import ModelRecipe
from synmt.recipe.schema import Recipe, VariantRecipe
from synmt.reporting.page import page_of
from synmt.reporting.values import Report, Table, text_column
from synmt.run_folder import Run

_NONE = "–"


def run_facts(run: Run) -> dict[str, str]:
    """Describe a run: facts by name, as text."""
    recipe, info = run.recipe(), run.info()
    return {
        "recipe": recipe.name,
        "languages": f"{recipe.source} → {recipe.target}",
        "corpus": recipe.corpus.name or str(recipe.corpus.folder or "own files"),
        "model": _model(recipe.model),
        "variants": "; ".join(map(_variant, recipe.syntax.variants)) or "none",
        "parser": _parser(recipe, info.get("parser")),
        "steps": str(info.get("steps") or _NONE),
        "cost": cost_line(run) or _NONE,
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
    """Make a table of the facts, with a column for each run."""
    facts = [run_facts(run) for run in runs]
    rows = [[name, *(one[name] for one in facts)] for name in facts[0]]
    columns = [text_column(name) for name in ("run", *(run.folder.resolve().name for run in runs))]
    return Table(title="Runs", columns=columns, rows=rows)


def _model(model: ModelRecipe) -> str:
    heads = "" if model.architecture == "lstm" else f", {model.heads} heads"
    layers = f"{model.encoder_layers} + {model.decoder_layers} layers"
    return f"{model.architecture}, {layers}, width {model.model_dim}{heads}"


def _variant(one: VariantRecipe) -> str:
    layers = " ".join(map(str, one.layers)) if isinstance(one.layers, tuple) else one.layers
    places = {"layers": layers, "heads": one.heads, **one.options}
    parts = [f"{name} {value}" for name, value in places.items() if value is not None]
    return f"{one.name} ({', '.join([one.side, *parts])})"


def _parser(recipe: Recipe, identity: RunParser | None) -> str:
    """Name the parser of the trees that the model reads, and how they were changed."""
    section, parts = recipe.parser, []
    if identity:
        parts.append(f"Stanza ({identity.get('model')}, {identity.get('language')})")
    if section.control != "none":
        parts.append(f"{section.control} trees")
    if section.rewire:
        parts.append(f"{100 * section.rewire:g} % rewired")
    return ", ".join(parts) or _NONE
