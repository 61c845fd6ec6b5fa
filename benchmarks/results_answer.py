"""Does syntax help? The answer that a comparison gives in detail, in sentences that its intervals carry."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from results_found import Results
from results_phrases import (
    ARCHITECTURES,
    Best,
    anchor,
    better,
    gain,
    interval,
    more,
    mostly_found,
    named,
    needed,
    seeds_of,
    signed,
    verdict_on_one,
    verdicts,
)
from results_plan import first_part
from results_statistics import Difference, Line, any_seeded
from results_systems import SINGLE
from results_tables import control_title
from results_where import where

from synmt.errors import counted, listed


def in_detail(results: Results, lines: Sequence[Line]) -> Iterator[str]:
    """Yield a line for each question that a comparison answers."""
    for question, part in _QUESTIONS.items():
        if results.plain(lines) and (sentences := list(part(results, lines))):
            yield f"- **{question}** {' '.join(sentences)}"


def _which(results: Results, lines: Sequence[Line]) -> Iterator[str]:
    """Say which systems help, by how much, and how sure this is."""
    yield from _verdicts(results, lines)
    if not any_seeded(lines):
        return
    yield from _best_with_and_without(results, lines)
    yield from _best_of_all(results, lines)


def _verdicts(results: Results, lines: Sequence[Line]) -> Iterator[str]:
    """Say how many seeds systems have, what these can show, and which systems differ from the plain model."""
    tested = results.tested(lines, *SINGLE)
    if tested and not any_seeded(tested):
        yield from _with_one_seed(results, tested)
    elif tested:
        yield f"Each system that is tested has {seeds_of([lines[0], *tested])} seeds. {_power(results, lines)}"
        yield from verdicts(results, lines)
        if unstable := sum(line.unstable for line in lines):
            vary = "varies" if unstable == 1 else "vary"
            yield f"Not counted: {counted(unstable, 'system')} that {vary} far more from seed to seed."


def _with_one_seed(results: Results, tested: Sequence[Line]) -> Iterator[str]:
    """Name the largest differences, which the precision of training has no part in."""
    systems = results.systems
    precisions = {system: recipe.training.precision for system, recipe in systems.recipes.items()}
    alike = [line for line in tested if precisions[line.system] == precisions[systems.baseline(line.system)]]
    if alike:
        largest = sorted(alike, key=lambda line: -abs(gain(line)))[:3]
        yield (
            "Each system has one seed so far, so differences may be the luck of training. Among those trained in the "
            f"precision of their baseline, the largest {'are' if len(largest) > 1 else 'is'} {named(largest)}."
        )


def _power(results: Results, lines: Sequence[Line]) -> str:
    """Say how large a difference has to be to be significant."""
    tested, tests = results.tested(lines), len(results.design.tested)
    lstms = [line for line in tested if results.systems.architecture(line.system) == "lstm"]
    others = [line for line in tested if line not in lstms] or lstms
    typical = [compute(others, tests) for compute in (needed, mostly_found)]
    of_lstms = [""] * 2
    if lstms and others != lstms:
        of_lstms = [f" (LSTMs: {compute(lstms, tests):.1f})" for compute in (needed, mostly_found)]
    return (
        f"Typically, a difference of {typical[0]:.1f} BLEU{of_lstms[0]} is significant; a true difference of "
        f"{typical[1]:.1f}{of_lstms[1]} would be found in four cases out of five."
    )


def _best_with_and_without(results: Results, lines: Sequence[Line]) -> Iterator[str]:
    """Compare the best system with a parser's trees and the best one without."""
    best = Best.among(results, lines)
    if best:
        among = "The" if best.kind == "system" else f"Among {best.kind}s, the"
        which, chosen = ("only one", "the first was") if best.only else ("best one", "both were")
        yield (
            f"{among} best single system with a parser's trees is `{best.trees.system}`; the {which} without trees, "
            f"`{best.none.system}`, {more(best.more)}. This interval does not know that {chosen} chosen as the best."
        )


