"""The words of a test set, and which of a translation are right, as compare-mt counts them (Neubig
et al., 2019).

The first copy of a word in a translation matches the first copy in the reference of the sentence,
the second copy the second, and so on; copies beyond those of the reference match nothing. Positions
do not matter, as in BLEU.

Lines are tokenized as BLEU does. Words are numbered through the whole text: M words of N sentences.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import TypeVar

import numpy as np

from synmt.analysis.inputs import Translations
from synmt.arrays import BoolArray, IntArray, Side, Texts, int_array
from synmt.errors import UsageError
from synmt.evaluation.metrics import MetricOptions
from synmt.evaluation.outputs import Outputs
from synmt.evaluation.sacrebleu import tokenize_words

Lines = Sequence[Texts]
"""The words of each sentence."""

_T = TypeVar("_T")


@dataclass(frozen=True, eq=False)
class TokenizedText:
    """The words of N sentences, M in all."""

    lines: Lines

    @cached_property
    def sentence(self) -> IntArray:
        """The sentence of each word: (M,)."""
        return np.repeat(np.arange(len(self.lines)), self._lengths).astype(np.int64)

    @cached_property
    def starts(self) -> IntArray:
        """The number of words before each sentence: (N,)."""
        return np.cumsum(self._lengths) - self._lengths

    @cached_property
    def _lengths(self) -> IntArray:
        return int_array(map(len, self.lines))

    def __iter__(self) -> Iterator[str]:
        """Iterate over the words of the whole text."""
        return (word for words in self.lines for word in words)

    def __len__(self) -> int:
        return len(self.sentence)


@dataclass(frozen=True, eq=False)
class TranslatedText:
    """A translation of a test set, by one seed of a system.

    words: of the translation.
    matches: (M,) the word of the reference that each of them matches, -1 for none.
    """

    outputs: Outputs
    words: TokenizedText
    matches: IntArray


@dataclass(frozen=True, eq=False)
class WordTexts(Translations):
    """The words of a test set: sources, references and the translations of all systems.

    scoring: how lines are tokenized, and whether case counts.
    """

    scoring: MetricOptions

    @property
    def first(self) -> Outputs:
        """The first translation of the baseline, with the source and the references of all."""
        return self.systems[0].seeds[0]

    @property
    def run_folders(self) -> list[Path]:
        """The run folder of each translation that has one, the baseline's first."""
        return [seed.run for system in self.systems for seed in system.seeds if seed.run]

    @cached_property
    def reference(self) -> TokenizedText:
        """The words of the references."""
        return tokenize(self.first.reference, self.scoring)

    @cached_property
    def source(self) -> TokenizedText:
        """The words of the source; raises UsageError if it is unknown."""
        if not self.first.source:
            raise UsageError(
                "source words need the source text",
                do="Give it as `--source`, or use `--side target` for target words",
            )
        return tokenize(self.first.source, self.scoring)

    def text(self, side: Side) -> TokenizedText:
        """Return the words of one side; the target is the reference."""
        return self.source if side == "source" else self.reference

    @cached_property
    def translations(self) -> list[TranslatedText]:
        """The translations of all systems and seeds, in order."""
        return [
            TranslatedText(
                outputs,
                words := tokenize(outputs.hypothesis, self.scoring),
                match_words(words, self.reference),
            )
            for system in self.systems
            for outputs in system.seeds
        ]

    def by_system(self, values: Iterable[_T]) -> dict[str, list[_T]]:
        """Group a value for each translation by system."""
        rest = iter(values)
        return {system.name: list(islice(rest, len(system.seeds))) for system in self.systems}


def tokenize(lines: Texts, options: MetricOptions) -> TokenizedText:
    """Cut lines into words, in lower case if the options ignore case."""
    words = tokenize_words(lines, options.tokenize)
    return TokenizedText(
        [[word.lower() for word in line] for line in words] if options.lowercase else words
    )


def match_words(hypothesis: TokenizedText, reference: TokenizedText) -> IntArray:
    """Find the word of the reference that each word of a translation matches: (M,), -1 for none."""
    matches = []
    for words, start, others in zip(
        hypothesis.lines, reference.starts.tolist(), reference.lines, strict=True
    ):
        places: defaultdict[str, list[int]] = defaultdict(list)
        for place, word in enumerate(others, start):
            places[word].append(place)
        matches += [places[word].pop(0) if places[word] else -1 for word in words]
    return int_array(matches)


def found_words(matches: IntArray, words: int) -> BoolArray:
    """Find the words of the reference that some word of the translation matches: (M,) ->
    (words,)."""
    return np.isin(np.arange(words), matches)
