"""Where do systems help? On hard sentences, and in groups of sentences."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from results_found import Results
from results_groups import Grouping
from results_phrases import better, ends_of, gain, more, named, needed, verdicts
from results_statistics import Line, any_seeded

from synmt.errors import listed


def where(results: Results, lines: Sequence[Line]) -> Iterator[str]:
    """Say which systems gain where the sentences are hard, and in which groups of sentences."""
    for test, harder in results.bleu.items():
        if test != results.plan.test:
            yield from _on_hard_sentences(results, lines, test, harder)
    for grouping in results.groupings:
        gains = gains_in(results, grouping)
        label = f"{grouping.group.by}{grouping.of_test}"
        if gains:
            found = [f"`{value}` ({named(systems)})" for value, systems in gains.items()]
            values, others = elsewhere(grouping, gains)
            rest = f"; in {', '.join(f'`{value}`' for value in values)}, these systems have {others}" if others else ""
            yield f"By {label}, significant gains are in {listed(found)}{rest}."
        elif least := _least(results, grouping):
            yield f"By {label}, no gain is significant; typically, it would have to be {least} points."


def gains_in(results: Results, grouping: Grouping) -> dict[str, list[Line]]:
    """Find the systems with significant gains in each group of sentences that has any."""
    gains = {value: better(results.tested(own)) for value, own in grouping.groups.items()}
    return {value: systems for value, systems in gains.items() if systems}


def elsewhere(grouping: Grouping, gains: Mapping[str, Sequence[Line]]) -> tuple[list[str], str]:
    """Name the groups without gains, and write what the systems that gain in others gain there; empty if nothing."""
    helped = {line.system for systems in gains.values() for line in systems}
    values = [value for value in grouping.groups if value not in gains]
    return values, ends_of(gain(line) for value in values for line in grouping.groups[value] if line.system in helped)


def _on_hard_sentences(results: Results, lines: Sequence[Line], test: str, harder: Sequence[Line]) -> Iterator[str]:
    """Compare the baselines with each other, and the systems with them."""
    own = {line.system: line.mean for line in lines}
    baselines = results.plain(harder)
    falls = ", ".join(f"`{line.system}` has {line.mean:.1f} instead of {own[line.system]:.1f}" for line in baselines)
    yield f"On `{test}`, {falls}."
    for other in baselines[1:]:
        found = results.contrast(test, {other.system: 1, baselines[0].system: -1})
        if not found.seeded:
            continue
        steps = [results.runs[line.system][0]["steps"] for line in (other, baselines[0])]
        yield (
            f"There, `{other.system}` {more(found)} than `{baselines[0].system}`, after {steps[0]:,} steps instead of "
            f"{steps[1]:,}."
        )
    if any_seeded(harder):
        yield f"Systems on `{test}`:"
        yield from verdicts(results, harder)


def _least(results: Results, grouping: Grouping) -> str:
    """Say how large a gain would have to be to be significant; empty if none could be."""
    tested = [own for lines in grouping.groups.values() if (own := results.tested(lines))]
    if not any(map(any_seeded, tested)):
        return ""
    least = [needed(own, len(results.design.tested)) for own in tested]
    return " to ".join(dict.fromkeys(f"{one:.0f}" for one in (min(least), max(least))))
