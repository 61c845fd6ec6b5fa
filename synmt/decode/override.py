"""Counterfactual syntax: what becomes of a line under another tree than the one that its parser makes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from synmt.decode.inputs import Request
from synmt.decode.rescoring import rescore
from synmt.decode.translation import Translation
from synmt.decode.translator import Translator
from synmt.errors import UsageError
from synmt.syntax.controls import certain_arcs
from synmt.syntax.parse import Parse

_REPLACED = {
    "random": "replaces every tree by a random one (parser.control)",
    "left": "replaces every tree by a chain that branches to the left (parser.control)",
    "right": "replaces every tree by a chain that branches to the right (parser.control)",
    "shuffled": "replaces every tree by one of its shape on shuffled words (parser.control)",
}
"""What each control does to a tree that is given."""


@dataclass(frozen=True)
class Compared:
    """A line under two trees.

    own, other: its translations under its own tree and under the other one.
    own_again: the log-probability of its own translation, now under the other tree; 0 for a line without text.
    """

    own: Translation
    other: Translation
    own_again: float = 0.0

    @property
    def difference(self) -> float:
        """What the other tree adds to the log-probability of the own translation, in nats; mostly below 0."""
        return self.own_again - self.own.candidates[0].log_probability if self.own.candidates else 0.0

    @property
    def changed(self) -> bool:
        """Tell whether the line is translated otherwise."""
        return self.own.text != self.other.text


def check_override(translator: Translator) -> None:
    """Refuse a model for which all trees are the same."""
    if not translator.reads_trees:
        raise UsageError(
            "the model reads no trees, so another tree changes nothing",
            where="--parse-override",
            do="Take a run whose variants read trees when they translate, such as pascal or deps_san",
        )
    if what := control_of(translator):
        raise UsageError(
            f"the run {what}, so the other trees would not be read as they are",
            where="--parse-override",
            do="Take a run without `parser.control` and `parser.rewire`",
        )


def control_of(translator: Translator) -> str:
    """Say what a run does to every tree before a model reads it, also to a given one; empty where it does nothing."""
    controls = (reader.reading.control for reader in translator.readers if reader.reads_trees)
    for control in controls:
        done = [_REPLACED[control.kind]] if control.kind != "none" else []
        if control.rewire:
            done.append(f"gives {100 * control.rewire:g} % of the words another parent (parser.rewire)")
        if done:
            return " and ".join(done)
    return ""


def compare_windows(translator: Translator, windows: Iterable[list[Request]]) -> Iterator[list[Compared]]:
    """Translate lines under their own trees and under their other ones, window by window."""
    number = 1
    for requests in windows:
        yield _compare(translator, requests, number)
        number += len(requests)


def _compare(translator: Translator, requests: list[Request], number: int) -> list[Compared]:
    own = translator.translate_requests(requests, number)
    others = [replace(request, tree=_given(request, translator)) for request in requests]
    found = translator.translate_requests(others, number)
    lines, trees = translator.read(others, number)
    again = rescore(translator, lines, trees, own)
    return [
        Compared(one, other, again[index].log_probability if index in again else 0.0)
        for index, (one, other) in enumerate(zip(own, found, strict=True))
    ]


def _given(request: Request, translator: Translator) -> Parse:
    tree = request.other_tree
    assert tree is not None
    # trees that were written by hand have no probabilities
    certain = tree.arcs is None and any(reader.wants_arcs for reader in translator.readers)
    return replace(tree, arcs=certain_arcs(tree)) if certain and len(tree) else tree
