"""Does syntax help? The answer that results/ gives, in sentences that its intervals carry."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from results_statistics import Line, Results
from results_tables import is_real, signed

_NAMED = 6
"""The most systems that a sentence names."""


def answer(found: Sequence[tuple[Results, list[Line]]]) -> Iterator[str]:
    """Yield the sentences as a list: which systems help, what wrong trees do, where, and how sure this is."""
    for results, lines in found:
        for sentence in (_which(results, lines), *_controls(results, lines), *_where(results, lines)):
            yield f"- {sentence}"


def _which(results: Results, lines: Sequence[Line]) -> str:
    systems = [line for line in lines if line.difference and line.system not in results.controls]
    seeds = sorted({len(line.scores) for line in lines})
    if seeds == [1]:
        largest = sorted(systems, key=lambda line: -abs(_gain(line)))
        return (
            f"**{results.plan.title}**: {len(systems)} systems and a plain model have one seed each so far, so no "
            f"difference can be told from the luck of training; the largest are {_named(largest[:3])} BLEU."
        )
    better, worse = _better(systems), _better(systems, sign=-1)
    count = f"{seeds[0]}" if len(seeds) == 1 else f"{seeds[0]} to {seeds[-1]}"
    text = f"**{results.plan.title}**, {count} seeds: {_count(better, systems)} better than the plain model"
    text += f"; worse: {_named(worse)}" if worse else ", and none is worse"
    return f"{text}. All other differences may be chance."


def _controls(results: Results, lines: Sequence[Line]) -> Iterator[str]:
    """Compare what a system gains with its own trees and with wrong ones."""
    of_system = {line.system: line for line in lines}
    parts = []
    for line in lines:
        name, _, control = line.system.partition(", ")
        if control == "random trees" and name in of_system and line.difference and of_system[name].difference:
            gold = of_system.get(f"{name}, gold trees")
            own, wrong = signed(_gain(of_system[name])), signed(_gain(line))
            more = f", with gold trees {signed(_gain(gold))}" if gold and gold.difference else ""
            parts.append(f"{name} gains {own} BLEU with the parser's trees{more} and {wrong} with random ones")
    if parts:
        yield f"Wrong trees: {'; '.join(parts)}."


def _where(results: Results, lines: Sequence[Line]) -> Iterator[str]:
    """Say which systems gain where the sentences are hard."""
    for test in results.plan.groups:
        if test == results.plan.test:
            continue
        harder = results.bleu[test]
        systems = [line for line in harder if line.difference and line.system not in results.controls]
        plain = next(line for line in harder if line.difference is None)
        own = next(line for line in lines if line.system == plain.system)
        text = (
            "In sentences that are longer and deeper than those of training, the plain model falls from "
            f"{own.mean:.1f} to {plain.mean:.1f} BLEU"
        )
        seeded = any(line.difference and line.difference.seeded for line in harder)
        yield f"{text}; {_count(_better(systems), systems)} better there." if seeded else f"{text}."


def _better(lines: Sequence[Line], sign: int = 1) -> list[Line]:
    """Choose the lines with a real gain, or with a real loss, the largest first."""
    real = (line for line in lines if line.difference and is_real(line.difference) and sign * _gain(line) > 0)
    return sorted(real, key=lambda line: -sign * _gain(line))


def _gain(line: Line) -> float:
    assert line.difference is not None
    return line.difference.value


def _count(some: Sequence[Line], of: Sequence[Line]) -> str:
    """Write `3 of 20 systems (a +2.00, …) are`."""
    if not some:
        return "the one system is not" if len(of) == 1 else f"none of {len(of)} systems is"
    return f"{len(some)} of {len(of)} systems ({_named(some)}) {'is' if len(some) == 1 else 'are'}"


def _named(lines: Sequence[Line]) -> str:
    named = ", ".join(f"{line.system} {signed(_gain(line))}" for line in lines[:_NAMED])
    return named + (f" and {len(lines) - _NAMED} more" if len(lines) > _NAMED else "")
