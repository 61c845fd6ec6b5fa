"""What a reader of the table of all systems has to know: sentences below it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from results_found import Results
from results_statistics import Line
from results_tables import scores_of

from synmt.errors import counted

_STILL_LEARNING = 0.5
"""A loss that fell below this share of the one before was still far from its end."""


def notes(results: Results, lines: Sequence[Line]) -> Iterator[str]:
    """Yield what a reader of the table of all systems has to know."""
    yield from _other_baselines(results, lines)
    yield from _unfinished(results, lines)
    yield from _unstable(lines)
    yield from _devices(results)


def _other_baselines(results: Results, lines: Sequence[Line]) -> Iterator[str]:
    """Name the systems that are compared with another one than the first baseline."""
    compared: dict[str, list[str]] = {}
    for line in lines:
        if line.difference and results.baseline(line.system) != lines[0].system:
            compared.setdefault(results.baseline(line.system), []).append(f"`{line.system}`")
    if compared:
        parts = "; ".join(f"{', '.join(systems)} with `{base}`" for base, systems in compared.items())
        yield f"Most systems are compared with `{lines[0].system}`; {parts}."


def _devices(results: Results) -> Iterator[str]:
    """Say how many runs were trained on GPUs: there, the same seed draws other numbers for dropout."""
    runs = [run for runs in results.runs.values() for run in runs]
    gpus = [device for run in runs if (device := run.get("device", "cpu")) != "cpu"]
    if gpus:
        names = " and ".join(sorted(set(gpus)))
        share = f"{len(gpus)} of the {counted(len(runs), 'run')}"
        yield f"Trained on a GPU ({names}): {share}. There, a seed gives other dropout."


def _unfinished(results: Results, lines: Sequence[Line]) -> Iterator[str]:
    """Name the systems whose training ended, with any seed, long before they had learned all they could."""
    named = []
    for line in lines:
        losses = [[loss for _, loss in run["validation"]] for run in results.runs[line.system]]
        falls = [1 - last / before for *_, before, last in filter(_has_two, losses)]
        if max(falls, default=0.0) > 1 - _STILL_LEARNING:
            named.append(f"`{line.system}` by {100 * max(falls):.0f} %")
    if named:
        yield (
            f"Training ended too early for some systems: between the last two validations, the loss still fell for "
            f"{', '.join(named)} (the seed in which it fell most). Their scores show how fast they learn, not how good "
            "they become."
        )


def _has_two(losses: Sequence[float]) -> bool:
    return len(losses) > 1


def _unstable(lines: Sequence[Line]) -> Iterator[str]:
    """Name the systems whose seeds vary so much that nothing can be said of them."""
    named = [f"`{line.system}` ({scores_of(line)})" for line in lines if line.unstable]
    if named:
        yield (
            f"Some systems vary far more from seed to seed than others, and are not tested: {', '.join(named)} BLEU."
        )
