"""What a model reads from trees: its signals, and the control that replaces the trees."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from synmt.arrays import Strings
from synmt.recipe.data import ParserRecipe
from synmt.syntax.controls import UNCHANGED, Control
from synmt.syntax.feature_signals import STORED
from synmt.syntax.parse import FEATURES, SCENES
from synmt.syntax.signals import Signal


@dataclass(frozen=True)
class Reading:
    """What the model reads from the trees of one side.

    control: the replacement of the trees, if any.
    certain: whether arcs without probabilities get probability 1, as in controls and gold trees.
    constituents: whether they are given; otherwise they are built from the dependencies.
    """

    signals: Sequence[Signal] = ()
    control: Control = UNCHANGED
    certain: bool = False
    constituents: bool = False

    @property
    def arcs(self) -> bool:
        """Check whether a signal needs probabilities of arcs."""
        return any(signal.needs == "arcs" for signal in self.signals)

    @property
    def of_parser(self) -> Strings:
        """List the features of words that the parser has to give."""
        return tuple(name for name in needed_features(self.signals) if name in FEATURES)

    @property
    def scenes(self) -> bool:
        """Check whether a signal needs scenes, which come with the text."""
        return any(signal.needs == SCENES for signal in self.signals)


def reading_of(signals: Sequence[Signal], parser: ParserRecipe) -> Reading:
    """Combine signals with the control of a recipe; gold trees and the parser's trees stay
    unchanged."""
    kind, control = "none" if parser.control == "gold" else parser.control, UNCHANGED
    if kind != "none" or parser.rewire:
        control = Control(kind, rewire=parser.rewire, seed=parser.seed)
    constituents = parser.constituents == "given"
    return Reading(signals, control, certain=parser.control != "none", constituents=constituents)


def needed_features(signals: Sequence[Signal]) -> Strings:
    """List what an annotation has to store for signals: those of STORED that they need."""
    needed = {signal.needs for signal in signals}
    return tuple(name for name in STORED if name in needed)
