"""Test translations, found in a run folder or given as files."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from synmt.errors import SynmtError, UsageError, did_you_mean
from synmt.evaluation.metrics import MetricOptions, read_aligned
from synmt.files import read_lines

if TYPE_CHECKING:
    from synmt.run import Run


@dataclass(frozen=True)
class Outputs:
    """What one system made of one test set, line by line.

    system: the run's name, or the file's.
    test: the test set's name; empty for files.
    source: empty where no source was given.
    labels: the labels of the sentences, where the run has some.
    other_tests: the run's other test sets.
    scoring: how the run's recipe scores it.
    """

    system: str
    test: str
    source: list[str]
    reference: list[str]
    hypothesis: list[str]
    labels: Path | None = None
    other_tests: tuple[str, ...] = ()
    scoring: MetricOptions = field(default_factory=MetricOptions)


def from_run(run: Path | None, test: str | None = None) -> Outputs:
    """Read a run's translations of a test set; without a run the newest finished one.

    Without a test set named, the one called `test`, else the first by name.
    """
    from synmt.run import find_run

    opened = find_run(run)
    names = tests_of(opened.folder)
    if test is None:
        test = "test" if "test" in names else names[0]
    elif test not in names:
        raise _no_such_test(opened.folder, test, names)
    return _read(opened, test)


def tests_of(run: Path) -> list[str]:
    """Name the test sets that a run has translated."""
    names = sorted(path.parent.name for path in run.glob("tests/*/hypothesis.txt"))
    if not names:
        raise SynmtError(
            "the run has no test translations",
            where=str(run),
            do="A run gets them at its end: finish it by the same `synmt train`, with test sets in its recipe",
        )
    return names


def from_files(hypotheses: Path, references: Path, source: Path | None = None) -> Outputs:
    """Read translations that are no part of a run."""
    reference, hypothesis, *rest = read_aligned([references, hypotheses, *([source] if source else [])])
    return Outputs(_name(hypotheses), "", rest[0] if rest else [], reference, hypothesis)


def baseline_of(outputs: Outputs, baseline: Path) -> Outputs:
    """Read what another run or a file of translations has for the same test sentences."""
    if str(baseline) == "-" or (baseline.exists() and not baseline.is_dir()):
        hypothesis = list(read_lines(baseline))
        if len(hypothesis) != len(outputs.reference):
            raise SynmtError(
                f"{len(hypothesis):,} lines, but {outputs.system} has {len(outputs.reference):,}",
                where=_name(baseline),
                do="Line n of both must translate the same sentence",
            )
        return replace(outputs, system=_name(baseline), hypothesis=hypothesis)
    other = _baseline_run(outputs, baseline)
    if len(other.reference) != len(outputs.reference):
        _differ(outputs, other, f"{len(other.reference):,} sentences, not {len(outputs.reference):,}")
    for number, (one, another) in enumerate(zip(outputs.reference, other.reference, strict=True), start=1):
        if one != another:
            _differ(outputs, other, f"line {number} of the references differs")
    return other


def _baseline_run(outputs: Outputs, baseline: Path) -> Outputs:
    from synmt.run import find_run

    if not baseline.exists():
        raise SynmtError("no such file or run folder", where=str(baseline), do="Give another `--baseline`")
    if not outputs.test:
        raise UsageError(
            "translations given as a file cannot be compared with a run",
            where=str(baseline),
            do="Give the file of its translations, tests/NAME/hypothesis.txt in its folder",
        )
    opened = find_run(baseline)
    names = tests_of(opened.folder)
    if outputs.test not in names:
        raise _no_such_test(opened.folder, outputs.test, names)
    return _read(opened, outputs.test)


def _read(run: Run, test: str) -> Outputs:
    folder = run.test_folder(test)
    reference, source, hypothesis = read_aligned(
        [folder / f"{name}.txt" for name in ("reference", "source", "hypothesis")]
    )
    labels = folder / "labels.tsv"
    return Outputs(
        run.folder.resolve().name,
        test,
        source,
        reference,
        hypothesis,
        labels if labels.exists() else None,
        tuple(name for name in tests_of(run.folder) if name != test),
        _scoring(run),
    )


def _scoring(run: Run) -> MetricOptions:
    evaluation = run.evaluation()
    return MetricOptions(evaluation.tokenize, evaluation.lowercase)


def _no_such_test(run: Path, test: str, names: list[str]) -> SynmtError:
    return UsageError(
        f"the run has no test set '{test}'",
        where=str(run),
        allowed=f"Its test sets: {', '.join(names)}",
        do=did_you_mean(test, names) or "Choose one with `--test`",
    )


def _differ(outputs: Outputs, other: Outputs, how: str) -> None:
    raise SynmtError(
        f"its test set '{other.test}' is not that of {outputs.system}: {how}",
        where=other.system,
        do="Compare runs that were tested on the same sentences",
    )


def _name(path: Path) -> str:
    return "standard input" if str(path) == "-" else path.name
