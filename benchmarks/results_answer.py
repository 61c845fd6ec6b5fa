"""Does syntax help? The answer that results/ gives, in sentences that its intervals carry."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from results_figure import is_control
from results_statistics import Line, Results
from results_tables import REAL, signed

_NAMED = 6
"""The most systems that a sentence names."""


def answer(found: Sequence[tuple[Results, list[Line]]]) -> Iterator[str]:
    """Yield the sentences: which systems help, what wrong trees do, where, at what cost, and how sure this is."""
    for results, lines in found:
        yield _which(results, lines)
        yield from _controls(results, lines)
        yield from _where(results, lines)
    yield from (_seeds(results, lines) for results, lines in found)


def _which(results: Results, lines: Sequence[Line]) -> str:
    systems = [line for line in lines if line.difference and not is_control(results, line.system)]
    better = sorted((line for line in systems if _is_real(line) and line.difference.value > 0), key=_gain, reverse=True)  # type: ignore[union-attr]
    worse = sorted((line for line in systems if _is_real(line) and line.difference.value < 0), key=_gain)  # type: ignore[union-attr]
    text = f"**{results.plan.title}**: {_count(len(better), len(systems))} better than the plain model"
    text += f" ({_named(better)})" if better else ""
    text += f", {len(worse)} worse ({_named(worse)})" if worse else ", and none is worse"
    return f"{text}; the other differences may be chance."


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
        harder = [line for line in results.bleu(test) if line.difference and not is_control(results, line.system)]
        better = sorted((line for line in harder if _is_real(line) and _gain(line) > 0), key=_gain, reverse=True)
        plain = next(line for line in results.bleu(test) if line.difference is None)
        own = next(line for line in lines if line.system == plain.system)
        yield (
            "In sentences that are longer and deeper than those of training, the plain model falls from "
            f"{own.mean:.1f} to {plain.mean:.1f} BLEU; {_count(len(better), len(harder))} better there"
            f"{f' ({_named(better)})' if better else ''}."
        )


def _seeds(results: Results, lines: Sequence[Line]) -> str:
    counts = sorted({len(line.scores) for line in lines})
    if counts == [1]:
        return f"{results.plan.title} has one seed so far, so its intervals do not cover the luck of training."
    span = f"{counts[0]}" if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
    return f"{results.plan.title} has {span} seeds of each system."


def _is_real(line: Line) -> bool:
    return line.difference is not None and line.difference.p < REAL


def _gain(line: Line) -> float:
    assert line.difference is not None
    return line.difference.value


def _count(some: int, of: int) -> str:
    if some == 0:
        return f"of {of} systems, none is"
    return f"of {of} systems, {some} {'is' if some == 1 else 'are'}"


def _named(lines: Sequence[Line]) -> str:
    named = ", ".join(f"{line.system} {signed(_gain(line))}" for line in lines[:_NAMED])
    return named + (f" and {len(lines) - _NAMED} more" if len(lines) > _NAMED else "")
