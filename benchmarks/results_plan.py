"""What `benchmarks/results.py` compares: the systems of a file in results/, each as a recipe with a seed.

corpus: controlled                  the first part of the names of runs, whose results are in a folder beside the file
transformer: {differences_from: A, added_to: B}
                                    a system is what its recipe adds to recipe A, added to recipe B
set: {KEY: VALUE}                   changes of every recipe
seeds: [1, 2, 3]
baselines: {transformer: plain}     the system that the others of an architecture are compared with
systems: {NAME: RECIPE, NAME: {recipe: RECIPE, set: {KEY: VALUE}, baseline: NAME}}
                                    `baseline` if another system than that of its architecture
search: {NAME: …}                   mixtures, as `systems`: trained with the first seed; the one with the lowest
                                    loss on the validation text is compared like a system, with all seeds
chosen_by_score: [NAME, …]          controls that were added because the scores of their models were high
contrast: NAME                      contrastive sets
contrasts_by: [LABEL, …]            tables of the contrastive sets by a label
groups: [{test: TEST, by: LABEL, metric: bleu, without: {LABEL: VALUE}, meaning: {VALUE: WHAT IT MEANS}}]
                                    tables of a test set by a label, of BLEU or `exact` match
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, ValidationError, model_validator
from results_files import read_result
from results_recipes import Frame, Strict, fingerprint, moved

from synmt.errors import UsageError, all_in_one, did_you_mean, plain_message
from synmt.recipe.load import check_recipe, load_recipe, recipe_values, set_key
from synmt.recipe.schema import Recipe
from synmt.recipe.yaml_text import load_yaml


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
        return fingerprint(self.recipe)


class _System(Strict):
    """A system as the plan writes it."""

    recipe: str
    set: dict[str, Any] = Field(default_factory=dict)
    baseline: str | None = None


class Group(Strict):
    """A table of a test set by a label."""

    test: str
    by: str
    metric: Literal["bleu", "exact"]
    without: dict[str, str] = Field(default_factory=dict)
    meaning: dict[str, str] = Field(default_factory=dict)


_Systems = dict[
    str, Annotated[_System, BeforeValidator(lambda given: {"recipe": given} if isinstance(given, str) else given)]
]


class Plan(Strict):
    """A comparison on one corpus.

    folder: of the results.
    """

    path: Path
    corpus: str
    title: str
    test: str
    seeds: Annotated[list[int], Field(min_length=1)]
    systems: _Systems
    search: _Systems = Field(default_factory=dict)
    set: dict[str, Any] = Field(default_factory=dict)
    transformer: Frame | None = None
    lstm: Frame | None = None
    baselines: dict[str, str] = Field(default_factory=dict)
    chosen_by_score: tuple[str, ...] = ()
    contrast: str | None = None
    contrasts_by: tuple[str, ...] = ()
    groups: tuple[Group, ...] = ()

    @classmethod
    def load(cls, path: Path) -> Plan:
        """Read a file of results/; raises UsageError."""
        given = load_yaml(path)
        if not isinstance(given, dict):
            raise UsageError("not a plan: it must consist of `key: value` lines", where=str(path))
        for key in given:
            if key not in _KEYS:
                raise UsageError(f"a plan has no key '{key}'", where=str(path), do=did_you_mean(str(key), _KEYS))
        try:
            return cls(path=path, **given)
        except ValidationError as error:
            raise all_in_one([_problem(path, problem) for problem in error.errors()]) from None

    @model_validator(mode="after")
    def _names_fit(self) -> Plan:
        if len({*self.seeds}) < len(self.seeds):
            raise ValueError(f"seeds: one is given twice: {self.seeds}")
        named = [*self.baselines.values(), *self.chosen_by_score]
        for system, own in self.search.items():
            if own.baseline:
                raise ValueError(f"search: a mixture such as '{system}' has no baseline of its own")
        for system in (*named, *(own.baseline for own in self.systems.values() if own.baseline)):
            if system not in self.systems:
                raise ValueError(f"no system is named '{system}'. {did_you_mean(system, self.systems)}".rstrip())
        files = Counter(map(file_name, (*self.systems, *self.search)))
        for name, count in files.items():
            if count > 1:
                raise ValueError(f"{count} systems have the name '{name}' in the names of files")
        return self

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
        return self.systems[system].baseline if system in self.systems else None

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
        found = {system: read_result(path) for system, path in files.items() if path.exists()}
        return {system: min(loss for _, loss in result["validation"]) for system, result in found.items()}

    def found(self) -> str | None:
        """Name the mixture that the search has found, once all of them have been trained."""
        tried = self.tried()
        return min(tried, key=tried.__getitem__) if tried and len(tried) == len(self.search) else None

    def recipe(self, system: str, changes: Mapping[str, Any]) -> Recipe:
        """Make the recipe of a system."""
        given = {**self.systems, **self.search}[system]
        of_system = load_recipe(given.recipe)
        architecture = of_system.model.architecture
        if architecture not in self.baselines:
            what = f"baselines: none is given for the {architecture} that '{system}' is"
            raise UsageError(what, where=str(self.path), do=f"Write baselines: {{{architecture}: SYSTEM}}")
        frame = self.lstm if architecture == "lstm" else self.transformer
        values = recipe_values(of_system if frame is None else moved(of_system, frame))
        try:
            for key, value in {**self.set, **given.set, **changes}.items():
                set_key(values, key, value)
        except UsageError as error:
            raise error.with_(where=f"{self.path}, {system}") from None
        values["name"] = f"{self.corpus}-{file_name(system)}-seed{values['training']['seed']}"
        return check_recipe(values, where=f"{self.path}, {system}")


_KEYS = [key for key in Plan.model_fields if key != "path"]


def first_part(mixture: str) -> str:
    """Name the system that a mixture begins with: `a` of `a + b`."""
    return mixture.partition(" + ")[0]


def file_name(system: str) -> str:
    """Write the name of a system as a part of file names."""
    return re.sub(r"[^\w.]+", "-", system).strip("-")


def _problem(path: Path, problem: Mapping[str, Any]) -> UsageError:
    key = ".".join(map(str, problem["loc"]))
    if problem["type"] == "extra_forbidden":
        return UsageError(f"a plan has no key '{key}'", where=str(path))
    if problem["type"] == "missing":
        return UsageError(f"'{key}' is missing", where=str(path))
    return UsageError(f"{key}: {plain_message(problem)}".removeprefix(": "), where=str(path))
