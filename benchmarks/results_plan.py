"""The plan of a comparison, a file of results/: systems, each of which is a recipe with seeds.

corpus, title               begin the names of runs, and head the tables
test, seeds                 the test set by which systems are ranked, the seeds of each system
shown: false                still in training, and on no page
set: {KEY: VALUE}           changes of every recipe
baselines: {transformer: SYSTEM}    what the systems of an architecture are compared with
bases: {transformer: [A, B]}    a system is what its recipe adds to recipe A, added to recipe B
systems: {SYSTEM: RECIPE}   or {SYSTEM: {recipe: RECIPE, set: {KEY: VALUE}}}, and there also
  baseline: SYSTEM          compared with this one, not with that of the architecture
  control_of: SYSTEM        the same model with the parser's trees
  tested: false             its difference gets no p
  seeds: [1]                these, instead of the above; of a system that lacks some of the above,
                            only the validation loss is shown
figure: [SYSTEM, …]         in the figures, from the top, also titles of differences; usually all
differences: {TITLE: [[SYSTEM, …], [SYSTEM, …]]}
                            the average of the first ones minus that of the second ones
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, Field, ValidationError

from synmt.errors import SynmtError, UsageError, all_in_one, plain_message, unknown_name
from synmt.model.build import place_variants
from synmt.recipe.corpus import ControlledRecipe
from synmt.recipe.load import check_recipe, load_recipe, recipe_values, set_key
from synmt.recipe.schema import Recipe
from synmt.recipe.yaml_text import load_yaml, parse_yaml_value
from synmt.training.grid_runs import GridRun
from synmt.training.tree_sources import tree_requirements

_SYSTEM_SECTIONS = ("model", "syntax", "tasks", "parser", "target_parser")
"""The sections of a recipe that make the system; the others are those of the corpus."""
_OF_THE_MACHINE = {
    "training": (
        "seed",
        "device",
        "cuda_graphs",
        "deterministic",
        "keep",
        "log_every",
        "save_every",
    ),
    "decoding": ("batch_size",),
    "parser": ("model", "workers", "device", "batch_words"),
    "target_parser": ("model", "workers", "device", "batch_words"),
}
"""Keys that change nothing of what is measured; the result names the parser."""
_UNIFORM = ("uldd", "uudd")
"""Distributions that know nothing of the tree but its words."""


class System(BaseModel, frozen=True, extra="forbid"):
    """A system as the plan writes it."""

    recipe: str
    set: dict[str, Any] = Field(default_factory=dict)
    baseline: str | None = None
    control_of: str | None = None
    tested: bool = True
    seeds: list[int] | None = None


def _in_full(system: Any) -> Any:
    return {"recipe": system} if isinstance(system, str) else system


class Plan(BaseModel, frozen=True, extra="forbid"):
    """A comparison on one corpus."""

    path: Path
    corpus: str
    title: str
    test: str
    seeds: Annotated[list[int], Field(min_length=1)]
    shown: bool = True
    baselines: dict[str, str]
    bases: dict[str, tuple[str, str]] = Field(default_factory=dict)
    systems: dict[str, Annotated[System, BeforeValidator(_in_full)]]
    set: dict[str, Any] = Field(default_factory=dict)
    figure: list[str] = Field(default_factory=list)
    differences: dict[str, tuple[list[str], list[str]]] = Field(default_factory=dict)

    @classmethod
    def load(cls, path: Path) -> Plan:
        """Read a file of results/; raises UsageError."""
        found = load_yaml(path)
        try:
            plan = cls.model_validate({**found, "path": path} if isinstance(found, dict) else found)
        except ValidationError as error:
            raise all_in_one([_problem(path, problem) for problem in error.errors()]) from None
        named = [*plan.baselines.values()]
        named += [name for name in plan.figure if name not in plan.differences]
        named += chain.from_iterable(chain(*plan.differences.values()))
        named += [system.baseline for system in plan.systems.values()]
        named += [system.control_of for system in plan.systems.values()]
        for name in filter(None, named):
            if name not in plan.systems:
                raise unknown_name("system", name, plan.systems, where=str(path))
        return plan

    @property
    def folder(self) -> Path:
        """The folder of the results, next to the plan."""
        return self.path.with_suffix("")

    @cached_property
    def recipes(self) -> dict[str, Recipe]:
        """The recipe of each system."""
        return {system: self.recipe(system, {}) for system in self.systems}

    @cached_property
    def trees(self) -> dict[str, str]:
        """The trees that each system reads or learns from."""
        return {system: _trees_of(recipe) for system, recipe in self.recipes.items()}

    @property
    def compared(self) -> list[str]:
        """The systems that are compared by their translations."""
        return [name for name in self.systems if set(self.seeds_of(name)) >= set(self.seeds)]

    @property
    def tested(self) -> list[str]:
        """The compared systems whose difference from another one is to be tested."""
        found = [name for name in self.compared if self.baseline(name) != name]
        found = [name for name in found if self.kind(name) != "control"]
        return [name for name in found if self.systems[name].tested]

    def seeds_of(self, system: str) -> list[int]:
        """List the seeds of a system."""
        return self.systems[system].seeds or self.seeds

    def kind(self, system: str) -> str:
        """Name the kind of a system by its trees: `parser`, `induced`, `none` or `control`."""
        useful = self.trees[system] in ("parser", "induced", "none")
        return self.trees[system] if useful else "control"

    def architecture(self, system: str) -> str:
        """Name the architecture of a system: `transformer` or `lstm`."""
        return self.recipes[system].model.architecture

    def baseline(self, system: str) -> str:
        """Name the system that a system is compared with; a baseline's own is itself."""
        return self.systems[system].baseline or self.baselines[self.architecture(system)]

    def runs(self, changes: Mapping[str, Any], folder: Path = Path()) -> Iterator[GridRun]:
        """Yield the runs in order: all systems with the first seed, then with the second."""
        for seed in sorted(set(chain.from_iterable(map(self.seeds_of, self.systems)))):
            for name in self.systems:
                if seed in self.seeds_of(name):
                    recipe = self.recipe(name, {**changes, "training.seed": seed})
                    yield GridRun(name, recipe, folder / recipe.name)

    def result(self, system: str, seed: int) -> Path:
        """Return the file of a result."""
        return self.folder / f"{_file_name(system)}-seed{seed}.json"

    def recipe(self, name: str, changes: Mapping[str, Any]) -> Recipe:
        """Make the recipe of a system."""
        system, where = self.systems[name], f"{self.path}, {name}"
        recipe = load_recipe(system.recipe)
        architecture = recipe.model.architecture
        if architecture not in self.baselines:
            raise unknown_name("baseline", architecture, self.baselines, where=where)
        bases = self.bases.get(architecture)
        values = recipe_values(_moved(recipe, *bases) if bases else recipe)
        for key, value in {**self.set, **system.set, **changes}.items():
            set_key(values, key, value)
        values["name"] = f"{self.corpus}-{_file_name(name)}-seed{values['training']['seed']}"
        return check_recipe(values, where=where)


