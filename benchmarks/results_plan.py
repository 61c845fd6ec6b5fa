"""What `benchmarks/results.py` compares: the systems of a file in results/, each as a recipe with a
seed.

corpus: controlled                  the first part of the names of runs, whose results are in a
                                    folder
                                    beside the file
transformer: {differences_from: A, added_to: B}
                                    a system is what its recipe adds to recipe A, added to recipe B
set: {KEY: VALUE}                   changes of every recipe
seeds: [1, 2, 3]
baselines: {transformer: plain}     the system that the others of an architecture are compared with
systems: {NAME: RECIPE, NAME: {recipe: RECIPE, set: {KEY: VALUE}, baseline: NAME}}
                                    `baseline` if another system than that of its architecture
search: {NAME: …}                   mixtures, as `systems`: trained with the first seed; the one
                                    with the
                                    lowest loss on the validation text is compared like a system,
                                        with all
                                    seeds
chosen_by_score: [NAME, …]          controls that were added because the scores of their models were
                                    high
pairs: [[NAME, NAME], …]            further systems that are compared with each other
contrast: NAME                      contrastive sets
contrasts_by: [LABEL, …]            tables of the contrastive sets by a label
groups: [{test: TEST, by: LABEL, metric: bleu, without: {LABEL: VALUE}, meaning: {VALUE: WHAT IT
MEANS}}]
                                    tables of a test set by a label, of BLEU or `exact` match
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator
from results_stored import read_result

from synmt.errors import SynmtError, UsageError, all_in_one, did_you_mean, plain_message
from synmt.recipe.load import check_recipe, load_recipe, recipe_values, set_key
from synmt.recipe.schema import Recipe
from synmt.recipe.yaml_text import load_yaml, parse_yaml_value

_SYSTEM_SECTIONS = ("model", "syntax", "tasks", "parser", "target_parser")
"""The sections of a recipe that make the system; the others are those of the corpus."""
_OF_THE_MACHINE = {
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
        return fingerprint(self.recipe)


class Strict(BaseModel):
    """A part of a plan: frozen, without unknown keys."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Frame(Strict):
    """The recipes that systems are moved between."""

    differences_from: str
    added_to: str


class Group(Strict):
    """A table of a test set by a label."""

    test: str
    by: str
    metric: Literal["bleu", "exact"]
    without: dict[str, str] = Field(default_factory=dict)
    meaning: dict[str, str] = Field(default_factory=dict)


class _System(Strict):
    """A system as the plan writes it."""

    recipe: str
    set: dict[str, Any] = Field(default_factory=dict)
    baseline: str | None = None


def _in_full(given: Any) -> Any:
    return {"recipe": given} if isinstance(given, str) else given


