"""Does syntax help? The answer in short: a line for each question, for the README and the beginning of the page."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from results_found import Results
from results_phrases import (
    ARCHITECTURES,
    NAMED,
    OF_KIND,
    best_with_and_without,
    better,
    ends_of,
    gain,
    interval,
    listed,
    more,
    signed,
)
from results_plan import first_part
from results_recipes import reads_trees
from results_statistics import Line, any_seeded
from results_systems import SINGLE

from synmt.errors import counted

Found = Sequence[tuple[Results, list[Line]]]


def in_short(found: Found) -> Iterator[str]:
    """Yield a line for each question, with a sentence on each comparison that answers it."""
    for question, part in _QUESTIONS.items():
        answers = [
            f"*{results.plan.title}*: {sentence}"
            for results, lines in found
            if results.plain(lines) and (sentence := part(results, lines))
        ]
        if answers:
            yield f"- **{question}** {' '.join(answers)}"


def _which(results: Results, lines: Sequence[Line]) -> str:
    """Name the single systems that are better than the plain model."""
    tested = [line for line in results.tested(lines, *SINGLE) if results.is_from_plain(line)]
    if not tested:
        return ""
    if not any_seeded(tested):
        return "each system has one seed so far, which shows nothing for certain."
    gains = [(of_kind, better(results.tested(tested, kind))) for kind, of_kind in OF_KIND.items()]
    # the largest gain of all first
    gains = sorted((one for one in gains if one[1]), key=lambda one: -gain(one[1][0]))
    helped, count = sum(len(systems) for _, systems in gains), counted(len(tested), "system")
    if not helped:
        return f"none of {count} is significantly better than the plain model."
    named = [f"{listed([f'`{one.system}` ({signed(gain(one))})' for one in own])} {kind}" for kind, own in gains]
    verb = "is" if helped == 1 else "are"
    return f"{helped} of {count} {verb} significantly better than the plain model: {', '.join(named)}."


def _trees_or_none(results: Results, lines: Sequence[Line]) -> str:
    """Compare the best system with a parser's trees and the best one without."""
    found = best_with_and_without(results, lines) if any_seeded(lines) else None
    if found is None:
        return ""
    # the difference is that of the system without trees
    trees, none, difference = found
    word = "less" if difference.value > 0 else "more"
    architecture = ARCHITECTURES[results.systems.architecture(trees.system)]
    what = architecture if len(results.plan.baselines) > 1 else "system"
    best = "best" if len(results.tested(lines, "none")) > 1 else "only"
    return (
        f"the best {what} with a parser's trees, `{trees.system}`, has {abs(difference.value):.2f} BLEU {word} than "
        f"`{none.system}`, the {best} one without ({signed(-difference.high)} to {signed(-difference.low)})."
    )


def _syntax(results: Results, lines: Sequence[Line]) -> str:
    """Compare the parser's trees with other trees in the same models."""
    averages = {trees: one for trees, one in results.of_other_trees(results.plan.test).items() if one.seeded}
    parts = [
        f"on average {'better' if one.value > 0 else 'worse'} than {trees} ones ({signed(one.value)}, {interval(one)})"
        for trees, one in averages.items()
        if one.is_real
    ]
    if chance := [trees for trees, one in averages.items() if not one.is_real]:
        alone = f" ({signed(averages[chance[0]].value)}, {interval(averages[chance[0]])})" * (len(chance) == 1)
        parts.append(f"not significantly better or worse than {listed(chance)} ones{alone}")
    return f"in the same models, the parser's trees are {', but '.join(parts)}." if parts else ""


def _where(results: Results, lines: Sequence[Line]) -> str:
    """Name the groups of sentences with significant gains, by the first label of the test set that has any."""
    for grouping in results.groupings:
        gains = {value: better(results.tested(own)) for value, own in grouping.groups.items()}
        meaning = {value: f" ({grouping.meaning[value]})" if value in grouping.meaning else "" for value in gains}
        named = [f"`{value}`{meaning[value]}: {ends_of(map(gain, own))}" for value, own in gains.items() if own]
        if named and not grouping.of_test:
            helped = {line.system for own in gains.values() for line in own}
            others = [own for value, own in grouping.groups.items() if not gains[value]]
            elsewhere = ends_of(gain(line) for own in others for line in own if line.system in helped)
            rest = f"; in the other groups, these systems have {elsewhere}" * bool(elsewhere)
            return f"by {grouping.label}, significant gains are in {listed(named)}{rest}."
    return ""


def _mixture(results: Results, lines: Sequence[Line]) -> str:
    """Compare the mixture that was found with the system that it begins with."""
    for line in results.tested(lines, "mixture"):
        first = first_part(line.system)
        if first in results.runs:
            found = results.contrast(results.plan.test, {line.system: 1, first: -1})
            return (
                f"`{line.system}`, the best of {counted(len(results.plan.search), 'mixture')}, {more(found)} than "
                f"`{first}` alone."
            )
    return ""


def _cost(results: Results, lines: Sequence[Line]) -> str:
    """Say what the systems that help add to the time of a step and to the model, and whether they need a parser."""
    parts, times = [], results.times.medians
    for line in better(results.tested(lines))[:NAMED]:
        base = results.systems.baseline(line.system)
        own, plain = (results.runs[name][0]["weights"] for name in (line.system, base))
        costs = [f"a step takes {times[line.system]:.2f} times as long"] if line.system in times else []
        costs.append(more_weights(own, plain))
        costs += ["a parser for each text"] * reads_trees(results.systems.recipes[line.system])
        parts.append(f"`{line.system}`: {', '.join(costs)}")
    return f"{'; '.join(parts)}." if parts else ""


def more_weights(own: int, base: int) -> str:
    """Write how many more weights a model has than another one."""
    if own == base:
        return "as many weights"
    return f"{100 * abs(own - base) / base:.1f} % {'fewer' if own < base else 'more'} weights"


_QUESTIONS: dict[str, Callable[[Results, Sequence[Line]], str]] = {
    "Which systems help?": _which,
    "Are trees better than none?": _trees_or_none,
    "Is it the syntax?": _syntax,
    "Where?": _where,
    "Does a mixture help more?": _mixture,
    "At what cost?": _cost,
}
