"""What `synmt translate` says on stderr of the lines that it has translated."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from synmt.cli import console
from synmt.cli.translate_lines import number
from synmt.decode.degenerate import REASONS, Reason
from synmt.decode.override import Compared
from synmt.decode.translation import Translation

_EXAMPLES = 5


@dataclass
class Tally:
    """Counts that are said at the end.

    longest: pieces that the model takes.
    """

    longest: int
    lines: int = 0
    degenerate: Counter[Reason] = field(default_factory=Counter)
    degenerate_lines: list[int] = field(default_factory=list)
    unknown: Counter[str] = field(default_factory=Counter)
    compared: int = 0
    changed: int = 0
    difference: float = 0.0

    def take(self, result: Translation | Compared) -> None:
        """Count a line; what a person should look at is said at once."""
        translation = result.own if isinstance(result, Compared) else result
        self.lines += 1
        self.unknown.update(translation.unknown)
        if translation.degenerate:
            self.degenerate[translation.degenerate] += 1
            self.degenerate_lines.append(translation.line)
        if isinstance(result, Compared) and translation.candidates:
            self.compared += 1
            self.changed += result.changed
            self.difference += result.difference
        if translation.dropped:
            console.warn(
                f"line {translation.line} has {self.longest + translation.dropped} pieces; the model takes "
                f"{self.longest} (filters.max_pieces), so the last {translation.dropped} are not translated"
            )

    def say(self) -> None:
        """Say what has been counted, where there is something."""
        if self.unknown:
            examples = ", ".join(f"'{text}'" for text, _ in self.unknown.most_common(_EXAMPLES))
            console.warn(
                f"unknown to the source vocabulary, {sum(self.unknown.values()):,} times in all: {examples}"
                f"{' …' * (len(self.unknown) > _EXAMPLES)}; the model reads <unk> there"
            )
        if self.degenerate:
            kinds = ", ".join(
                f"{self.degenerate[kind]:,} {what}" for kind, what in REASONS.items() if self.degenerate[kind]
            )
            some = ", ".join(map(str, self.degenerate_lines[:_EXAMPLES]))
            more = " …" * (len(self.degenerate_lines) > _EXAMPLES)
            console.remark(f"degenerate translations: {kinds}, of {self.lines:,} lines (see {some}{more})")
        if self.compared:
            console.remark(
                f"under the other trees {self.changed:,} of {self.compared:,} translations are others; they change the "
                f"log-probability of the own ones by {number(self.difference / self.compared, '+')} nats a line"
            )
