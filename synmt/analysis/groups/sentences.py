"""The sentences to group: checks the options, and reads the translations and labels that they name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import compress
from typing import TYPE_CHECKING, TypeVar

from synmt.analysis.groups.buckets import PAPERS, UNITS, paper_buckets, parse_buckets
from synmt.analysis.groups.labels import choose_sentences, read_labels
from synmt.analysis.inputs import check_name, read_test
from synmt.arrays import SIDES, BoolArray, Side
from synmt.errors import UsageError
from synmt.evaluation.outputs import Outputs, baseline_of, from_files
from synmt.run import Run, find_run

if TYPE_CHECKING:
    from synmt.analysis.options import GroupOptions

_T = TypeVar("_T")


@dataclass(frozen=True, eq=False)
class Sentences:
    """A test set translated by one system or two, and which of its sentences to group.

    run, baseline_run: the runs that made the translations; None for files.
    labels: all label columns by name, with a value for each sentence of the test set; empty if no option needs them.
    chosen: (N,) which sentences meet the conditions of `--where`; None for all.
    """

    outputs: Outputs
    run: Run | None
    baseline: Outputs | None = None
    baseline_run: Run | None = None
    labels: dict[str, list[str]] = field(default_factory=dict)
    chosen: BoolArray | None = None

    def select(self, values: Sequence[_T]) -> list[_T]:
        """Keep the values of the chosen sentences."""
        return list(values if self.chosen is None else compress(values, self.chosen))

    def lines(self, side: Side) -> list[str]:
        """Return the words of one side of the whole test set; the target is the reference."""
        outputs = self.outputs.as_read()
        if side == "target":
            return outputs.reference
        if not outputs.source:
            raise UsageError(
                "lengths and trees of the source need the source text",
                do="Give it as `--source`, or use `--side target`",
            )
        return outputs.source


def read_sentences(options: GroupOptions) -> Sentences:
    """Read the translations of a run or of files, those of the baseline, and the labels."""
    outputs, run = _read_system(options)
    baseline = baseline_run = None
    if options.baseline is not None:
        baseline = baseline_of(outputs, options.baseline)
        baseline_run = Run(options.baseline) if options.baseline.is_dir() else None
    labels = _read_labels(options, outputs) if options.by_label or options.where else {}
    chosen = choose_sentences(labels, options.where) if options.where else None
    return Sentences(outputs, run, baseline, baseline_run, labels, chosen)


def _read_system(options: GroupOptions) -> tuple[Outputs, Run | None]:
    if options.hypotheses is None:
        if options.references or options.source:
            raise UsageError("references and source belong to translations", do="Give them as `--hypotheses`")
        run = find_run(options.run)
        return read_test(run.folder, options.test), run
    if options.run or options.test:
        raise UsageError("`--hypotheses` cannot be combined with a run or its test set", do="Give only one of them")
    if options.references is None:
        raise UsageError("translations need their references", do="Give them as `--references`")
    return from_files(options.hypotheses, options.references, options.source), None


def _read_labels(options: GroupOptions, outputs: Outputs) -> dict[str, list[str]]:
    path = options.labels or outputs.labels
    if path is None:
        raise UsageError(
            f"there are no labels with {outputs.test or outputs.system}", do="Give a file: `synmt analyze LABELS.tsv …`"
        )
    return read_labels(path, len(outputs.reference))


def check_options(options: GroupOptions) -> None:
    """Raise UsageError for options that do not fit together, before anything is read."""
    if not any((options.by_length, options.by_depth, options.by_distance, options.by_relation, options.by_label)):
        raise UsageError("no groups are chosen", do="Choose at least one, such as `--by-length`")
    if not options.by_label and (options.label or (options.labels and not options.where)):
        raise UsageError("no chosen analysis uses the labels", do="Add `--by-label`")
    check_name(options.unit, UNITS, "unit")
    check_name(options.side or "source", SIDES, "side")
    if options.buckets is not None:
        _check_buckets(options, options.buckets)
    if options.plot:
        from synmt.analysis.plots import check_plot

        check_plot(options.plot)


def _check_buckets(options: GroupOptions, buckets: str) -> None:
    edges, of_paper = parse_buckets(buckets), paper_buckets(buckets) is not None
    measures = [f"--by-{name}" for name in ("length", "depth", "distance") if getattr(options, f"by_{name}")]
    if of_paper and not options.by_length:
        raise UsageError(f"{', '.join(PAPERS)} are buckets of lengths", where="--buckets", do="Add `--by-length`")
    if not measures:
        do = "Add `--by-length`, `--by-depth` or `--by-distance`"
        raise UsageError("no analysis uses buckets", where="--buckets", do=do)
    if len(measures) > 1 and not of_paper:
        what = f"the same numbers cannot be buckets of {' and '.join(measures)}"
        raise UsageError(what, where="--buckets", do="Choose one of them")
    if options.by_length and (edges[0] < 1 or any(edge != int(edge) for edge in edges)):
        raise UsageError("lengths are whole numbers from 1 on", where="--buckets", do="Write for example `10,20,30`")
