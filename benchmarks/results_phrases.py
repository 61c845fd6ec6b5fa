"""Phrases about differences: how large, how many, and which systems."""

from __future__ import annotations

import re
import statistics
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from results_found import Results
from results_statistics import Difference, Line
from results_systems import SINGLE

from synmt.errors import counted, listed

ARCHITECTURES = {"transformer": "Transformer", "lstm": "LSTM"}
NAMED = 6
"""The most systems that a sentence names."""
OF_KIND = {"parser": "with a parser's trees", "induced": "with induced trees", "none": "without trees"}
"""Which trees each kind of single system has."""


def verdicts(results: Results, lines: Sequence[Line]) -> Iterator[str]:
    """Count the systems of each kind that differ significantly from the plain model, and name them."""
    plain = {line.system for line in lines if results.is_from_plain(line)}
    tested = [line for line in results.tested(lines, *SINGLE) if line.system in plain]
    if len(tested) > 1 and not any(line.is_real for line in tested):
        best = max(tested, key=gain)
        assert best.difference is not None
        yield (
            f"None of {counted(len(tested), 'single system')} differs significantly from the plain model; the best one "
            f"is {named([best])} ({interval(best.difference)})."
        )
    else:
        for kind, of_kind in OF_KIND.items():
            if systems := results.tested(tested, kind):
                yield verdict(of_kind, systems)
    for line in results.tested(lines, *SINGLE):
        if line.system not in plain:
            base = f"`{results.systems.baseline(line.system)}`, with which it is compared"
            yield f"{verdict_on_one(line, base)}."


def verdict(kind: str, systems: Sequence[Line]) -> str:
    """Write `Of 20 systems with trees, 2 are significantly better than the plain model (a +2.00, b +1.00).`"""
    if len(systems) == 1:
        return f"{kind[0].upper()}{kind[1:]}, {verdict_on_one(systems[0], 'the plain model')}."
    gains, losses = better(systems), better(systems, sign=-1)
    of_kind = f"Of {counted(len(systems), 'single system')} {kind}"
    if not gains and not losses:
        return f"{of_kind}, none differs significantly from the plain model."
    first = _how_many(gains, "significantly better than the plain model")
    return f"{of_kind}, {first}" + (f", and {_how_many(losses, 'worse')}" if losses else "") + "."


def signed(value: float) -> str:
    """Write a difference with its sign."""
    return f"{value:+.2f}".replace("-", "−")


def interval(found: Difference) -> str:
    """Write the 95 % interval of a difference."""
    return f"{signed(found.low)} to {signed(found.high)}"


def ends_of(values: Iterable[float]) -> str:
    """Write the least and the largest of some differences, `+1.00 to +2.00`, or the only one; empty without any."""
    ordered = sorted(values)
    return " to ".join(dict.fromkeys(map(signed, (ordered[0], ordered[-1])))) if ordered else ""


def scores_of(line: Line) -> str:
    """Write the score of each seed."""
    return ", ".join(f"{score:.1f}" for score in line.scores)


def seeds_of(lines: Sequence[Line]) -> str:
    """Write how many seeds systems have: `3`, or `1 to 3`."""
    counts = sorted({len(line.scores) for line in lines})
    return f"{counts[0]}" if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"


def anchor(heading: str) -> str:
    """Write the target of a link to a heading, as GitHub makes it."""
    return re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-")


def needed(lines: Sequence[Line], tests: int) -> float:
    """Compute the difference that half of the systems would need to be significant."""
    return statistics.median(line.difference.smallest_real(tests) for line in lines if line.difference)


def mostly_found(lines: Sequence[Line], tests: int) -> float:
    """Compute the true difference that would be significant four times in five, for half of the systems."""
    return statistics.median(line.difference.mostly_found(tests) for line in lines if line.difference)


def better(lines: Sequence[Line], sign: int = 1) -> list[Line]:
    """Choose the lines with a real gain, or with a real loss, the largest first."""
    real = (line for line in lines if line.is_real and sign * gain(line) > 0)
    return sorted(real, key=lambda line: -sign * gain(line))


def gain(line: Line) -> float:
    """Return the difference of a system that has one."""
    assert line.difference is not None
    return line.difference.value


@dataclass(frozen=True)
class Best:
    """The best system with a parser's trees and the best one without, plain or not, of the first architecture, by BLEU.

    more: what the second one has more.
    kind: what to call systems of this kind, `Transformer` if there are other architectures, or `system`.
    only: whether no other system is without trees.
    """

    trees: Line
    none: Line
    more: Difference
    kind: str
    only: bool

    @classmethod
    def among(cls, results: Results, lines: Sequence[Line]) -> Best | None:
        """Find them; None if one of them is missing, or no seeds tell chance from more than chance."""
        architecture = results.systems.architecture(lines[0].system)
        own = [line for line in lines if results.systems.architecture(line.system) == architecture]
        plain = [line for line in results.plain(own) if not line.unstable]
        kinds = [results.tested(own, "parser"), [*plain, *results.tested(own, "none")]]
        if not all(kinds):
            return None
        trees, none = (max(systems, key=lambda line: line.mean) for systems in kinds)
        found = results.contrast(results.plan.test, {none.system: 1, trees.system: -1})
        kind = "system" if len(own) == len(lines) else ARCHITECTURES[architecture]
        return cls(trees, none, found, kind, len(kinds[1]) == 1) if found.seeded else None


def _how_many(lines: Sequence[Line], what: str) -> str:
    which = f" ({named(lines)})" if lines else ""
    return f"{len(lines) or 'none'} {'are' if len(lines) > 1 else 'is'} {what}{which}"


def more(found: Difference) -> str:
    """Write how much more or less BLEU the first of two systems has."""
    return f"has {abs(found.value):.2f} BLEU {'more' if found.value > 0 else 'less'} ({interval(found)})"


def verdict_on_one(line: Line, base: str) -> str:
    """Write whether a system differs from the one that it is compared with, and by how much."""
    if not line.is_real:
        return f"`{line.system}` does not differ significantly from {base}"
    word = "better" if gain(line) > 0 else "worse"
    return f"`{line.system}` is significantly {word} than {base} ({signed(gain(line))})"


def named(lines: Sequence[Line]) -> str:
    """Name systems with their gains, the first ones if they are many."""
    return listed((f"`{line.system}` {signed(gain(line))}" for line in lines), NAMED)
