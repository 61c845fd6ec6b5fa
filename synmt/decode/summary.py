"""A summary of translations: what the user should know about them is logged."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Sequence

from synmt.decode.override import CounterfactualTranslation
from synmt.decode.records import Result, format_number, own_translation
from synmt.decode.translation import REASONS, Reason
from synmt.errors import counted

_logger = logging.getLogger(__name__)
_EXAMPLES = 5


class TranslationSummary:
    """Counts what is unusual in translations.

    max_pieces: of a source.
    """

    def __init__(self, max_pieces: int) -> None:
        self._max_pieces, self._lines = max_pieces, 0
        self._degenerate: dict[int, Reason] = {}
        self._unknown = Counter[str]()
        self._differences: list[float] = []
        self._changed = 0

    def add(self, result: Result) -> None:
        """Add a line, and log a warning if it was truncated."""
        translation = own_translation(result)
        self._lines += 1
        self._unknown.update(translation.unknown)
        if translation.degenerate:
            self._degenerate[translation.line] = translation.degenerate
        if isinstance(result, CounterfactualTranslation) and translation.candidates:
            self._changed += result.changed
            self._differences.append(result.difference)
        if translation.dropped:
            what = f"line {translation.line}"
            _logger.warning(too_long(what, self._max_pieces, translation.dropped, "not translated"))

    def log(self) -> None:
        """Log the counts; nothing if nothing is unusual."""
        if self._unknown:
            examples = _examples([f"'{text}'" for text, _ in self._unknown.most_common()])
            pieces = counted(sum(self._unknown.values()), "piece is", "pieces are")
            _logger.warning(
                f"{pieces} not in the source vocabulary: {examples}; the model reads <unk>"
            )
        if self._degenerate:
            counts = Counter(self._degenerate.values())
            kinds = ", ".join(
                f"{counts[reason]:,} {what}" for reason, what in REASONS.items() if counts[reason]
            )
            examples = _examples([str(line) for line in self._degenerate])
            where = f"line{'s' * (len(self._degenerate) > 1)} {examples}"
            _logger.info(
                f"degenerate translations: {kinds}, of {counted(self._lines, 'line')} ({where})"
            )
        if self._differences:
            mean = sum(self._differences) / len(self._differences)
            _logger.info(
                f"with the other trees, {self._changed:,} of {len(self._differences):,} "
                "translations change; the "
                f"log-probability of the original ones changes by {format_number(mean, '+')} nats "
                "per line on average"
            )


def too_long(what: str, longest: int, dropped: int, how: str) -> str:
    """Say that a text is too long for the model.

    longest: pieces that the model takes.
    dropped: pieces at the end beyond them.
    how: what happens to these, such as `not translated`.
    """
    rest = "last one is" if dropped == 1 else f"last {dropped} are"
    pieces = longest + dropped
    return (
        f"{what} has {pieces} pieces; the model takes {longest} (filters.max_pieces), so the "
        f"{rest} {how}"
    )


def _examples(values: Sequence[str]) -> str:
    return ", ".join(values[:_EXAMPLES]) + " …" * (len(values) > _EXAMPLES)
