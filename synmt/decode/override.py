"""Counterfactual syntax: how a line is translated with another tree than its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from synmt.decode.forced import rescore
from synmt.decode.inputs import Request
from synmt.decode.translation import Translation
from synmt.decode.translator import Translator
from synmt.errors import UsageError
from synmt.syntax.controls import certain_arcs
from synmt.syntax.parse import Parse

_REPLACEMENTS = {
    "random": "a random tree",
    "left": "a left-branching chain",
    "right": "a right-branching chain",
    "shuffled": "a tree of the same shape over shuffled words",
}
"""What each control puts in the place of a tree."""


@dataclass(frozen=True)
class CounterfactualTranslation:
    """A line translated under two trees.

    own, other: its translations with its own tree and with the other tree.
    own_rescored: log-probability of its own translation with the other tree; 0 for a line without
        text.
    """

    own: Translation
    other: Translation
    own_rescored: float = 0.0

    @property
    def difference(self) -> float:
        """How the other tree changes the log-probability of the own translation, in nats; usually
        below 0."""
        return self.own_rescored - self.own.best.log_probability

    @property
    def changed(self) -> bool:
        """Whether the two translations differ."""
        return self.own.text != self.other.text


def check_override(translator: Translator) -> None:
    """Refuse a model that reads the same trees whatever it is given."""
    if not translator.reads_trees:
        raise UsageError(
            "the model reads no trees, so another tree changes nothing",
            where="--parse-override",
            do="Use a run with variants that read trees when they translate, such as pascal or "
            "deps_san",
        )
    translator.refuse_linearised("--parse-override")
    if control := describe_control(translator):
        raise UsageError(
            f"the run {control}, so the model would not read the other trees as they are",
            where="--parse-override",
            do="Use a run without `parser.control` and `parser.rewire`",
        )


def describe_control(translator: Translator) -> str:
    """Describe what a run does to every tree before a model reads it, even to given trees; empty if
    nothing."""
    for control in (model.reading.control for model in translator.models if model.reads_trees):
        changes = []
        if control.kind != "none":
            changes.append(f"replaces every tree by {_REPLACEMENTS[control.kind]} (parser.control)")
        if control.rewire:
            changes.append(
                f"gives {100 * control.rewire:g} % of the words another parent (parser.rewire)"
            )
        if changes:
            return " and ".join(changes)
    return ""


def translate_counterfactually(
    translator: Translator, requests: Sequence[Request], number: int = 1
) -> list[CounterfactualTranslation]:
    """Translate a window with its own trees and with `other_tree`; `number` is the line number of
    its first line."""
    own = translator.translate_requests(requests, number)
    others = [replace(request, tree=_other_tree(request, translator)) for request in requests]
    under_other = translator.translate_requests(others, number)
    rescored = rescore(translator.models, translator.read(others, number), own)
    return [
        CounterfactualTranslation(
            one, other, rescored[index].log_probability if index in rescored else 0.0
        )
        for index, (one, other) in enumerate(zip(own, under_other, strict=True))
    ]


def _other_tree(request: Request, translator: Translator) -> Parse:
    tree = request.other_tree
    assert tree is not None
    # a tree that was written by hand has no arc probabilities
    needs_arcs = tree.arcs is None and any(model.needs_arcs for model in translator.models)
    return replace(tree, arcs=certain_arcs(tree)) if needs_arcs and len(tree) else tree