_Systems = dict[str, Annotated[_System, BeforeValidator(_in_full)]]


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
    pairs: tuple[tuple[str, str], ...] = ()
    contrast: str | None = None
    contrasts_by: tuple[str, ...] = ()
    groups: tuple[Group, ...] = ()

    @classmethod
    def load(cls, path: Path) -> Plan:
        """Read a file of results/; raises UsageError."""
        given = load_yaml(path)
        if not isinstance(given, dict):
            what = "not a plan: it must consist of `key: value` lines"
            raise UsageError(what, where=str(path))
        try:
            return cls.model_validate({**given, "path": path})
        except ValidationError as error:
            raise all_in_one([_problem(path, problem) for problem in error.errors()]) from None

    @model_validator(mode="after")
    def _names_fit(self) -> Plan:
        known = [*self.systems, *self.search]
        named = [*self.baselines.values(), *self.chosen_by_score, *chain.from_iterable(self.pairs)]
        named += [own.baseline for own in self.systems.values() if own.baseline]
        for system in named:
            if system not in known:
                hint = did_you_mean(system, known)
                raise ValueError(f"no system is named '{system}'. {hint}".rstrip())
        return self

    @property
    def folder(self) -> Path:
        """The folder of the results, next to the plan."""
        return self.path.with_suffix("")

    @property
    def tests(self) -> list[str]:
        """The test sets that the plan names."""
        return list(dict.fromkeys([self.test, *(group.test for group in self.groups)]))

    def runs(self, changes: Mapping[str, Any]) -> Iterator[Planned]:
        """Yield the runs in order: all systems with the first seed, then with the second."""
        found = self.found()
        for seed in self.seeds:
            tried = self.search if seed == self.seeds[0] else (found,) if found else ()
            for system in (*self.systems, *tried):
                recipe = self.recipe(system, {**changes, "training.seed": seed})
                yield Planned(system, seed, recipe, self.result(system, seed))

    def result(self, system: str, seed: int) -> Path:
        """Return the file of a result."""
        return self.folder / f"{file_name(system)}-seed{seed}.json"

    def lowest_losses(self, systems: Iterable[str]) -> dict[str, float]:
        """Read each system's lowest loss on the validation text, with the first seed, if there is
        one."""
        files = {system: self.result(system, self.seeds[0]) for system in systems}
        found = {system: read_result(path) for system, path in files.items() if path.exists()}
        return {
            system: min(loss for _, loss in result["validation"])
            for system, result in found.items()
        }

    def found(self) -> str | None:
        """Name the mixture that the search has found, once all of them have been trained."""
        tried = self.lowest_losses(self.search)
        done = tried and len(tried) == len(self.search)
        return min(tried, key=tried.__getitem__) if done else None

    def recipe(self, system: str, changes: Mapping[str, Any]) -> Recipe:
        """Make the recipe of a system."""
        given = {**self.systems, **self.search}[system]
        of_system = load_recipe(given.recipe)
        architecture = of_system.model.architecture
        if architecture not in self.baselines:
            what = f"baselines: none is given for the {architecture} that '{system}' is"
            do = f"Write baselines: {{{architecture}: SYSTEM}}"
            raise UsageError(what, where=str(self.path), do=do)
        frame = self.lstm if architecture == "lstm" else self.transformer
        values = recipe_values(of_system if frame is None else moved(of_system, frame))
        where = f"{self.path}, {system}"
        try:
            for key, value in {**self.set, **given.set, **changes}.items():
                set_key(values, key, value)
        except UsageError as error:
            raise error.with_(where=where) from None
        values["name"] = f"{self.corpus}-{file_name(system)}-seed{values['training']['seed']}"
        return check_recipe(values, where=where)


def _problem(path: Path, problem: Mapping[str, Any]) -> SynmtError:
    key = ".".join(map(str, problem["loc"]))
    what = "a plan has no such key" if problem["type"] == "extra_forbidden" else None
    return UsageError(
        f"{key}: {what or plain_message(problem)}".removeprefix(": "), where=str(path)
    )


def file_name(system: str) -> str:
    """Write the name of a system as a part of file names."""
    return re.sub(r"[^\w.]+", "-", system).strip("-")


def moved(system: Recipe, frame: Frame) -> Recipe:
    """Add what a recipe adds to one base to another base."""
    base, values = (
        recipe_values(load_recipe(one)) for one in (frame.differences_from, frame.added_to)
    )
    own = recipe_values(system)
    for section in _SYSTEM_SECTIONS:
        for key, value in own[section].items():
            if value != base[section][key]:
                values[section][key] = value
    values["training"]["pretraining"] = own["training"]["pretraining"]
    return check_recipe(values, where=system.name)


def change(text: str) -> tuple[str, Any]:
    """Read `section.key=value`; raises UsageError."""
    key, equals, value = text.partition("=")
    if not equals:
        allowed = "Changes look like training.max_steps=100"
        raise UsageError(f"'{text}' is not a change", allowed=allowed)
    return key, parse_yaml_value(value)


def fingerprint(recipe: Recipe) -> str:
    """Identify all values of a recipe that a result depends on, apart from the seed."""
    values = recipe_values(recipe)
    del values["name"]
    for section, keys in _OF_THE_MACHINE.items():
        for key in keys:
            values[section].pop(key, None)
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()[:12]