def _problem(path: Path, problem: Mapping[str, Any]) -> SynmtError:
    key = ".".join(map(str, problem["loc"]))
    return UsageError(f"{key}: {plain_message(problem)}".removeprefix(": "), where=str(path))


def _file_name(system: str) -> str:
    return re.sub(r"[^\w.]+", "-", system).strip("-")


def _moved(system: Recipe, origin: str, target: str) -> Recipe:
    """Add what a recipe adds to one base to another base."""
    of_system, base = recipe_values(system), recipe_values(load_recipe(origin))
    values = recipe_values(load_recipe(target))
    for section in _SYSTEM_SECTIONS:
        for key, value in of_system[section].items():
            if value != base[section][key]:
                values[section][key] = value
    values["training"]["pretraining"] = of_system["training"]["pretraining"]
    return check_recipe(values, where=system.name)


def _trees_of(recipe: Recipe) -> str:
    """Name the trees that a model reads or learns from: `parser`, `induced`, `none` or others."""
    variants, parser = recipe.syntax.variants, recipe.parser
    if variants and all(variant.options.get("kind") in _UNIFORM for variant in variants):
        return "uniform"
    needs = tree_requirements(recipe).values()
    if any(need.to_run or need.to_learn for need in needs) or recipe.tasks.trees != "none":
        if parser.rewire:
            return f"rewired {parser.rewire:.0%}"
        return "parser" if parser.control == "none" else parser.control
    sides = place_variants(recipe.model, recipe.syntax).values()
    placed = chain.from_iterable(chain.from_iterable(sides))
    return "induced" if any(variant.build().induces_trees for variant in placed) else "none"


def change(text: str) -> tuple[str, Any]:
    """Read `section.key=value`."""
    key, _, value = text.partition("=")
    return key, parse_yaml_value(value)


def fingerprint(recipe: Recipe) -> str:
    """Identify all values of a recipe that a result depends on, apart from the seed."""
    values = recipe_values(recipe)
    del values["name"]
    for section, keys in _OF_THE_MACHINE.items():
        for key in keys:
            values[section].pop(key, None)
    # keys that came after the first results, with their defaults
    first = {
        "model": {"output_bias": False},
        "training": {"pretrained_rate": 1.0, "optimizer": "adamw", "ema": 0.0},
        "corpus": {"controlled": ControlledRecipe().model_dump()},
        "decoding": {"shortlist": 0},
    }
    new = [(values[section], defaults) for section, defaults in first.items()]
    new += [(variant, {"warm": 0}) for variant in values["syntax"]["variants"]]
    for part, defaults in new:
        for key in [key for key, default in defaults.items() if part.get(key) == default]:
            del part[key]
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()[:12]
