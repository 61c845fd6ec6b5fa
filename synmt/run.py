"""The run folder: recipe, vocabularies, log, checkpoints, test translations; all that a run needs to move house.

runs/NAME/run.json            what the run is, and whether it has finished
          recipe.yaml         the recipe with every value
          *.model, *.words    the vocabularies
          log.jsonl           a line for every `log_every` steps and every validation
          checkpoints/step-*  weights, optimiser and position at a step
          model.safetensors   the weights that translate
          tests/NAME/         source, reference, hypothesis and scores of each test set
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from pydantic import ValidationError
from safetensors import SafetensorError
from safetensors.torch import load_file, save, save_file
from torch import Tensor, nn

from synmt.errors import SynmtError, did_you_mean
from synmt.files import reporting_os_errors, set_usual_mode, write_atomically, write_folder_atomically
from synmt.recipe.load import check_recipe, recipe_values
from synmt.recipe.schema import EvaluationRecipe, Recipe, TrainingRecipe
from synmt.recipe.yaml import dump_yaml, load_yaml

FORMAT = 1
"""Of the run folder; a change that older programs cannot read raises it."""


@dataclass(frozen=True)
class Run:
    """One run folder."""

    folder: Path

    @property
    def name(self) -> str:
        """The run's name, which is its folder's."""
        return self.folder.name

    @property
    def log(self) -> Path:
        """The log, a JSON object on each line."""
        return self.folder / "log.jsonl"

    @property
    def weights(self) -> Path:
        """The weights that translate, there when the run has finished."""
        return self.folder / "model.safetensors"

    def test_folder(self, name: str) -> Path:
        """Where the translations and scores of a test set lie."""
        return self.folder / "tests" / name

    def exists(self) -> bool:
        """Tell whether a run has been begun here."""
        return (self.folder / "run.json").exists()

    def info(self) -> dict[str, Any]:
        """Read run.json; raises SynmtError where it is broken or of another format."""
        path = self.folder / "run.json"
        try:
            info = json.loads(path.read_text(encoding="utf-8"))
            written = info["format"]
        except FileNotFoundError:
            raise SynmtError(
                "is no run folder: it has no run.json", where=str(self.folder), do=_similar_run(self.folder)
            ) from None
        except (ValueError, KeyError, TypeError):
            raise broken(path, "run.json cannot be read") from None
        if written != FORMAT:
            raise SynmtError(
                f"was written in format {written}; this synmt reads format {FORMAT}",
                where=str(self.folder),
                do=f"Use the synmt that made it ({info.get('synmt', 'unknown')})",
            )
        return info

    def write_info(self, **values: Any) -> None:
        """Set values of run.json."""
        path = self.folder / "run.json"
        old = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {"format": FORMAT}
        with write_atomically(path) as out:
            json.dump(old | values, out, indent=1, ensure_ascii=False)
            out.write("\n")

    def recipe(self) -> Recipe:
        """Read the recipe that the run was made by."""
        return check_recipe(self._recipe_values(), where=str(self.folder / "recipe.yaml"))

    def evaluation(self) -> EvaluationRecipe:
        """Read how the recipe scores test sets, without checking the model and data that scores do not need."""
        values = self._recipe_values()
        with suppress(ValidationError, AttributeError):
            return EvaluationRecipe.model_validate_json(json.dumps(values.get("evaluation", {})))
        # raises, and explains what is wrong
        return self.recipe().evaluation

    def _recipe_values(self) -> Any:
        path = self.folder / "recipe.yaml"
        if not path.exists():
            raise broken(path, "recipe.yaml is missing")
        return load_yaml(path)

    def write_recipe(self, recipe: Recipe) -> None:
        """Keep the recipe, every value of it."""
        with write_atomically(self.folder / "recipe.yaml") as out:
            out.write(dump_yaml(recipe_values(recipe)))

    def checkpoints(self) -> list[Path]:
        """List the checkpoint folders, oldest first."""
        return sorted((self.folder / "checkpoints").glob("step-*"))

    def checkpoint(self, step: int) -> Path:
        """Name the checkpoint of a step."""
        return self.folder / "checkpoints" / f"step-{step:08d}"

    def weights_of(self, which: str) -> Path:
        """Find the weights `best`, `last` or `average`, or those that the recipe uses (`final`)."""
        steps = self.checkpoints()
        if which == "final":
            return self._existing(self.weights)
        if which == "average":
            return self._averaged()
        if not steps:
            raise SynmtError("has no checkpoints", where=str(self.folder), do="Train it first: `synmt train`")
        if which == "last":
            return steps[-1] / "model.safetensors"
        best = read_state(steps[-1])["best_step"]
        if not best:
            raise SynmtError(
                "no validation has given a finite value yet, so there is no best checkpoint",
                where=str(self.folder),
                do="Take the last one: `training.use=last`, or `--checkpoint last`",
            )
        return self._existing(self.checkpoint(best) / "model.safetensors")

    def _averaged(self) -> Path:
        path = self.folder / "average.safetensors"
        if path.exists():
            return path
        raise SynmtError(
            "there are no averaged weights",
            where=str(self.folder),
            do="They are made when a run with `training.average` above 1 ends. Take `--checkpoint final` or `last`",
        )

    def _existing(self, path: Path) -> Path:
        if path.exists():
            return path
        if self.info().get("status") != "finished":
            raise SynmtError(
                f"the run has not finished: {path.name} is not there yet",
                where=str(self.folder),
                do="Go on with the same `synmt train` command; `synmt translate --checkpoint last` takes what there is",
            )
        raise broken(path, f"{path.name} is missing")


def _similar_run(folder: Path) -> str:
    return did_you_mean(folder.name, (path.parent.name for path in folder.parent.glob("*/run.json")))


def find_run(path: Path | None, root: Path = Path("runs")) -> Run:
    """Open a run folder, or the newest finished one under `root` where no path is given."""
    if path is not None:
        run = Run(path)
        run.info()
        return run
    finished = []
    for candidate in sorted(root.glob("*/run.json")):
        try:
            info = json.loads(candidate.read_text(encoding="utf-8"))
        except ValueError:
            continue
        if isinstance(info, dict) and info.get("status") == "finished":
            finished.append((str(info.get("finished_at")), candidate.parent))
    if not finished:
        raise SynmtError(
            f"there is no finished run in {root}/",
            do="Train one, for example `synmt train recipes/quickstart.yaml`, or name one with `--run`",
        )
    run = Run(max(finished)[1])
    run.info()
    return run


def remove_leftovers(run: Run) -> None:
    """Remove what a process left unfinished when it was killed, under the names that `synmt.files` gives."""
    for path in run.folder.rglob(".*.????????"):
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()


def save_checkpoint(
    run: Run, step: int, model: nn.Module, optimizer: torch.optim.Optimizer, state: Mapping[str, Any]
) -> None:
    """Write all that training needs to go on from a step."""
    with write_folder_atomically(run.checkpoint(step)) as folder:
        save_weights(model, folder / "model.safetensors")
        _store(_optimizer_tensors(model, optimizer), folder / "optimizer.safetensors")
        with reporting_os_errors(folder):
            (folder / "state.json").write_text(json.dumps(dict(state), indent=1), encoding="utf-8")


def load_checkpoint(folder: Path, model: nn.Module, optimizer: torch.optim.Optimizer) -> dict[str, Any]:
    """Put weights and optimiser back as they were, and return the state."""
    load_weights(folder / "model.safetensors", model)
    tensors = _load(folder / "optimizer.safetensors")
    for name, parameter in model.named_parameters():
        keys = [key for key in tensors if key.rpartition("/")[0] == name]
        optimizer.state[parameter] = {key.rpartition("/")[2]: tensors[key].to(parameter.device) for key in keys}
    return read_state(folder)


def read_state(checkpoint: Path) -> dict[str, Any]:
    """Read where training stood."""
    try:
        return json.loads((checkpoint / "state.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        raise broken(checkpoint, "state.json cannot be read") from None


def regular_checkpoints(run: Run, settings: TrainingRecipe) -> list[Path]:
    """List the checkpoints of the plan, oldest first, without those that an interruption left."""
    every = (settings.save_every, settings.validate_every, settings.max_steps)
    return [folder for folder in run.checkpoints() if any(_step(folder) % interval == 0 for interval in every)]


def drop_checkpoints(run: Run, settings: TrainingRecipe, *, best_step: int) -> None:
    """Remove the checkpoints that nobody needs, and the optimiser of all but the newest."""
    steps = run.checkpoints()
    for folder in steps[:-1]:
        (folder / "optimizer.safetensors").unlink(missing_ok=True)
    last = regular_checkpoints(run, settings)[-max(settings.keep, settings.average) :]
    needed = {steps[-1], run.checkpoint(best_step), *last}
    for folder in steps:
        if folder not in needed:
            shutil.rmtree(folder)


def _step(checkpoint: Path) -> int:
    return int(checkpoint.name.removeprefix("step-"))


def save_weights(model: nn.Module, path: Path) -> None:
    """Write every parameter once, also where two modules share it."""
    _store({name: p.detach().cpu().contiguous() for name, p in model.named_parameters()}, path)


def load_weights(path: Path, model: nn.Module) -> None:
    """Read every parameter; raises SynmtError where the file does not fit the model."""
    tensors = _load(path)
    parameters = dict(model.named_parameters())
    if tensors.keys() != parameters.keys():
        odd = sorted(tensors.keys() ^ parameters.keys())
        raise broken(path, f"its weights are not those of the recipe's model ({odd[0]}, …)")
    with torch.no_grad():
        for name, parameter in parameters.items():
            if tensors[name].shape != parameter.shape:
                shapes = f"{tuple(tensors[name].shape)}, the model's {tuple(parameter.shape)}"
                raise broken(path, f"{name} has the shape {shapes}")
            parameter.copy_(tensors[name])


def average_weights(paths: list[Path], target: Path) -> None:
    """Write the mean of several files of weights."""
    total: dict[str, Tensor] = {}
    for path in paths:
        for name, tensor in _load(path).items():
            total[name] = total[name] + tensor.double() if name in total else tensor.double()
    mean = {name: (tensor / len(paths)).float() for name, tensor in total.items()}
    with write_atomically(target, binary=True) as out:
        out.write(save(mean))


def _optimizer_tensors(model: nn.Module, optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    return {
        f"{name}/{key}": tensor.detach().cpu().contiguous()
        for name, parameter in model.named_parameters()
        for key, tensor in optimizer.state.get(parameter, {}).items()
    }


def _store(tensors: dict[str, Tensor], path: Path) -> None:
    try:
        save_file(tensors, path)
    except SafetensorError as error:
        raise SynmtError(
            f"cannot write ({error})", where=str(path), do="Make room, and run the same command again"
        ) from error
    with reporting_os_errors(path):
        set_usual_mode(path)


def _load(path: Path) -> dict[str, Tensor]:
    try:
        return load_file(path)
    except FileNotFoundError:
        raise broken(path, "the file is missing") from None
    except (SafetensorError, OSError) as error:
        raise broken(path, f"cannot be read ({error})") from None


def broken(path: Path, what: str) -> SynmtError:
    """Say that something in a run folder cannot be used."""
    return SynmtError(
        f"the run folder is broken: {what}",
        where=str(path),
        do="Restore it from a copy, or remove it and train again",
    )
