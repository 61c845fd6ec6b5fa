"""Which sentences do two systems translate most differently?"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from synmt.analysis.compare.page import comparison_as_html
from synmt.analysis.compare.sentences import ComparedSentence, ComparedSystems, rank_differences, ranking_metric
from synmt.analysis.compare.word_difference import bracketed, classify_words
from synmt.analysis.compare.words import WordDetails, find_words
from synmt.analysis.inputs import read_test, score_outputs, scoring_options
from synmt.analysis.options import CompareOptions
from synmt.analysis.report import AnalysisReport
from synmt.errors import UsageError
from synmt.evaluation.metrics import make_metric
from synmt.evaluation.outputs import Outputs, baseline_of, from_files


@dataclass(frozen=True)
class _Pair:
    """Translations of the same sentences by two systems, with their run folders; None for files."""

    a: Outputs
    b: Outputs
    run_a: Path | None
    run_b: Path | None


def analyze_compare(options: CompareOptions) -> AnalysisReport:
    """Find the sentences that two systems translate most differently."""
    pair = _read_pair(options)
    settings = scoring_options(pair.a, options.tokenize, options.lowercase)
    metrics = make_metric(options.metric, settings), ranking_metric(options.metric, settings)
    scores, ranks = ((score_outputs(one, pair.a), score_outputs(one, pair.b)) for one in metrics)
    a, b = pair.a.as_read(), pair.b.as_read()
    # alignments are those of words: systems that cut the source in different ways are compared without them
    same = a.source == b.source
    compared = rank_differences(*((a, b) if same else (pair.a, pair.b)), scores, ranks, top=options.top)
    runs = (pair.run_a, pair.run_b) if same else (None, None)

    @cache  # parsing and aligning take long, and the text needs neither
    def details() -> WordDetails:
        return find_words(compared.sentences, runs, options.source, options.parser)

    return AnalysisReport(
        f"{compared.a} and {compared.b}",
        to_json=lambda: _to_json(compared, details()),
        to_text=lambda: _to_text(compared),
        to_html=lambda: [comparison_as_html(compared, details())],
        runs=tuple(run for run in (pair.run_a, pair.run_b) if run),
    )


def _read_pair(options: CompareOptions) -> _Pair:
    """Read two runs, two files, or one of each."""
    a, b = options.compare
    missing = [str(path) for path in (a, b) if not path.exists() and str(path) != "-"]
    if missing:
        raise UsageError("no such file or run folder", where=missing[0], do="Give two runs, or two files")
    run_a, run_b = (path if path.is_dir() else None for path in (a, b))
    files_only = run_a is None and run_b is None
    if files_only and options.references is None:
        raise UsageError("translations in files need references", do="Add `--references FILE`")
    if files_only and options.test:
        raise UsageError("files belong to no test set", where="--test", do="Leave it out")
    if not files_only and (options.references or options.source):
        raise UsageError("a run has its own source and references", do="Leave out `--references` and `--source`")
    if run_a is None and run_b is not None:
        second = read_test(b, options.test)
        first = baseline_of(second, a)
    else:
        first = (
            from_files(a, options.references, options.source)
            if options.references is not None
            else read_test(a, options.test)
        )
        second = baseline_of(first, b)
    if first.system == second.system:
        first, second = replace(first, system=str(a)), replace(second, system=str(b))
    return _Pair(first, second, run_a, run_b)


def _to_json(compared: ComparedSystems, details: WordDetails) -> dict[str, Any]:
    return {
        "a": compared.a,
        "b": compared.b,
        "test": compared.test or None,
        "metric": compared.metric.title,
        "signature": compared.metric.signature,
        "higher_is_better": compared.metric.higher_is_better,
        "score_a": compared.score_a,
        "score_b": compared.score_b,
        "difference": asdict(compared.difference),
        "ranked_by": compared.ranking.title,
        "ranking_signature": compared.ranking.signature,
        "wins": compared.wins,
        "ties": compared.ties,
        "losses": compared.losses,
        "parser": details.parser or None,
        "sentences": [asdict(one) | details.as_json(one.line) for one in compared.sentences],
    }


def _to_text(compared: ComparedSystems) -> Iterator[str]:
    found = compared.difference
    test = f", test set {compared.test}" if compared.test else ""
    yield f"A: {compared.a}\nB: {compared.b}{test}\n"
    yield (
        f"{compared.metric.title}: {compared.score_a:.2f} → {compared.score_b:.2f}, {found.difference:+.2f} "
        f"({found.low:+.2f} to {found.high:+.2f}, p = {found.p_value:.3f})"
    )
    counts = f"better in {compared.wins:,}, equal in {compared.ties:,}, worse in {compared.losses:,}"
    yield f"{compared.ranking.title} of single sentences: B {counts}"
    for heading, sentences in (("B gains most", compared.gaining), ("B loses most", compared.losing)):
        if sentences:
            yield f"\n{heading}, by {compared.ranking.title}"
        for one in sentences:
            yield from ("", *_sentence_lines(one))
    yield "\n[…]: words that the other translation does not have"
    metrics = {f"{one.title}|{one.signature}": one for one in (compared.metric, compared.ranking)}
    for name, metric in metrics.items():
        yield name + ("" if metric.higher_is_better else "; lower is better")


def _sentence_lines(one: ComparedSentence) -> Iterator[str]:
    yield f"line {one.line:,}   {one.score_a:.1f} → {one.score_b:.1f}   {one.gain:+.1f}"
    if one.source:
        yield f"  source     {one.source}"
    yield f"  reference  {one.reference}"
    yield f"  A          {bracketed(one.a, classify_words(one.a, one.b, one.reference))}"
    yield f"  B          {bracketed(one.b, classify_words(one.b, one.a, one.reference))}"
