"""`synmt analyze --compare`: the sentences that two systems translate most differently."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from synmt.analysis.inputs import read_test
from synmt.analysis.scoring import scored, scoring
from synmt.cli.compared_words import Words, find_words
from synmt.cli.finding import AnalysisReport
from synmt.errors import UsageError

if TYPE_CHECKING:
    from synmt.analysis.compare.sentences import Compared, ComparedSentence
    from synmt.analysis.html import Section
    from synmt.evaluation.outputs import Outputs


@dataclass(frozen=True)
class _Pair:
    """Two systems' translations of the same sentences, and the run folder of each that is one."""

    a: Outputs
    b: Outputs
    run_a: Path | None
    run_b: Path | None


def analyze_compare(
    *,
    compare: tuple[Path, Path],
    test: str | None,
    references: Path | None,
    source: Path | None,
    metric: str,
    tokenize: str | None,
    lowercase: bool | None,
    parser: str | None,
    top: int,
) -> AnalysisReport:
    """Find the sentences that two systems translate most differently."""
    from synmt.analysis.compare.sentences import rank_differences, ranking_metric
    from synmt.evaluation.metrics import make_metric

    pair = _read_pair(*compare, test, references, source)
    options = scoring(pair.a, tokenize, lowercase)
    chosen, ranking = make_metric(metric, options), ranking_metric(metric, options)
    scores, ranks = ((scored(one, pair.a, pair.run_a), scored(one, pair.b, pair.run_b)) for one in (chosen, ranking))
    compared = rank_differences(pair.a, pair.b, scores, ranks, top=top)
    runs = (pair.run_a, pair.run_b)

    @cache  # trees and alignments take long, and the text shows none
    def words() -> Words:
        return find_words(compared.sentences, runs, source, parser)

    return AnalysisReport(
        f"{compared.a} and {compared.b}",
        lambda: _values(compared, words()),
        lambda: _show(compared),
        lambda: [_section(compared, words())],
        tuple(run for run in runs if run),
    )


def _read_pair(a: Path, b: Path, test: str | None, references: Path | None, source: Path | None) -> _Pair:
    """Read two runs, two files, or one of each."""
    from synmt.evaluation.outputs import baseline_of, from_files

    missing = [str(path) for path in (a, b) if not path.exists() and str(path) != "-"]
    if missing:
        raise UsageError("no such file or run folder", where=missing[0], do="Give two runs, or two files")
    runs = [path if path.is_dir() else None for path in (a, b)]
    if not any(runs):
        if references is None:
            raise UsageError("translations need their references", do="Give them as `--references`")
        if test:
            raise UsageError("files belong to no test set", where="--test", do="Leave it out")
        first = from_files(a, references, source)
        return _named_apart(_Pair(first, baseline_of(first, b), None, None), a, b)
    if references or source:
        raise UsageError("references and source belong to files", do="Leave them out: a run brings its own")
    if runs[0] is None:
        second = read_test(b, test)
        return _named_apart(_Pair(baseline_of(second, a), second, None, b), a, b)
    first = read_test(a, test)
    return _named_apart(_Pair(first, baseline_of(first, b), a, runs[1]), a, b)


def _named_apart(pair: _Pair, a: Path, b: Path) -> _Pair:
    """Call systems by their paths where their names are the same."""
    if pair.a.system != pair.b.system:
        return pair
    return replace(pair, a=replace(pair.a, system=str(a)), b=replace(pair.b, system=str(b)))


def _values(compared: Compared, words: Words) -> dict[str, Any]:
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
        "parser": words.about.parser or None,
        "sentences": [asdict(one) | words.values(one) for one in compared.sentences],
    }


def _show(compared: Compared) -> None:
    found, a, b = compared.difference, compared.a, compared.b
    test = f", test set {compared.test}" if compared.test else ""
    print(f"A: {a}\nB: {b}{test}\n")
    print(
        f"{compared.metric.title}: {compared.score_a:.2f} → {compared.score_b:.2f}, {found.difference:+.2f} "
        f"({found.low:+.2f} to {found.high:+.2f}, p = {found.p_value:.3f})"
    )
    counts = f"better in {compared.wins:,}, equal in {compared.ties:,}, worse in {compared.losses:,}"
    print(f"{compared.ranking.title} of single sentences: B {counts}")
    for heading, some in (("B gains most", compared.gaining), ("B loses most", compared.losing)):
        if some:
            print(f"\n{heading}, by {compared.ranking.title}")
        for one in some:
            print("\n" + "\n".join(_lines(one)))
    print("\n[…]: words that the other translation has not")
    metrics = {f"{one.title}|{one.signature}": one for one in (compared.metric, compared.ranking)}
    for name, metric in metrics.items():
        print(name + ("" if metric.higher_is_better else "; lower is better"))


def _lines(one: ComparedSentence) -> list[str]:
    from synmt.analysis.compare.word_difference import bracketed, kinds

    return [
        f"line {one.line:,}   {one.score_a:.1f} → {one.score_b:.1f}   {one.gain:+.1f}",
        *([f"  source     {one.source}"] if one.source else []),
        f"  reference  {one.reference}",
        f"  A          {bracketed(one.a, kinds(one.a, one.b, one.reference))}",
        f"  B          {bracketed(one.b, kinds(one.b, one.a, one.reference))}",
    ]


def _section(compared: Compared, words: Words) -> Section:
    from synmt.analysis.compare.page import make_section

    gaining, losing = ([words.shown(one) for one in some] for some in (compared.gaining, compared.losing))
    return make_section(compared, gaining, losing, words.about)
