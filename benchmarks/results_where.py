"""Where do systems help? On hard sentences, and in groups of sentences."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from results_found import TESTED, Grouping, Results
from results_phrases import better, more, named, needed, verdicts
from results_statistics import Line, seeded


def where(results: Results, lines: Sequence[Line]) -> Iterator[str]:
    """Say which systems gain where the sentences are hard, and in which groups of sentences."""
    for test, harder in results.bleu.items():
        if test != results.plan.test:
            yield from _on_hard_sentences(results, lines, test, harder)
    without = []
    for grouping in results.groupings:
        gains = {value: better(results.of_kind(own, *TESTED)) for value, own in grouping.groups.items()}
        found = [f"`{value}` ({named(systems)})" for value, systems in gains.items() if systems]
        label = f"{grouping.label}{grouping.of_test}"
        if found:
            yield f"By {label}, significant gains are in {' and '.join(found)}."
        elif least := _least(results, grouping):
            without.append(f"by {label} ({least})")
    if without:
        yield f"No gain is significant {' or '.join(without)}."


def _on_hard_sentences(results: Results, lines: Sequence[Line], test: str, harder: Sequence[Line]) -> Iterator[str]:
    """Compare the baselines with each other, and the systems with them."""
    own = {line.system: line.mean for line in lines}
    baselines = results.plain(harder)
    falls = ", ".join(f"`{line.system}` has {line.mean:.1f} instead of {own[line.system]:.1f}" for line in baselines)
    yield f"On `{test}`, {falls}."
    for other in baselines[1:]:
        found = results.contrast(test, {other.system: 1, baselines[0].system: -1})
        steps = [results.runs[line.system][0]["steps"] for line in (other, baselines[0])]
        yield (
            f"There, `{other.system}` {more(found)} than `{baselines[0].system}`, after {steps[0]:,} steps instead of "
            f"{steps[1]:,}."
        )
    if seeded(harder):
        yield from (f"On `{test}`: {sentence[0].lower()}{sentence[1:]}" for sentence in verdicts(results, harder))


def _least(results: Results, grouping: Grouping) -> str:
    """Say how large a gain would have to be to be significant; empty if none could be."""
    tested = [own for lines in grouping.groups.values() if (own := results.of_kind(lines, *TESTED))]
    if not any(map(seeded, tested)):
        return ""
    least = [needed(own, len(own)) for own in tested]
    return f"typically, a gain would have to be {min(least):.0f} to {max(least):.0f} points"
