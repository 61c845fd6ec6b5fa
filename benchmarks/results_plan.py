"""What `benchmarks/results.py` compares: the systems of a file in results/, each as a recipe with a seed.

corpus: controlled                  the folder of results, and the first part of the names of runs
transformer: {differences_from: A, added_to: B}
                                    a system is what its recipe adds to recipe A, added to recipe B
set: {KEY: VALUE}                   changes of every recipe
seeds: [1, 2, 3]
baselines: {transformer: plain}     the system that the others of an architecture are compared with
systems: {NAME: RECIPE, NAME: {recipe: RECIPE, set: {KEY: VALUE}, baseline: NAME}}
                                    `baseline` if another system than that of its architecture
search: {NAME: …}                   mixtures, as `systems`: trained with the first seed; the one with the lowest
                                    loss on the validation text is compared like a system, with all seeds
contrast                            contrastive sets
groups: [{test: TEST, by: LABEL, metric: bleu, without: {LABEL: VALUE}}]
                                    tables of a test set by a label, of BLEU or `exact` match
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from synmt.model.build import place_variants
from synmt.recipe.load import check_recipe, load_recipe, recipe_values
from synmt.recipe.schema import Recipe
from synmt.recipe.yaml_text import load_yaml
from synmt.training.trees.requirements import tree_requirements

_SYSTEM_SECTIONS = ("model", "syntax", "tasks", "parser", "target_parser")
"""The sections of a recipe that make the system; the others are those of the corpus."""
_UNIFORM = ("uldd", "uudd")
"""Distributions that know nothing of the tree but its words."""

_OF_THE_MACHINE = {
    "name": None,
    "training": ("seed", "device", "keep", "log_every", "save_every"),
    "decoding": ("batch_size",),
    "parser": ("model", "workers", "device", "batch_words"),
    "target_parser": ("model", "workers", "device", "batch_words"),
}
"""Keys that change nothing of what is measured; the result names the parser."""


@dataclass(frozen=True)
class Planned:
    """One run of the comparison.

    seed: of training.
    result: the file of the result.
    """

    system: str
    seed: int
    recipe: Recipe
    result: Path

    @property
    def fingerprint(self) -> str:
        """Identify all values of the recipe that a result depends on, apart from the seed."""
        values = recipe_values(self.recipe)
        for section, keys in _OF_THE_MACHINE.items():
            if keys is None:
                del values[section]
            else:
                values[section] = {key: value for key, value in values[section].items() if key not in keys}
        return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()[:12]


@dataclass(frozen=True)
class Plan:
    """A comparison on one corpus.

    folder: of the results.
    """

    path: Path
    corpus: str
    title: str
    test: str
    seeds: Sequence[int]
    systems: Mapping[str, str | Mapping[str, Any]]
    search: Mapping[str, str | Mapping[str, Any]] = field(default_factory=dict)
    set: Mapping[str, Any] = field(default_factory=dict)
    transformer: Mapping[str, str] | None = None
    lstm: Mapping[str, str] | None = None
    baselines: Mapping[str, str] = field(default_factory=dict)
    contrast: str | None = None
    groups: Sequence[Mapping[str, Any]] = ()

    @classmethod
    def load(cls, path: Path) -> Plan:
        """Read a file of results/."""
        return cls(path, **load_yaml(path))

    @property
    def folder(self) -> Path:
        """The folder of the results, next to the plan."""
        return self.path.with_suffix("")

    def runs(self, changes: Mapping[str, Any]) -> Iterator[Planned]:
        """Yield the runs in order: all systems with the first seed, then with the second."""
        found = self.found()
        for seed in self.seeds:
            tried = self.search if seed == self.seeds[0] else (found,) if found else ()
            for system in (*self.systems, *tried):
                recipe = self.recipe(system, {**changes, "training.seed": seed})
                yield Planned(system, seed, recipe, self.result(system, seed))

    def baseline(self, system: str) -> str | None:
        """Name the system that a system is compared with, if it is another one than that of its architecture."""
        given = self.systems.get(system, "")
        return None if isinstance(given, str) else given.get("baseline")

    def result(self, system: str, seed: int) -> Path:
        """Name the file of a result."""
        return self.folder / f"{file_name(system)}-seed{seed}.json"

    def tried(self) -> dict[str, float]:
        """Read the lowest loss on the validation text of each mixture of the search that has been trained."""
        return self._losses(self.search)

    def parts(self) -> dict[str, float]:
        """Read the same of the systems with which the mixtures begin: of `a` for a mixture `a + b`."""
        first = set(map(first_part, self.search))
        return self._losses(system for system in self.systems if system in first)

    def _losses(self, systems: Iterable[str]) -> dict[str, float]:
        files = {system: self.result(system, self.seeds[0]) for system in systems}
        found = {system: json.loads(path.read_text("utf-8")) for system, path in files.items() if path.exists()}
        return {system: min(loss for _, loss in result["validation"]) for system, result in found.items()}

    def found(self) -> str | None:
        """Name the mixture that the search has found, once all of them have been trained."""
        tried = self.tried()
        return min(tried, key=tried.__getitem__) if tried and len(tried) == len(self.search) else None

    def recipe(self, system: str, changes: Mapping[str, Any]) -> Recipe:
        """Make the recipe of a system."""
        given = {**self.systems, **self.search}[system]
        name, own = (given, {}) if isinstance(given, str) else (given["recipe"], given.get("set", {}))
        of_system = load_recipe(name)
        frame = self.lstm if of_system.model.architecture == "lstm" else self.transformer
        values = recipe_values(of_system if frame is None else _moved(of_system, frame))
        for key, value in {**self.set, **own, **changes}.items():
            _set(values, key.split("."), value)
        values["name"] = f"{self.corpus}-{file_name(system)}-seed{values['training']['seed']}"
        return check_recipe(values, where=f"{self.path}, {system}")


def reads_trees(recipe: Recipe) -> bool:
    """Tell whether a parser has to read the text that a model translates."""
    return any(need.to_run for need in tree_requirements(recipe).values())


def trees_of(recipe: Recipe) -> str:
    """Tell which trees a model reads or learns from: `parser`, a control, `rewired`, `uniform`, `induced`, `none`."""
    variants = recipe.syntax.variants
    if variants and all(variant.options.get("kind") in _UNIFORM for variant in variants):
        return "uniform"
    needs = tree_requirements(recipe).values()
    if any(need.to_run or need.to_learn for need in needs) or recipe.tasks.trees != "none":
        changed = "rewired" if recipe.parser.rewire else recipe.parser.control
        return "parser" if changed == "none" else changed
    placed = place_variants(recipe.model, recipe.syntax)
    built = (variant.build() for layers in placed.values() for layer in layers for variant in layer)
    return "induced" if any(variant.induces_trees for variant in built) else "none"


def first_part(mixture: str) -> str:
    """Name the system that a mixture begins with: `a` of `a + b`."""
    return mixture.partition(" + ")[0]


def file_name(system: str) -> str:
    """Write the name of a system as a part of file names."""
    return re.sub(r"[^\w.]+", "-", system).strip("-")


def _moved(system: Recipe, frame: Mapping[str, str]) -> Recipe:
    """Add what a recipe adds to one base to another base."""
    base, values = recipe_values(load_recipe(frame["differences_from"])), recipe_values(load_recipe(frame["added_to"]))
    own = recipe_values(system)
    for section in _SYSTEM_SECTIONS:
        for key, value in own[section].items():
            if value != base[section][key]:
                values[section][key] = value
    values["training"]["pretraining"] = own["training"]["pretraining"]
    return check_recipe(values, where=system.name)


def _set(values: dict[str, Any], keys: Sequence[str], value: Any) -> None:
    *sections, last = keys
    for section in sections:
        values = values[section]
    values[last] = value
