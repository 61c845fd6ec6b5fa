"""Does syntax help? The answer in short: a line for each question, for the README and the beginning of the page."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from results_found import Results
from results_phrases import NAMED, OF_KIND, Best, better, gain, interval, more, named, signed, verdict_on_one
from results_plan import first_part
from results_recipes import reads_trees
from results_statistics import Difference, Line, any_seeded
from results_systems import SINGLE
from results_where import elsewhere, gains_in

from synmt.errors import counted, listed

Found = Sequence[tuple[Results, list[Line]]]
"""All comparisons, each with its systems on its test set."""
_UNITS = {"bleu": "BLEU", "exact": "percentage points"}


def in_short(found: Found) -> Iterator[str]:
    """Yield a line for each question, with what each comparison that answers it says."""
    for question, part in _QUESTIONS.items():
        answers = [
            f"*{results.plan.title}*: {' '.join(sentences)}"
            for results, lines in found
            if results.plain(lines) and (sentences := list(part(results, lines)))
        ]
        if answers:
            yield f"- **{question}** {' '.join(answers)}"


def _which(results: Results, lines: Sequence[Line]) -> Iterator[str]:
    """Name the single systems that are better than the plain model of their architecture."""
    tested = [line for line in results.tested(lines, *SINGLE) if results.is_from_plain(line)]
    if tested and not any_seeded(tested):
        yield "each system has one seed so far, which shows nothing for certain."
    elif len(tested) == 1:
        yield f"{verdict_on_one(tested[0], 'the plain model')}."
    elif tested:
        gains, worse = _gains(results, tested), len(better(tested, sign=-1))
        helped = sum(map(len, gains.values()))
        written = [f"{named(own)} {of_kind}" for of_kind, own in gains.items()]
        also = f"; {worse} {'is' if worse == 1 else 'are'} significantly worse" * bool(worse)
        yield (
            f"{helped or 'none'} of {counted(len(tested), 'single system')} {'are' if helped > 1 else 'is'} "
            f"significantly better than a plain model{': ' * bool(gains)}{', and '.join(written)}{also}."
        )


def _gains(results: Results, tested: Sequence[Line]) -> dict[str, list[Line]]:
    """Group the systems that help by their trees, the largest gain first."""
    gains = {of_kind: better(results.tested(tested, kind)) for kind, of_kind in OF_KIND.items()}
    return dict(sorted(((k, own) for k, own in gains.items() if own), key=lambda one: -gain(one[1][0])))


def _trees_or_none(results: Results, lines: Sequence[Line]) -> Iterator[str]:
    """Compare the best system with a parser's trees and the best one without."""
    best = Best.among(results, lines)
    if best:
        less = Difference(-best.more.value, best.more.error, best.more.freedom)
        yield (
            f"`{best.trees.system}`, the best {best.kind} with a parser's trees, {more(less)} than "
            f"`{best.none.system}`, the {'only' if best.only else 'best'} one without{_may_be_chance(less)}."
        )


def _syntax(results: Results, lines: Sequence[Line]) -> Iterator[str]:
    """Compare the parser's trees with other trees in the same models."""
    averages = {trees: one for trees, one in results.of_other_trees(results.plan.test).items() if one.seeded}
    real = [trees for trees, one in averages.items() if one.is_real]
    chance = [trees for trees in averages if trees not in real]
    for trees in [*real, *(chance if len(chance) == 1 else [])]:
        yield _with_other_trees(results, trees, averages[trees])
    if len(chance) > 1:
        counts = sorted({len(results.other_trees[trees]) for trees in chance})
        models = " to ".join(dict.fromkeys(map(str, (counts[0], counts[-1]))))
        yield (
            f"Between the parser's trees and {listed(chance)} ones ({models} models each), all differences may be "
            "chance."
        )


