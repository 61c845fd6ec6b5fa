"""The words of a test set: sources, references and the translations of all systems, tokenized and matched."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from synmt.analysis.systems import SystemOutputs
from synmt.analysis.words.matching import TokenizedText, match_words
from synmt.analysis.words.tokenizing import in_case, tokenize_text
from synmt.arrays import IntArray
from synmt.errors import UsageError
from synmt.evaluation.metrics import MetricOptions
from synmt.evaluation.outputs import Outputs


@dataclass(frozen=True, eq=False)
class WordTexts:
    """A test set translated by systems, the first of which is the baseline.

    options: how lines are tokenized, and whether case counts.
    """

    systems: list[SystemOutputs]
    options: MetricOptions

    @property
    def names(self) -> list[str]:
        """The names of the systems."""
        return [system.name for system in self.systems]

    @property
    def outputs(self) -> Iterator[Outputs]:
        """All translations, system by system, seed by seed."""
        return (seed for system in self.systems for seed in system.seeds)

    @property
    def first(self) -> Outputs:
        """The first translation of the baseline, with the source and the references of all."""
        return self.systems[0].seeds[0]

    @property
    def runs(self) -> list[Path]:
        """The run folders of the systems, in their order."""
        return [one.run for one in self.outputs if one.run]

    @cached_property
    def reference(self) -> TokenizedText:
        """The words of the references."""
        return self._cut(self.first.reference)

    @cached_property
    def source(self) -> TokenizedText:
        """The words of the source; raises UsageError if it is unknown."""
        if not self.first.source:
            raise UsageError(
                "source words need the source text", do="Give it as `--source`, or use `--side target` for target words"
            )
        return self._cut(self.first.source)

    @cached_property
    def hypotheses(self) -> list[list[TokenizedText]]:
        """The words of each translation, by system and seed."""
        return [[self._cut(seed.hypothesis) for seed in system.seeds] for system in self.systems]

    @cached_property
    def matches(self) -> list[list[IntArray]]:
        """The word of the reference that each word of a translation matches, by system and seed (see match_words)."""
        return [[match_words(seed, self.reference) for seed in seeds] for seeds in self.hypotheses]

    def _cut(self, lines: list[str]) -> TokenizedText:
        return in_case(tokenize_text(lines, self.options), self.options)
