"""The systems to score and their reference: files, run folders, and patterns that match the seeds of a system."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from synmt.errors import SynmtError, UsageError, all_in_one
from synmt.evaluation.metrics import MetricOptions, looks_tokenized, read_aligned
from synmt.evaluation.outputs import Outputs, from_run, tokens_folder
from synmt.evaluation.spaces import warn_of_unspaced
from synmt.evaluation.system_paths import check_existence, group_paths, printable, short_names, warn_of_single_seeds
from synmt.files.reading import read_lines

_logger = logging.getLogger(__name__)

_FEW = 30
"""With fewer sentences than this, a bootstrap interval is far too narrow; with one sentence it has no width."""


@dataclass(frozen=True)
class Text:
    """Lines of the test set.

    name: the run's or the file's.
    statistics_folder: where the run stores the statistics of these translations; None for a file.
    """

    name: str
    lines: list[str]
    statistics_folder: Path | None = None

    @property
    def run(self) -> Path | None:
        """The folder of the run that made the translations; None for a file."""
        return self.statistics_folder.parents[2] if self.statistics_folder else None


@dataclass(frozen=True)
class System:
    """A system to compare: one text, or one for each training seed."""

    name: str
    seeds: list[Text]


@dataclass(frozen=True)
class ScoringInputs:
    """Systems with the reference that all of them are scored against.

    source: None if it was not given and no run has it.
    metric_options: those of the first run's recipe, else the defaults.
    """

    systems: list[System]
    reference: Text
    source: list[str] | None = None
    metric_options: MetricOptions = field(default_factory=MetricOptions)

    @property
    def texts(self) -> Iterator[Text]:
        """All translations, system by system, seed by seed."""
        return (text for system in self.systems for text in system.seeds)


_Location = tuple[Path, Outputs | None]
"""A file of translations, or a run folder with the outputs of its test set."""


def read_systems(
    paths: Sequence[Path],
    *,
    reference: Path | None = None,
    source: Path | None = None,
    test: str | None = None,
    group_seeds: bool = False,
    on: str | None = None,
) -> ScoringInputs:
    """Read systems from `-`, files, run folders, and patterns of these; the matches of a pattern are seeds of a system.

    reference, source: files; by default those of the first run.
    test: the test set of the runs; by default `test`, else the first run's first by name.
    group_seeds: whether paths that differ only in a seed, or after their last dot, are one system.
    on: `text` or `tokens` of runs; by default as the first run's recipe says.

    The log names the paths that a pattern matches, or that were grouped by their seeds.
    """
    # missing systems are reported before a missing reference
    check_existence(paths)
    groups = group_paths(paths, group_seeds=group_seeds)
    if group_seeds:
        warn_of_single_seeds(groups)
    locations = list(_locate([path for _, members in groups for path in members], test))
    runs = [(path, run) for path, run in locations if run]
    if test and not runs:
        raise UsageError("none of the systems is a run, so none has test sets", where="--test", do="Leave it out")
    options = _scored_on(on, runs[0][1].scoring if runs else MetricOptions())
    if options.on_tokens:
        _name_files_of_words([path for path, run in locations if run is None] + [path for path in [reference] if path])
    if reference is None:
        reference = _find_reference(runs, tokens=options.on_tokens)
    if source is None and runs:
        source = _test_folder(*runs[0]) / "source.txt"
    folder = partial(_texts_folder, tokens=options.on_tokens)
    hypotheses = [folder(path, run) / "hypothesis.txt" if run else path for path, run in locations]
    files = {path for path, run in locations if run is None and path.exists()} if reference.exists() else set()
    for path in filter(reference.samefile, files):
        _logger.warning(f"{printable(path)} is the reference itself")
    first, *texts = read_aligned([reference, *hypotheses, *([source] if source else [])])
    read = iter([_make_text(*location, lines) for location, lines in zip(locations, texts, strict=False)])
    names = short_names([name for name, _ in groups])
    systems = [System(name, [next(read) for _ in members]) for name, (_, members) in zip(names, groups, strict=True)]
    return ScoringInputs(systems, Text(printable(reference), first), texts[-1] if source else None, options)


def systems_from_lines(
    systems: Sequence[Sequence[str]], reference: Sequence[str], source: Sequence[str] | None = None
) -> ScoringInputs:
    """Take systems that are in memory, one seed of each; they are named `system 1`, `system 2`, …"""
    names = (f"system {number}" for number in range(1, len(systems) + 1))
    return ScoringInputs(
        [System(name, [Text(name, list(lines))]) for name, lines in zip(names, systems, strict=True)],
        Text("reference", list(reference)),
        None if source is None else list(source),
    )


def warn_about_texts(inputs: ScoringInputs, metrics: Sequence[str], tokenize: str) -> None:
    """Warn of texts that the metrics cannot score well: few, empty or tokenized lines, words without spaces.

    metrics: names in `metrics.METRICS`.
    tokenize: the tokenization of BLEU.
    """
    reference = inputs.reference
    if len(reference.lines) < _FEW:
        _logger.warning(f"with fewer than {_FEW} sentences, intervals and p-values are unreliable")
    bleu = any(name.startswith("bleu") for name in metrics)
    warn_of_unspaced(reference.name, reference.lines, metrics, tokenize)
    for text in (reference, *inputs.texts):
        if bleu and tokenize != "none" and looks_tokenized(text.lines):
            _logger.warning(f"{text.name} looks tokenized; BLEU expects plain text, or `--tokenize none`")
        empty = sum(not line.strip() for line in text.lines)
        if empty and text is not reference:
            _logger.warning(f"{text.name}: {empty:,} of {len(text.lines):,} translations are empty")


def _locate(paths: Sequence[Path], test: str | None) -> Iterator[_Location]:
    """Find the outputs of each run; all runs use the test set of the first run."""
    for path in paths:
        outputs = from_run(path, test) if path.is_dir() else None
        test = outputs.test if outputs else test
        yield path, outputs


def _test_folder(run: Path, outputs: Outputs) -> Path:
    return run / "tests" / outputs.test


def _scored_on(on: str | None, recipe: MetricOptions) -> MetricOptions:
    """Choose the options of metrics: the recipe's, unless the user scores the other texts."""
    if on not in (None, "text", "tokens"):
        raise UsageError(f"there are no '{on}' to score", where="--on", allowed="What is scored: text, tokens")
    if on is None or recipe.on_tokens == (on == "tokens"):
        return recipe
    lowercase = recipe.lowercase
    return MetricOptions("none", lowercase, on_tokens=True) if on == "tokens" else MetricOptions(lowercase=lowercase)