def _with_other_trees(results: Results, trees: str, average: Difference) -> str:
    """Say what the models gain that have been trained with some other trees, too."""
    models = list(results.other_trees[trees])
    who = f"{len(models)} systems have on average" if len(models) > 1 else f"`{models[0]}` has"
    others = [(len(models) - len(kept), kept) for kept in results.without_chosen(trees)]
    less = [
        f"; {signed(results.average(results.plan.test, kept).value)} without the {chosen} chosen by score"
        for chosen, kept in others
    ]
    word, end = "more" if average.value > 0 else "less", "" if average.is_real else ", which may be chance"
    return (
        f"{who} {abs(average.value):.2f} BLEU {word} with the parser's trees than with {trees} ones "
        f"({interval(average)}{''.join(less)}){end}."
    )


def _where(results: Results, lines: Sequence[Line]) -> Iterator[str]:
    """Name the groups with significant gains, by the first label of the test set that has any, and other test sets."""
    for grouping in results.groupings:
        gains = gains_in(results, grouping)
        if gains and not grouping.of_test:
            written = "; ".join(
                f"`{value}`{_meaning(grouping.group.meaning, value)}: {named(own)}" for value, own in gains.items()
            )
            _, others = elsewhere(grouping, gains)
            rest = f"; in the other groups, these systems have {others}" * bool(others)
            yield f"by {grouping.group.by}, gains are significant in {written} {_UNITS[grouping.group.metric]}{rest}."
            break
    for test, own in results.bleu.items():
        gains = better(results.tested(own)) if test != results.plan.test else []
        if gains:
            yield f"On the test set `{test}`: {named(gains)} BLEU."


def _meaning(meaning: Mapping[str, str], value: str) -> str:
    return f" ({meaning[value]})" if value in meaning else ""


def _mixture(results: Results, lines: Sequence[Line]) -> Iterator[str]:
    """Compare the mixture that was found with the plain model, and with the system that it begins with."""
    for line in results.tested(lines, "mixture"):
        if found := results.gain_of_mixture(results.plan.test, line.system):
            tried = len(results.plan.search)
            best = f"the best of {tried} on the validation text" if tried > 1 else "the only one that was tried"
            verdict = verdict_on_one(line, "the plain model").removeprefix(f"`{line.system}` ")
            yield (
                f"`{line.system}`, {best}, {verdict}; it {more(found)} than `{first_part(line.system)}` alone"
                f"{_may_be_chance(found)}."
            )


def _cost(results: Results, lines: Sequence[Line]) -> Iterator[str]:
    """Say what the systems that help add to the time of a step and to the model, and whether they need a parser."""
    helpful = [line for line in better(results.tested(lines)) if results.is_from_plain(line)]
    parts, times = [], results.times.of_system
    for line in helpful[:NAMED]:
        base = results.systems.baseline(line.system)
        own, plain = (results.runs[name][0]["weights"] for name in (line.system, base))
        costs = [f"a training step takes {times[line.system].value:.2f} times as long"] if line.system in times else []
        costs.append(more_weights(own, plain))
        costs += ["every text has to be parsed"] * reads_trees(results.systems.recipes[line.system])
        parts.append(f"`{line.system}`: {', '.join(costs)}")
    if parts:
        yield f"{'; '.join(parts)}{f'; and {len(helpful) - NAMED} more' * (len(helpful) > NAMED)}."


def more_weights(own: int, base: int) -> str:
    """Write how many more weights a model has than another one."""
    share = f"{100 * abs(own - base) / base:.1f}"
    return "as many weights" if share == "0.0" else f"{share} % {'fewer' if own < base else 'more'} weights"


def _may_be_chance(found: Difference) -> str:
    return ", which may be chance" if found.low < 0 < found.high else ""


_QUESTIONS: dict[str, Callable[[Results, Sequence[Line]], Iterator[str]]] = {
    "Which systems help?": _which,
    "Are trees better than none?": _trees_or_none,
    "Is it the syntax?": _syntax,
    "Where?": _where,
    "Does a mixture help more?": _mixture,
    "At what cost?": _cost,
}
