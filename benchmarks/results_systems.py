"""The systems of a comparison: what each one is, and what it is compared with."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cached_property
from typing import Any

from results_plan import Plan
from results_recipes import trees_of

from synmt.recipe.load import recipe_values
from synmt.recipe.schema import Recipe

SINGLE = ("parser", "induced", "none")
"""Kinds of single systems by their trees; systems with other trees are controls."""
TESTED = (*SINGLE, "mixture")
"""Kinds of systems that someone would use: whether they help is tested."""
OTHER_TREES = ("random", "shuffled", "rewired", "left", "right", "gold")


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

    def architecture(self, system: str) -> str:
        """Name the architecture of a system: `transformer` or `lstm`."""
        return self.recipes[system].model.architecture

    def baseline(self, system: str) -> str:
        """Name the system that a system is compared with; a baseline's own is itself."""
        given = self._plan.baseline(system) or self.repeats.get(system)
        return given or self._plan.baselines[self.architecture(system)]

    @cached_property
    def trees(self) -> dict[str, str]:
        """Which trees each system reads or learns from, as `trees_of` says it."""
        return {system: trees_of(recipe) for system, recipe in self.recipes.items()}

    def kind(self, system: str) -> str:
        """Tell the kind of a system.

        `parser`, `induced` or `none`, by its trees; `control`: with other trees than the parser's; `mixture`: the one
        that was found; `repeat`: another system in another precision.
        """
        if system == self.found:
            return "mixture"
        if system in self.repeats:
            return "repeat"
        return self.trees[system] if self.trees[system] in SINGLE else "control"

    @cached_property
    def repeats(self) -> dict[str, str]:
        """Of each system that only repeats another one in another precision, the other one."""
        first: dict[str, str] = {}
        # a baseline is never the repeat
        ordered = sorted(self._plan.systems, key=lambda system: system not in self._plan.baselines.values())
        same = {system: self._same(system, {"training.precision": "float32"}) for system in ordered}
        return {system: first[key] for system, key in same.items() if first.setdefault(key, system) != system}

    @cached_property
    def with_other_trees(self) -> dict[str, str]:
        """Of each system with other trees, the same model with the parser's trees, if there is one."""
        as_parsed = {"parser.control": "none", "parser.rewire": 0.0}
        own = {self._same(name, as_parsed): name for name in self._plan.systems if self.trees[name] == "parser"}
        others = [system for system in self._plan.systems if self.trees[system] in OTHER_TREES]
        found = {system: own.get(self._same(system, as_parsed)) for system in others}
        return {system: parsed for system, parsed in found.items() if parsed}

    def _same(self, system: str, changes: Mapping[str, Any]) -> str:
        """Identify all values of a system's recipe, after some changes."""
        values = recipe_values(self._plan.recipe(system, changes))
        return json.dumps({**values, "name": ""}, sort_keys=True)
