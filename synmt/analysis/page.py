"""The web page of several analyses: their sections, facts about the runs, and the command that made it."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from datetime import date

from synmt import __version__
from synmt.analysis.report import AnalysisReport
from synmt.analysis.run_facts import facts_table
from synmt.reporting.page import Section, code, make_page, paragraph, sections_of, table
from synmt.reporting.values import Report
from synmt.run import Run


def page_of(reports: Sequence[Report | AnalysisReport], command: Sequence[str]) -> str:
    """Write the page of analyses.

    command: the words of the command line that made them.
    """
    runs = {folder.resolve(): Run(folder) for report in reports for folder in report.runs}
    columns, rows = facts_table(list(runs.values()))
    made_by = paragraph(f"Made by synmt {__version__} on {date.today().isoformat()}:", faint=True)
    return make_page(
        ", ".join(dict.fromkeys(map(_name, reports))),
        [section for report in reports for section in _sections(report)],
        about=table(columns, rows, caption="Runs" if len(runs) > 1 else "The run", words=True) if rows else "",
        made_by=made_by + code(shlex.join(command)),
    )


def _sections(report: Report | AnalysisReport) -> Sequence[Section]:
    return sections_of(report) if isinstance(report, Report) else report.to_html()


def _name(report: Report | AnalysisReport) -> str:
    return report.system or report.title if isinstance(report, Report) else report.system
