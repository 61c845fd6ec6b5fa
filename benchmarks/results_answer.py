"""Does syntax help? The answer that results/ gives, in sentences that its intervals carry."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from results_found import Results
from results_plan import first_part
from results_statistics import Line, seeds_of
from results_tables import anchor, control_title, signed

from synmt.errors import counted

_NAMED = 6
"""The most systems that a sentence names."""
_USABLE = ("right", "none", "mixture")
"""Kinds of systems that someone would use; the others have trees that are wrong on purpose."""
_STILL_LEARNING = 0.5
"""A loss that fell below this share of the one before was still far from its end."""


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


def notes(results: Results, lines: Sequence[Line]) -> Iterator[str]:
    """Yield what a reader of the table of all systems has to know."""
    yield from _other_baselines(results, lines)
    yield from _unfinished(results, lines)
    yield from _unstable(lines)
    yield from _devices(results)


def _which(results: Results, lines: Sequence[Line]) -> Iterator[str]:
    """Say which systems help, by how much, and how sure this is."""
    seeds = seeds_of(lines)
    shown = results.of_trees(lines, "right", "none")
    if seeds == "1":
        largest = sorted(shown, key=lambda line: -abs(_gain(line)))
        yield (
            f"{counted(len(shown), 'system')} and a plain model have one seed each so far, so differences may be the "
            f"luck of training; the largest are {_named(largest[:3])} BLEU."
        )
        return
    yield f"{seeds} seeds{_with_one_seed(shown)}. {_verdict('With trees', results.of_trees(lines, 'right'))}."
    if without := results.of_trees(lines, "none"):
        yield f"{_verdict('Without trees', without)}."
    for line in results.of_trees(lines, "mixture"):
        if line.difference and line.difference.is_real:
            alone = [one for one in lines if one.system == first_part(line.system)]
            gains = "".join(f"; {one.system} alone gains {signed(_gain(one))}" for one in alone)
            yield f"The mixture {_verdict_on_one(line)}{gains}."


def _other_baselines(results: Results, lines: Sequence[Line]) -> Iterator[str]:
    """Name the systems of another architecture, which have their own plain model."""
    for base in results.plain(lines)[1:]:
        systems = results.of_trees(lines, "right", "none")
        own = [line.system for line in systems if results.baseline(line.system) == base.system]
        if own:
            yield f"The plain model of {', '.join(own)} is {base.system}."


def _devices(results: Results) -> Iterator[str]:
    """Say how many runs were trained on GPUs: there, the same seed draws other numbers for dropout."""
    runs = [run for runs in results.runs.values() for run in runs]
    gpus = [device for run in runs if (device := run.get("device", "cpu")) != "cpu"]
    if gpus:
        names = " and ".join(sorted(set(gpus)))
        share = f"{len(gpus)} of the {counted(len(runs), 'run')}"
        yield f"Trained on a GPU ({names}): {share}. There, a seed gives other dropout."


def _unfinished(results: Results, lines: Sequence[Line]) -> Iterator[str]:
    """Name the systems whose training ended long before they had learned all they could."""
    named = []
    for line in lines:
        (_, before), (_, last) = results.runs[line.system][0]["validation"][-2:]
        if last < _STILL_LEARNING * before:
            named.append(f"{line.system} by {100 * (before - last) / before:.0f} %")
    if named:
        yield (
            f"Training ended too early for some systems: between the last two validations, the loss still fell for "
            f"{', '.join(named)} (first seed). Their scores show how fast they learn, not how good they become."
        )


def _unstable(lines: Sequence[Line]) -> Iterator[str]:
    """Name the systems whose seeds vary so much that the variance of the others says nothing about them."""
    named = [f"{line.system} (±{line.deviation:.2f})" for line in lines if line.unstable]
    if named:
        yield (
            f"The scores of some systems vary far more from seed to seed than those of others: {', '.join(named)}. "
            "Their intervals use their own variance, and they have no part in that of the others."
        )


def _mixture(results: Results, lines: Sequence[Line]) -> Iterator[str]:
    """Say what the mixture that was found gains on the plain model, and on the system that it begins with."""
    for line in results.of_trees(lines, "mixture"):
        first = first_part(line.system)
        tests = sorted(results.bleu, key=lambda test: test != results.plan.test)
        compared = {test: results.mixture(test) for test in tests}
        found = {test: one.difference for test, one in compared.items() if one and one.difference}
        parts = [f"{signed(d.value)} on `{test}` ({signed(d.low)} to {signed(d.high)})" for test, d in found.items()]
        end = "" if any(d.is_real for d in found.values()) else ", not significant"
        yield (
            f"The best of {len(results.plan.search)} mixtures is {line.system}, {signed(_gain(line))} over the plain "
            f"model; its difference from {first} alone is {' and '.join(parts)}{end}."
        )


def _controls(results: Results, lines: Sequence[Line]) -> Iterator[str]:
    """Tell whether the parser's trees do more than others in the same models: only then does syntax help."""
    yield from (sentences := list(_on_average(results)))
    alone = [line for line in results.of_random_trees(results.plan.test) if line.difference and line.difference.is_real]
    if alone:
        yield f"Compared with random trees, single systems gain significantly: {_named(alone)}."
    if sentences:
        yield f"[Tables](#{anchor(control_title(results))})."


