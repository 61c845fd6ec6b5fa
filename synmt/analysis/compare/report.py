"""Which sentences do systems translate most differently?"""

from __future__ import annotations

import logging
from dataclasses import replace
from functools import cache
from pathlib import Path
from string import ascii_uppercase

from synmt.analysis.compare.page import boxes_of, comparison_as_html
from synmt.analysis.compare.sentences import ComparedSystems, rank_differences, ranking_metric
from synmt.analysis.compare.text import to_json, to_tables, to_text
from synmt.analysis.compare.words import WordDetails, find_words
from synmt.analysis.inputs import score_outputs, scoring_options
from synmt.analysis.options import CompareOptions
from synmt.analysis.report import AnalysisReport
from synmt.analysis.systems import read_translations
from synmt.errors import UsageError, counted, did_you_mean_path, listed
from synmt.evaluation.metrics import make_metric
from synmt.evaluation.outputs import Outputs
from synmt.evaluation.system_paths import match_paths
from synmt.files.writing import write_atomically
from synmt.reporting.svg import check_svg

_logger = logging.getLogger(__name__)


def analyze_compare(options: CompareOptions) -> AnalysisReport:
    """Find the sentences that systems translate most differently from the first one."""
    if options.plot:
        check_svg(options.plot, "boxes of scores")
    outputs = _read_outputs(options)
    settings = scoring_options(outputs[0], options.tokenize, options.lowercase, options.metric)
    metrics = make_metric(options.metric, settings), ranking_metric(options.metric, settings)
    scores, ranks = ([score_outputs(one, each) for each in outputs] for one in metrics)
    words = [one.as_read() for one in outputs]
    # alignments are those of words: systems that tokenize the source in different ways are compared without them
    same = all(one.source == words[0].source for one in words)
    compared = rank_differences(words if same else outputs, scores, ranks, top=options.top)
    runs = [one.run for one in outputs]
    if options.plot:
        _save_boxes(compared, options.plot)

    @cache  # parsing and aligning take long, and the text needs neither
    def details() -> WordDetails:
        return find_words(compared.sentences, runs, options.source, options.parser, raw=not same)

    return AnalysisReport(
        listed(one.name for one in compared.systems),
        to_json=lambda: to_json(compared, details()),
        to_text=lambda: to_text(compared),
        to_html=lambda: [comparison_as_html(compared, details())],
        runs=tuple(dict.fromkeys(one.run for one in outputs if one.run)),
        to_tables=lambda: to_tables(compared),
    )


def _save_boxes(compared: ComparedSystems, path: Path) -> None:
    replaced = path.exists()
    with write_atomically(path) as stream:
        stream.write(boxes_of(compared))
    _logger.info("plot: %s%s", path, " (replaced)" * replaced)


def _check_count(systems: int) -> None:
    if not 2 <= systems <= len(ascii_uppercase):
        given = f"{counted(systems, 'system')} {'is' if systems == 1 else 'are'} given"
        raise UsageError(given, where="--compare", do=f"Give 2 to {len(ascii_uppercase)} systems")


def _read_outputs(options: CompareOptions) -> list[Outputs]:
    """Read runs and files; all matches of a pattern are systems."""
    paths = match_paths(options.compare)
    for path in paths:
        if not path.exists() and str(path) != "-":
            do = did_you_mean_path(path) or "Give two runs, or two files"
            raise UsageError("no such file or run folder", where=str(path), do=do)
    _check_count(len(paths))
    files_only = not any(path.is_dir() for path in paths)
    if files_only and options.references is None:
        raise UsageError("translations in files need references", do="Add `--references FILE`")
    if files_only and options.test:
        raise UsageError("files belong to no test set", where="--test", do="Leave it out")
    if not files_only and (options.references or options.source):
        raise UsageError("a run has its own source and references", do="Leave out `--references` and `--source`")
    systems = read_translations(paths, test=options.test, references=options.references, source=options.source)
    # one that is given twice counts once
    _check_count(len(systems))
    return [replace(system.seeds[0], system=system.name) for system in systems]
