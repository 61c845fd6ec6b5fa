"""The recipes of the runs that a page is about."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from synmt.arrays import Texts
from synmt.recipe.yaml_text import dump_yaml
from synmt.reporting.page import page_of
from synmt.reporting.values import Report
from synmt.run_folder import Run


def page_with_recipes(reports: Sequence[Report], command: Texts) -> str:
    """Write the page of analyses, with the recipes of their runs below them.

    command: the words of the command line that made them.
    """
    recipes = {
        run.resolve().name: dump_yaml(
            Run(run).recipe().model_dump(mode="json", exclude_defaults=True)
        )
        for report in reports
        for run in report.runs
    }
    return page_of(reports, recipes=recipes, command=shlex.join(command))