def _on_average(results: Results) -> Iterator[str]:
    """Compare the parser's trees with each kind of other trees, on average over the systems that have both."""
    averages = results.of_other_trees(results.plan.test)
    real = {trees: average for trees, average in averages.items() if average.is_real}
    for trees, average in real.items():
        word = "better" if average.value > 0 else "worse"
        systems = counted(len(results.other_trees[trees]), "system")
        yield (
            f"In the same models, the parser's trees are on average significantly {word} than {trees} ones: "
            f"{signed(average.value)} ({signed(average.low)} to {signed(average.high)}; {systems})."
        )
    chance = [one for one in averages if averages[one].seeded and one not in real]
    if chance:
        subject = "They" if real else "In the same models, the parser's trees"
        others = ", ".join(f"{trees} {signed(averages[trees].value)}" for trees in chance)
        yield f"{subject} do not differ significantly from other trees: {others}."


def _where(results: Results, lines: Sequence[Line]) -> Iterator[str]:
    """Say which systems gain where the sentences are hard, and in which groups of sentences."""
    for test, harder in results.bleu.items():
        if test == results.plan.test:
            continue
        own = {line.system: line.mean for line in lines}
        falls = [f"{line.system} from {own[line.system]:.1f} to {line.mean:.1f}" for line in results.plain(harder)]
        text = f"On sentences that are longer and deeper than those of training, BLEU falls: {', '.join(falls)}"
        if any(line.difference and line.difference.seeded for line in harder):
            text += f". There, {_verdict('with trees', results.of_trees(harder, 'right'))}"
            if without := results.of_trees(harder, "none"):
                text += f". {_verdict('Without trees', without)}"
        yield f"{text}."
    no_gain = []
    for grouping in results.groupings:
        gains = {value: _better(results.of_trees(own, *_USABLE)) for value, own in grouping.groups.items()}
        named = [f"`{value}` ({_named(better)})" for value, better in gains.items() if better]
        label = f"{grouping.label}{grouping.of_test}"
        if named:
            yield f"By {label}, significant gains are in {' and '.join(named)}."
        else:
            no_gain.append(f"by {label}")
    if no_gain:
        yield f"No gain is significant {' or '.join(no_gain)}."


def _cost(results: Results, lines: Sequence[Line]) -> Iterator[str]:
    """Say what the systems that help add to the model."""
    better = _better(results.of_trees(lines, *_USABLE))
    parts = []
    for line in better[:_NAMED]:
        own, base = (results.runs[name][0]["weights"] for name in (line.system, results.baseline(line.system)))
        parts.append(f"{line.system} {_more_weights(own, base)}")
    if parts:
        yield f"{', '.join(parts)}. For the time of a step, see [below](#what-a-variant-costs-in-training)."


def _more_weights(own: int, base: int) -> str:
    share = f"{100 * abs(own - base) / base:.1f} %"
    return f"has {share} fewer weights" if own < base else f"adds {share} to the weights"


def _better(lines: Sequence[Line], sign: int = 1) -> list[Line]:
    """Choose the lines with a real gain, or with a real loss, the largest first."""
    real = (line for line in lines if line.difference and line.difference.is_real and sign * _gain(line) > 0)
    return sorted(real, key=lambda line: -sign * _gain(line))


def _gain(line: Line) -> float:
    assert line.difference is not None
    return line.difference.value


def _verdict(kind: str, systems: Sequence[Line]) -> str:
    """Write `of 20 single systems with trees, 2 are significantly better than the plain model (a +2.00, b +1.00)`.

    kind: `with trees` or `without trees`, with a capital where a sentence begins.
    """
    if len(systems) == 1:
        return f"{kind}, {_verdict_on_one(systems[0])}"
    better, worse = _better(systems), _better(systems, sign=-1)
    of_kind = f"{'Of' if kind[0].isupper() else 'of'} {len(systems)} single systems {kind.lower()}"
    if not better and not worse:
        return f"{of_kind}, none differs significantly from the plain model"
    first = f"{_how_many(better)} significantly better than the plain model{_in_brackets(better)}"
    return f"{of_kind}, {first}" + (f", and {_how_many(worse)} worse{_in_brackets(worse)}" if worse else "")


def _how_many(lines: Sequence[Line]) -> str:
    return f"{len(lines) or 'none'} {'are' if len(lines) > 1 else 'is'}"


def _in_brackets(lines: Sequence[Line]) -> str:
    return f" ({_named(lines)})" if lines else ""


def _with_one_seed(systems: Sequence[Line]) -> str:
    """Warn of systems whose difference may be the luck of a single training."""
    single = sum(len(line.scores) == 1 for line in systems)
    return f"; {single} of the {len(systems)} systems have only one so far" if single else ""


def _verdict_on_one(line: Line) -> str:
    if line.difference and line.difference.is_real:
        word = "better" if _gain(line) > 0 else "worse"
        return f"{line.system} is significantly {word} than the plain model ({signed(_gain(line))})"
    return f"{line.system} does not differ significantly from the plain model"


def _named(lines: Sequence[Line]) -> str:
    named = ", ".join(f"{line.system} {signed(_gain(line))}" for line in lines[:_NAMED])
    return named + (f" and {len(lines) - _NAMED} more" if len(lines) > _NAMED else "")


_QUESTIONS: dict[str, Callable[[Results, Sequence[Line]], Iterator[str]]] = {
    "Which systems help?": _which,
    "Is it the syntax?": _controls,
    "Where?": _where,
    "Does a mixture help more?": _mixture,
    "At what cost?": _cost,
}
