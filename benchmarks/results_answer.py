"""Does syntax help? The answer that results/ gives, in sentences that its intervals carry."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Sequence

from results_found import SINGLE, TESTED, Grouping, Results
from results_plan import first_part
from results_statistics import Difference, Line, seeds_of
from results_tables import anchor, control_title, interval, signed

from synmt.errors import counted

_NAMED = 6
"""The most systems that a sentence names."""
_OF_KIND = {"parser": "with a parser's trees", "induced": "with induced trees", "none": "without trees"}


def answer(found: Sequence[tuple[Results, list[Line]]]) -> Iterator[str]:
    """Yield a list with the answer to each question, from all comparisons."""
    for question, part in _QUESTIONS.items():
        answers = [
            f"*{results.plan.title}*: {' '.join(sentences)}"
            for results, lines in found
            if (sentences := list(part(results, lines)))
        ]
        if answers:
            yield f"- **{question}** {' '.join(answers)}"


def in_short(found: Sequence[tuple[Results, list[Line]]]) -> Iterator[str]:
    """Yield a line for each comparison whose systems have several seeds: which systems help, and is it the syntax."""
    for results, lines in found:
        if seeds_of(lines) != "1":
            yield f"- **{results.plan.title}**: {' '.join((*_which(results, lines), *_on_average(results)))}"


def _which(results: Results, lines: Sequence[Line]) -> Iterator[str]:
    """Say which systems help, by how much, and how sure this is."""
    tested = results.of_kind(lines, *SINGLE)
    seeds = seeds_of([lines[0], *tested])
    if seeds == "1":
        precision = results.precision(lines[0].system)
        like_plain = (line for line in tested if results.precision(line.system) == precision)
        largest = sorted(like_plain, key=lambda line: -abs(_gain(line)))
        yield (
            f"The plain model and {counted(len(tested), 'system')} have one seed each so far, so differences may be "
            f"the luck of training; the largest are {_named(largest[:3])} BLEU."
        )
        return
    yield f"{seeds} seeds; {_power(results, tested)}."
    yield from _verdicts(results, lines)
    yield from _best_with_and_without(results, lines)
    for line in results.of_kind(lines, "mixture"):
        if _is_real(line):
            alone = [one for one in lines if one.system == first_part(line.system)]
            gains = "".join(f"; {one.system} alone gains {signed(_gain(one))}" for one in alone)
            yield f"The mixture {_verdict_on_one(line)}{gains}."


def _needed(lines: Sequence[Line], tests: int) -> float:
    """Compute the difference that half of the systems would need to be significant."""
    return statistics.median(line.difference.smallest_real(tests) for line in lines if line.difference)


def _power(results: Results, lines: Sequence[Line]) -> str:
    """Say how large a gain has to be to be significant."""
    lstms = [line for line in lines if results.architecture(line.system) == "lstm"]
    others = [line for line in lines if line not in lstms]
    more = f", with an LSTM about {_needed(lstms, len(lines)):.1f}" if lstms and others else ""
    return f"to be significant, a gain has to be about {_needed(others or lstms, len(lines)):.1f} BLEU{more}"


def _verdicts(results: Results, lines: Sequence[Line]) -> Iterator[str]:
    """Count the systems of each kind that differ significantly from the plain model, and name them."""
    tested = results.of_kind(lines, *SINGLE)
    if tested and not any(map(_is_real, tested)):
        best = max(tested, key=_gain)
        assert best.difference is not None
        yield (
            f"None of {counted(len(tested), 'system')} differs significantly from the plain model; the largest gain is "
            f"{best.system} {signed(_gain(best))} ({interval(best.difference)})."
        )
        return
    for kind, of_kind in _OF_KIND.items():
        if systems := results.of_kind(lines, kind):
            yield _verdict(of_kind, systems)


def _verdict(kind: str, systems: Sequence[Line]) -> str:
    """Write `Of 20 systems with trees, 2 are significantly better than the plain model (a +2.00, b +1.00).`"""
    if len(systems) == 1:
        return f"{kind[0].upper()}{kind[1:]}, {_verdict_on_one(systems[0])}."
    better, worse = _better(systems), _better(systems, sign=-1)
    of_kind = f"Of {counted(len(systems), 'system')} {kind}"
    if not better and not worse:
        return f"{of_kind}, none differs significantly from the plain model."
    first = _how_many(better, "significantly better than the plain model")
    return f"{of_kind}, {first}" + (f", and {_how_many(worse, 'worse')}" if worse else "") + "."


def _best_with_and_without(results: Results, lines: Sequence[Line]) -> Iterator[str]:
    """Compare the best system with a parser's trees and the best one without trees, of the first architecture."""
    first = results.architecture(lines[0].system)
    own = [line for line in lines if results.architecture(line.system) == first]
    kinds = [results.of_kind(own, kind) for kind in ("parser", "none")]
    if all(kinds):
        trees, none = (max(systems, key=_gain) for systems in kinds)
        found = results.contrast(results.plan.test, {none.system: 1, trees.system: -1})
        yield f"{trees.system} is the best with a parser's trees; {none.system}, without trees, {_more(found)}."


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
            f"The best of {len(results.plan.search)} mixtures is {line.system}, {signed(_gain(line))} over the plain "
            f"model. Its difference from {first} alone is {' and '.join(parts)}."
        )


