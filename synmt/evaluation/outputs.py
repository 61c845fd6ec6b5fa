"""The translations of a test set by one system: from a run folder, from files, or from memory."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from synmt.errors import SynmtError, unknown_name
from synmt.evaluation.metrics import MetricOptions, options_of, read_aligned

if TYPE_CHECKING:
    from synmt.recipe.schema import EvaluationRecipe


_Texts = tuple[list[str], list[str], list[str]]
"""Source, reference and hypothesis."""


@dataclass(frozen=True)
class Outputs:
    """A system's translations of a test set, line by line: joined text, or words if tokens are
    scored.

    system: the run's name, or the file's.
    test: the test set's name; empty for files.
    source: empty if it is not known.
    scoring: the metric options of the run's recipe.
    tokens: source, reference and hypothesis as words, if the run tokenizes text.
    raw_source: the source as text, if `source` has words.
    run: the run folder; None for files.
    path: of the run folder or file, as it is shown.
    """

    system: str
    test: str
    source: list[str]
    reference: list[str]
    hypothesis: list[str]
    scoring: MetricOptions = field(default_factory=MetricOptions)
    tokens: _Texts | None = None
    raw_source: list[str] | None = None
    run: Path | None = None
    path: str = ""

    @property
    def folder(self) -> Path | None:
        """The folder of the test set in that of the run; None for files."""
        return self.run / "tests" / self.test if self.run else None

    def as_read(self) -> Outputs:
        """Return the same translations as the words that the model reads and writes."""
        if self.tokens is None:
            return self
        source, reference, hypothesis = self.tokens
        return replace(
            self,
            source=source,
            reference=reference,
            hypothesis=hypothesis,
            raw_source=self.raw_source or self.source,
        )


def the_test_set(name: str) -> str:
    """Name a test set in a sentence: `the test set` if it has no other name, else
    `test set hard`."""
    return "the test set" if name == "test" else f"test set {name}"


def from_run(run: Path | None, test: str | None = None, *, on: str | None = None) -> Outputs:
    """Read a run's translations of a test set.

    run: a run folder; None for the newest finished run.
    test: the test set; None for `test`, else the first by name.
    on: `text` or `tokens`; None for what the recipe scores.
    """
    from synmt.run_folder import find_run

    opened = find_run(run)
    names = tests_of(opened.folder)
    if test is None:
        test = "test" if "test" in names else names[0]
    elif test not in names:
        raise unknown_name("test set", test, names, where=str(opened.folder))
    folder = opened.test_folder(test)
    tokens = tokens_folder(folder)
    outputs = Outputs(
        opened.folder.resolve().name,
        test,
        *_read_texts(folder),
        scoring=scored_on(on, opened.recipe().evaluation),
        tokens=_read_texts(tokens) if tokens.is_dir() else None,
        run=opened.folder,
    )
    return outputs.as_read() if outputs.scoring.on_tokens else outputs


def scored_on(on: str | None, recipe: EvaluationRecipe | None = None) -> MetricOptions:
    """Choose the options of metrics: the recipe's or the defaults, unless the user scores the other
    texts."""
    options = options_of(recipe) if recipe else MetricOptions()
    if on is None or options.on_tokens == (on == "tokens"):
        return options
    tokenize = "none" if on == "tokens" else MetricOptions.tokenize
    return replace(options, tokenize=tokenize, on_tokens=on == "tokens")


def tests_of(run: Path) -> list[str]:
    """List the test sets that a run has translated."""
    names = sorted(path.parent.name for path in run.glob("tests/*/hypothesis.txt"))
    if not names:
        do = "Run the same `synmt train` again, with test sets in its recipe"
        raise SynmtError("the run has no test translations", where=run, do=do)
    return names


def tokens_folder(test: Path) -> Path:
    """Name the folder with the words of a test set; a run that does not tokenize has none."""
    return test / "tokens"


def _read_texts(folder: Path) -> _Texts:
    reference, source, hypothesis = read_aligned(
        [folder / f"{name}.txt" for name in ("reference", "source", "hypothesis")]
    )
    return source, reference, hypothesis