def _name_files_of_words(paths: Sequence[Path]) -> None:
    for path in paths:
        _logger.info(f"scores are on tokens, so {printable(path)} must have words with a space between two")


def _texts_folder(run: Path, outputs: Outputs, *, tokens: bool) -> Path:
    """Find the folder with the text or the words of a test set; a run that does not tokenize has only one of them."""
    folder = _test_folder(run, outputs)
    return tokens_folder(folder) if tokens and tokens_folder(folder).is_dir() else folder


def _find_reference(runs: Sequence[tuple[Path, Outputs]], *, tokens: bool) -> Path:
    """Find the reference that all runs share."""
    if not runs:
        raise UsageError("the reference is missing", do="Give it with `-r FILE`")
    texts = [list(read_lines(_texts_folder(path, run, tokens=tokens) / "reference.txt")) for path, run in runs]
    (first, outputs), *others = runs
    wrong = [
        SynmtError(
            f"its test set has other references than that of {first}",
            where=str(path),
            do="Score runs that were tested on the same sentences, or give the reference with `-r FILE`",
        )
        for (path, _), text in zip(others, texts[1:], strict=True)
        if text != texts[0]
    ]
    if wrong:
        raise all_in_one(wrong)
    return _texts_folder(first, outputs, tokens=tokens) / "reference.txt"


def _make_text(path: Path, run: Outputs | None, lines: list[str]) -> Text:
    return Text(printable(path), lines, _test_folder(path, run) / "segments" if run else None)