def _controls(results: Results, lines: Sequence[Line]) -> Iterator[str]:
    """Tell whether the parser's trees do more than others in the same models: only then does syntax help."""
    yield from (sentences := list(_on_average(results)))
    alone = {system: one for system, one in results.of_random_trees(results.plan.test).items() if one.is_real}
    if alone:
        named = ", ".join(f"{system} {signed(one.value)}" for system, one in alone.items())
        yield f"Compared with random trees, single systems gain significantly: {named}."
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
            f"In {counted(len(pairs), 'system')}, the parser's trees are on average significantly {word} than {trees} "
            f"ones: {signed(average.value)} ({interval(average)})."
        )
        own, others = (results.from_plain(results.plan.test, list(one)) for one in (pairs, pairs.values()))
        yield (
            f"These systems differ from the plain model by {signed(own.value)} ({interval(own)}) with the parser's "
            f"trees and by {signed(others.value)} ({interval(others)}) with {trees} ones."
        )
    chance = [one for one in averages if averages[one].seeded and one not in real]
    if chance:
        subject = "They" if real else "In the same models, the parser's trees"
        others = ", ".join(f"{trees} {signed(averages[trees].value)}" for trees in chance)
        yield f"{subject} do not differ significantly from other trees: {others}."


def _where(results: Results, lines: Sequence[Line]) -> Iterator[str]:
    """Say which systems gain where the sentences are hard, and in which groups of sentences."""
    for test, harder in results.bleu.items():
        if test != results.plan.test:
            yield from _on_hard_sentences(results, lines, test, harder)
    no_gain = []
    for grouping in results.groupings:
        gains = {value: _better(results.of_kind(own, *TESTED)) for value, own in grouping.groups.items()}
        named = [f"`{value}` ({_named(better)})" for value, better in gains.items() if better]
        label = f"{grouping.label}{grouping.of_test}"
        if named:
            yield f"By {label}, significant gains are in {' and '.join(named)}."
        else:
            no_gain.append(f"by {label} ({_power_in_groups(results, grouping)})")
    if no_gain:
        yield f"No gain is significant {' or '.join(no_gain)}."


def _on_hard_sentences(results: Results, lines: Sequence[Line], test: str, harder: Sequence[Line]) -> Iterator[str]:
    own = {line.system: line.mean for line in lines}
    plain, *others = results.plain(harder)
    falls = [f"{line.system} from {own[line.system]:.1f} to {line.mean:.1f}" for line in (plain, *others)]
    yield f"On `{test}`, whose sentences are longer and deeper than those of training, BLEU falls: {', '.join(falls)}."
    for other in others:
        found = results.contrast(test, {other.system: 1, plain.system: -1})
        steps = [results.runs[line.system][0]["steps"] for line in (other, plain)]
        yield f"There, {other.system} {_more(found)} than {plain.system} ({steps[0]:,} steps instead of {steps[1]:,})."
    if any(line.difference and line.difference.seeded for line in harder):
        yield from _verdicts(results, harder)


def _power_in_groups(results: Results, grouping: Grouping) -> str:
    """Say how large a gain would have to be."""
    needed = [_needed(own, len(own)) for lines in grouping.groups.values() if (own := results.of_kind(lines, *TESTED))]
    return f"where it would have to be {min(needed):.0f} to {max(needed):.0f} points"


def _cost(results: Results, lines: Sequence[Line]) -> Iterator[str]:
    """Say what the systems that help add to the model."""
    better = _better(results.of_kind(lines, *TESTED))[:_NAMED]
    parts = []
    for line in better:
        own, base = (results.runs[name][0]["weights"] for name in (line.system, results.baseline(line.system)))
        parts.append(f"{line.system} {_more_weights(own, base)}")
    if parts:
        yield f"{', '.join(parts)}."
    if parsed := [line.system for line in better if results.trees[line.system] == "parser"]:
        yield f"A parser has to read each text for {' and '.join(parsed)}."


def _more_weights(own: int, base: int) -> str:
    share = f"{100 * abs(own - base) / base:.1f} %"
    return f"has {share} fewer weights" if own < base else f"adds {share} to the weights"


def _better(lines: Sequence[Line], sign: int = 1) -> list[Line]:
    """Choose the lines with a real gain, or with a real loss, the largest first."""
    real = (line for line in lines if _is_real(line) and sign * _gain(line) > 0)
    return sorted(real, key=lambda line: -sign * _gain(line))


def _gain(line: Line) -> float:
    assert line.difference is not None
    return line.difference.value


def _how_many(lines: Sequence[Line], what: str) -> str:
    named = f" ({_named(lines)})" if lines else ""
    return f"{len(lines) or 'none'} {'are' if len(lines) > 1 else 'is'} {what}{named}"


def _more(found: Difference) -> str:
    return f"has {abs(found.value):.2f} BLEU {'more' if found.value > 0 else 'less'} ({interval(found)})"


def _is_real(line: Line) -> bool:
    return line.difference is not None and line.difference.is_real


def _verdict_on_one(line: Line) -> str:
    if not _is_real(line):
        return f"{line.system} does not differ significantly from the plain model"
    return f"{line.system} is significantly {'better' if _gain(line) > 0 else 'worse'} ({signed(_gain(line))})"


def _named(lines: Sequence[Line]) -> str:
    named = ", ".join(f"{line.system} {signed(_gain(line))}" for line in lines[:_NAMED])
    return named + (f" and {len(lines) - _NAMED} more" if len(lines) > _NAMED else "")


_QUESTIONS: dict[str, Callable[[Results, Sequence[Line]], Iterator[str]]] = {
    "Which systems help?": _which,
    "Is it the syntax?": _controls,
    "Where?": _where,
    "Does a mixture help more?": _mixture,
    "At what cost, apart from the [time of a step](#what-a-variant-costs-in-training)?": _cost,
}