def _best_of_all(results: Results, lines: Sequence[Line]) -> Iterator[str]:
    """Name the system with the highest score, if it is of another architecture than the first one."""
    useful = {line.system for line in (*results.plain(lines), *results.tested(lines))}
    best = max((line for line in lines if line.system in useful), key=lambda line: line.mean)
    architecture = results.systems.architecture(best.system)
    if architecture != results.systems.architecture(lines[0].system):
        steps = [results.runs[line.system][0]["steps"] for line in (best, lines[0])]
        controls = [line for line in lines if line.mean > best.mean and results.systems.kind(line.system) == "control"]
        others = "".join(f"; `{line.system}` has {line.mean:.2f}" for line in controls)
        yield (
            f"The highest score{' without other trees' * bool(controls)} is that of `{best.system}` ({best.mean:.2f}), "
            f"one of the {ARCHITECTURES[architecture]}s, which train for {steps[0]:,} steps instead of {steps[1]:,}"
            f"{others}."
        )


def _mixture(results: Results, lines: Sequence[Line]) -> Iterator[str]:
    """Say what the mixture that was found gains on the plain model, and on the system that it begins with."""
    for line in results.tested(lines, "mixture"):
        tests = sorted(results.bleu, key=lambda test: test != results.plan.test)
        found = {test: one for test in tests if (one := results.gain_of_mixture(test, line.system))}
        verdict = verdict_on_one(line, "the plain model")
        yield f"{verdict}. Its validation loss was the lowest of {counted(len(results.plan.search), 'mixture')}."
        if found:
            parts = [f"{signed(one.value)} on `{test}` ({interval(one)})" for test, one in found.items()]
            yield f"Its difference from `{first_part(line.system)}` alone is {' and '.join(parts)}."


def _controls(results: Results, lines: Sequence[Line]) -> Iterator[str]:
    """Tell whether the parser's trees do more than others in the same models: only then does syntax help."""
    yield from (sentences := list(_on_average(results, lines)))
    compared = results.of_random_trees(results.plan.test)
    alone = {system: one for system, one in compared.items() if one.is_real}
    if alone:
        written = listed(f"`{system}` {signed(one.value)}" for system, one in alone.items())
        chosen = sum(results.random_trees[system] in results.plan.chosen_by_score for system in alone)
        because = f" ({chosen} of them given random trees because of their scores)" if chosen else ""
        yield f"Single systems that differ significantly from the same model with random trees: {written}{because}."
    if sentences:
        yield f"[Tables](#{anchor(control_title(results))})."


def _on_average(results: Results, lines: Sequence[Line]) -> Iterator[str]:
    """Compare the parser's trees with each kind of other trees, on average over the systems that have both."""
    averages = results.of_other_trees(results.plan.test)
    for trees, average in averages.items():
        if average.is_real:
            yield from _with_real_average(results, trees, average)
    chance = {trees: one for trees, one in averages.items() if one.seeded and not one.is_real}
    if chance:
        others = listed(f"{trees} {signed(one.value)} ({interval(one)})" for trees, one in chance.items())
        yield f"The parser's trees do not differ significantly from other trees in the same models: {others}."
        helped = {line.system for line in better(results.tested(lines, "parser"))}
        if helped and not any(helped & set(results.other_trees[trees]) for trees in chance):
            yield "None of the systems that gain significantly has been trained with these."


def _with_real_average(results: Results, trees: str, average: Difference) -> Iterator[str]:
    """Say how much better the parser's trees are than others, and what both gain over the plain model."""
    test, pairs = results.plan.test, results.other_trees[trees]
    word = "better" if average.value > 0 else "worse"
    where = f"On average over {len(pairs)} systems" if len(pairs) > 1 else f"In `{next(iter(pairs))}`"
    yield (
        f"{where}, the parser's trees are significantly {word} than `{trees}` ones: {signed(average.value)} "
        f"({interval(average)})."
    )
    for without in results.without_chosen(trees):
        less, chosen = results.average(test, without), len(pairs) - len(without)
        yield (
            f"Of these, {chosen} {'was' if chosen == 1 else 'were'} given {trees} trees because of their scores; "
            f"without them, it is {signed(less.value)} ({interval(less)})."
        )
    own, others = (results.from_plain(test, list(one)) for one in (pairs, pairs.values()))
    if own and others:
        have = "these systems have" if len(pairs) > 1 else "it has"
        yield (
            f"Compared with the plain model, {have} {signed(own.value)} BLEU ({interval(own)}) with the parser's trees "
            f"and {signed(others.value)} ({interval(others)}) with the others."
        )


_QUESTIONS: dict[str, Callable[[Results, Sequence[Line]], Iterator[str]]] = {
    "Which systems help?": _which,
    "Is it the syntax?": _controls,
    "Where?": where,
    "Does a mixture help more?": _mixture,
}
