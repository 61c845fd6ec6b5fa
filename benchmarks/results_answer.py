"""Does syntax help? The answer that results/ gives, in sentences that its intervals carry."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from results_found import SINGLE, TESTED, Results
from results_phrases import NAMED, better, gain, more, named, needed, verdict_on_one, verdicts
from results_plan import first_part, reads_trees
from results_statistics import Line, seeds_of
from results_tables import anchor, control_title, interval, signed
from results_where import where

from synmt.errors import counted


def answer(found: Sequence[tuple[Results, list[Line]]]) -> Iterator[str]:
    """Yield a list with the answer to each question, from all comparisons."""
    for question, part in _QUESTIONS.items():
        answers = [
            f"*{results.plan.title}*: {' '.join(sentences)}"
            for results, lines in found
            if results.plain(lines) and (sentences := list(part(results, lines)))
        ]
        if answers:
            yield f"- **{question}** {' '.join(answers)}"


def in_short(found: Sequence[tuple[Results, list[Line]]]) -> Iterator[str]:
    """Yield a line for each comparison whose systems have several seeds: which systems help, and is it the syntax."""
    for results, lines in found:
        if results.plain(lines) and seeds_of(lines) != "1":
            yield f"- **{results.plan.title}**: {' '.join((*_which(results, lines), *_on_average(results)))}"


def _which(results: Results, lines: Sequence[Line]) -> Iterator[str]:
    """Say which systems help, by how much, and how sure this is."""
    tested = results.of_kind(lines, *SINGLE)
    if not tested:
        return
    seeds = seeds_of([lines[0], *tested])
    if seeds == "1":
        yield from _with_one_seed(results, lines[0], tested)
        return
    yield f"{seeds} seeds; {_power(results, lines)}."
    yield from verdicts(results, lines)
    yield from _best_with_and_without(results, lines)
    for line in results.of_kind(lines, "mixture"):
        if line.is_real:
            alone = [one for one in lines if one.system == first_part(line.system)]
            gains = "".join(f"; `{one.system}` alone gains {signed(gain(one))}" for one in alone)
            yield f"The mixture {verdict_on_one(line)}{gains}."


def _with_one_seed(results: Results, plain: Line, tested: Sequence[Line]) -> Iterator[str]:
    """Name the largest differences, which the precision of training has no part in."""
    precision = results.recipe(plain.system).training.precision
    like_plain = [line for line in tested if results.recipe(line.system).training.precision == precision]
    if like_plain:
        largest = sorted(like_plain, key=lambda line: -abs(gain(line)))[:3]
        yield (
            f"One seed each so far, so differences may be the luck of training; those of the "
            f"{counted(len(like_plain), 'system')} in the precision of the plain model are {named(largest)} BLEU."
        )


def _power(results: Results, lines: Sequence[Line]) -> str:
    """Say how large a difference has to be to be significant."""
    tested = results.of_kind(lines, *TESTED)
    lstms = [line for line in tested if results.architecture(line.system) == "lstm"]
    others = [line for line in tested if line not in lstms]
    with_lstm = f", with an LSTM from {needed(lstms, len(tested)):.1f} on" if lstms and others else ""
    return f"typically, a difference is significant from {needed(others or lstms, len(tested)):.1f} BLEU on{with_lstm}"


def _best_with_and_without(results: Results, lines: Sequence[Line]) -> Iterator[str]:
    """Compare the best system with a parser's trees and the best one without, of the first architecture, by BLEU."""
    first = results.architecture(lines[0].system)
    own = [line for line in lines if results.architecture(line.system) == first]
    kinds = [results.of_kind(own, kind) for kind in ("parser", "none")]
    if all(kinds):
        trees, none = (max(systems, key=lambda line: line.mean) for systems in kinds)
        found = results.contrast(results.plan.test, {none.system: 1, trees.system: -1})
        yield (
            f"The best with a parser's trees is `{trees.system}`; the best without trees, `{none.system}`, "
            f"{more(found)}."
        )


def _mixture(results: Results, lines: Sequence[Line]) -> Iterator[str]:
    """Say what the mixture that was found gains on the plain model, and on the system that it begins with."""
    for line in results.of_kind(lines, "mixture"):
        first = first_part(line.system)
        if first not in results.runs:
            continue
        tests = sorted(results.bleu, key=lambda test: test != results.plan.test)
        found = {test: results.contrast(test, {line.system: 1, first: -1}) for test in tests}
        parts = [f"{signed(one.value)} on `{test}` ({interval(one)})" for test, one in found.items()]
        yield (
            f"The best of {counted(len(results.plan.search), 'mixture')} is {named([line])} over the plain model. Its "
            f"difference from `{first}` alone is {' and '.join(parts)}."
        )


def _controls(results: Results, lines: Sequence[Line]) -> Iterator[str]:
    """Tell whether the parser's trees do more than others in the same models: only then does syntax help."""
    yield from (sentences := list(_on_average(results)))
    compared = results.of_random_trees(results.plan.test)
    alone = [f"`{system}` {signed(one.value)}" for system, one in compared.items() if one.is_real]
    if alone:
        yield f"Single systems that differ significantly from the same model with random trees: {', '.join(alone)}."
    if sentences:
        yield f"[Tables](#{anchor(control_title(results))})."


def _on_average(results: Results) -> Iterator[str]:
    """Compare the parser's trees with each kind of other trees, on average over the systems that have both."""
    averages = results.of_other_trees(results.plan.test)
    real = {trees: average for trees, average in averages.items() if average.is_real}
    for trees, average in real.items():
        pairs = results.other_trees[trees]
        word = "better" if average.value > 0 else "worse"
        yield (
            f"On average over {counted(len(pairs), 'system')}, the parser's trees are significantly {word} than "
            f"`{trees}` ones: {signed(average.value)} ({interval(average)})."
        )
        own, others = (results.from_plain(results.plan.test, list(one)) for one in (pairs, pairs.values()))
        yield (
            f"Compared with the plain model, these systems have {signed(own.value)} ({interval(own)}) with the "
            f"parser's trees and {signed(others.value)} ({interval(others)}) with the others."
        )
    chance = [one for one in averages if averages[one].seeded and one not in real]
    if chance:
        others = ", ".join(f"{trees} {signed(averages[trees].value)}" for trees in chance)
        yield f"In the same models, the parser's trees do not differ significantly from other trees: {others}."


def _cost(results: Results, lines: Sequence[Line]) -> Iterator[str]:
    """Say what the systems that help add to the model."""
    helpful = better(results.of_kind(lines, *TESTED))[:NAMED]
    parts = []
    for line in helpful:
        own, base = (results.runs[name][0]["weights"] for name in (line.system, results.baseline(line.system)))
        parts.append(f"`{line.system}` {_more_weights(own, base)}")
    if parts:
        yield f"{', '.join(parts)}."
    if parsed := [f"`{line.system}`" for line in helpful if reads_trees(results.recipe(line.system))]:
        yield f"A parser has to read each text for {' and '.join(parsed)}."


def _more_weights(own: int, base: int) -> str:
    share = f"{100 * abs(own - base) / base:.1f} %"
    return f"has {share} fewer weights" if own < base else f"adds {share} to the weights"


_QUESTIONS: dict[str, Callable[[Results, Sequence[Line]], Iterator[str]]] = {
    "Which systems help?": _which,
    "Is it the syntax?": _controls,
    "Where?": where,
    "Does a mixture help more?": _mixture,
    "At what cost, apart from the [time of a step](#what-a-variant-costs-in-training)?": _cost,
}
