"""The systems of a comparison: what each one is, which trees it has, and what it is compared
with."""

from __future__ import annotations

import json
from functools import cached_property
from typing import Any

from results_plan import Plan

from synmt.model.build import place_variants
from synmt.recipe.load import recipe_values
from synmt.recipe.schema import Recipe
from synmt.training.tree_sources import tree_requirements

TESTED = ("parser", "induced", "none", "mixture")
"""Kinds of systems that someone would use: whether they help is tested."""
OTHER_TREES = ("random", "shuffled", "rewired", "left", "right", "gold")
_UNIFORM = ("uldd", "uudd")
"""Distributions that know nothing of the tree but its words."""


def trees_of(recipe: Recipe) -> str:
    """Name the trees that a model reads or learns from.

    `parser`, a control, `rewired`, `uniform`, `induced` or `none`.
    """
    variants = recipe.syntax.variants
    if variants and all(variant.options.get("kind") in _UNIFORM for variant in variants):
        return "uniform"
    needs = tree_requirements(recipe).values()
    if any(need.to_run or need.to_learn for need in needs) or recipe.tasks.trees != "none":
        changed = "rewired" if recipe.parser.rewire else recipe.parser.control
        return "parser" if changed == "none" else changed
    placed = place_variants(recipe.model, recipe.syntax)
    layers = (layer for of_side in placed.values() for layer in of_side)
    induces = any(variant.build().induces_trees for layer in layers for variant in layer)
    return "induced" if induces else "none"


class Systems:
    """The systems of a plan, whether they have results or not.

    found: the mixture that the search of the plan has found, if it has.
    """

    def __init__(self, plan: Plan) -> None:
        self.found = plan.found()
        self.names = (*plan.systems, *filter(None, [self.found]))
        self._plan = plan

    @cached_property
    def recipes(self) -> dict[str, Recipe]:
        """The recipe of each system."""
        return {system: self._plan.recipe(system, {}) for system in self.names}

    @cached_property
    def trees(self) -> dict[str, str]:
        """The trees that each system reads or learns from."""
        return {system: trees_of(recipe) for system, recipe in self.recipes.items()}

    def architecture(self, system: str) -> str:
        """Name the architecture of a system: `transformer` or `lstm`."""
        return self.recipes[system].model.architecture

    def plain(self, system: str) -> str:
        """Name the plain model of a system's architecture."""
        return self._plan.baselines[self.architecture(system)]

    def baseline(self, system: str) -> str:
        """Name the system that a system is compared with; a baseline's own is itself."""
        given = self._plan.systems.get(system)
        own = given.baseline if given else None
        return own or self.repeats.get(system) or self.plain(system)

    def kind(self, system: str) -> str:
        """Name the kind of a system.

        `parser`, `induced` or `none`, by its trees; `control`: with other trees than the parser's;
        `mixture`: the one that was found; `repeat`: another system in another precision.
        """
        if system == self.found:
            return "mixture"
        if system in self.repeats:
            return "repeat"
        return self.trees[system] if self.trees[system] in TESTED else "control"

    @cached_property
    def repeats(self) -> dict[str, str]:
        """Of each system that only repeats another one in another precision, the other one."""
        first: dict[str, str] = {}
        found: dict[str, str] = {}
        baselines = self._plan.baselines.values()
        # a baseline is never the repeat
        for system in sorted(self._plan.systems, key=lambda system: system not in baselines):
            other = first.setdefault(self._after(system, {"training.precision": "float32"}), system)
            if other != system:
                found[system] = other
        return found

    @cached_property
    def with_other_trees(self) -> dict[str, str]:
        """Of each system with other trees, the same model with the parser's trees, if there is
        one."""
        as_parsed = {"parser.control": "none", "parser.rewire": 0.0}
        alike = {system: self._after(system, as_parsed) for system in self._plan.systems}
        own = {alike[one]: one for one in self._plan.systems if self.trees[one] == "parser"}
        return {
            system: own[values]
            for system, values in alike.items()
            if self.trees[system] in OTHER_TREES and values in own
        }

    def _after(self, system: str, changes: dict[str, Any]) -> str:
        """Identify all values of a system's recipe, after some changes."""
        values = recipe_values(self._plan.recipe(system, changes))
        return json.dumps({**values, "name": ""}, sort_keys=True)
