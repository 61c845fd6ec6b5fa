"""The facts about a run that a page shows: its recipe, model, variants, steps and parser."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from synmt.evaluation.cost import cost_line
from synmt.reporting.page import page_of
from synmt.reporting.values import Report, Table, text_column
from synmt.run_folder import Run

_SIZES = {"architecture", "encoder_layers", "decoder_layers", "model_dim", "heads"}
"""The keys of the model that are shown."""


def run_facts(run: Run) -> dict[str, str]:
    """Describe a run: facts by name, as text; those that are not known are empty."""
    recipe, info = run.recipe(), run.info()
    parser = info.get("parser")
    variants = recipe.syntax.model_dump(mode="json", exclude_defaults=True).get("variants", ())
    return {
        "recipe": recipe.name,
        "languages": f"{recipe.source} → {recipe.target}",
        "corpus": recipe.corpus.name or str(recipe.corpus.folder or "own files"),
        "model": _keys(recipe.model.model_dump(include=_SIZES)),
        "variants": "; ".join(map(_keys, variants)),
        "trees": _keys(recipe.parser.model_dump(exclude_defaults=True)),
        "parser": f"{parser.get('model')}, {parser.get('language')}" if parser else "",
        "steps": str(info.get("steps") or ""),
        "cost": cost_line(run),
        "finished": str(info.get("finished_at") or "")[:10],
    }


def _keys(section: Mapping[str, Any]) -> str:
    """Write the keys of a section of a recipe."""
    return ", ".join(f"{key}: {value}" for key, value in section.items())


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
    rows = [[name, *(of_run[name] for of_run in facts)] for name in facts[0]]
    columns = [text_column(name) for name in ("run", *(run.folder.resolve().name for run in runs))]
    return Table(title="Runs", columns=columns, rows=rows)
