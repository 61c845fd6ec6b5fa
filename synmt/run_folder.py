"""The run folder: recipe, vocabularies, log, checkpoints and test translations. It can be moved as
a whole.

runs/NAME/run.json            what the run is, and whether it has finished
          README.md           the model card
          recipe.yaml         the recipe with every value
          *.model, *.words    the vocabularies
          *.truecase          how the words of a side are written, if the recipe has `truecase`
          code/               the source of variants outside synmt
          features.json       the values of learned features, if a variant reads them
          shortlist.safetensors   what each source piece may become, if `decoding.shortlist` is set
          log.jsonl           a line for every `log_every` steps and every validation
          checkpoints/step-*  weights, optimizer and training state at a step
          model.safetensors   the weights used for translation
          average.safetensors the averaged weights, if `training.average` is above 1
          tests/NAME/         source, reference, hypothesis and scores of each test set; its labels
                              (labels.tsv), if it has any, and the statistics of every segment
                              (segments/)
          analysis/           drawings of `synmt analyze --trees --draw`
          tensorboard/        the log for TensorBoard, if it is installed
          checksums.sha256    of the files here; each checkpoint and test set has its own
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from synmt.errors import SynmtError, broken_run, did_you_mean, unknown_name
from synmt.exchange.hub import FILES, HUB, WEIGHTS, is_model_folder, model_folder
from synmt.files.checksums import changed, recording, verify
from synmt.files.json_files import parse_json, read_json, read_json_if_there
from synmt.files.reading import cache_folder, fingerprint, stored_sha256
from synmt.files.schemas import RunInfo, State
from synmt.files.writing import (
    alone,
    write_atomically,
    write_folder_atomically,
    write_json,
)
from synmt.recipe.data import parser_model
from synmt.recipe.load import check_recipe, recipe_values
from synmt.recipe.schema import Recipe
from synmt.recipe.yaml_text import dump_yaml, load_yaml

if TYPE_CHECKING:
    from synmt.syntax.feature_signals import FeatureValues

FORMAT = 1
"""Version of the run folder's format; it changes when older versions of synmt could not read the
folder."""

_IMPORT = 1
"""Version of how models of Hugging Face become runs."""

CANDIDATES = "shortlist.safetensors"
"""The file with what each source piece may become."""

CHECKPOINTS = ("final", "best", "last", "average")
"""The weights of a run that a user can choose."""


@dataclass(frozen=True)
class Run:
    """One run folder."""

    folder: Path

    @property
    def name(self) -> str:
        """The name of the run, which is the name of its folder."""
        return self.folder.name

    @property
    def log(self) -> Path:
        """The log, a JSON object on each line."""
        return self.folder / "log.jsonl"

    @property
    def weights(self) -> Path:
        """The weights used for translation, written when training ends."""
        return self.folder / "model.safetensors"

    def test_folder(self, name: str) -> Path:
        """Name the folder with the translations and scores of a test set."""
        return self.folder / "tests" / name

    def exists(self) -> bool:
        """Return whether a run was started in this folder."""
        return (self.folder / "run.json").exists()

    def info(self) -> RunInfo:
        """Read run.json; raises SynmtError if it is missing, damaged or in another format."""
        path = self.folder / "run.json"
        stored = read_json_if_there(path, dict[str, Any])
        if stored is None:
            runs = sorted(other.parent for other in self.folder.parent.glob("*/run.json"))
            raise SynmtError(
                "not a run folder: run.json is missing",
                where=self.folder,
                do=did_you_mean(self.name, runs),
            )
        written_in = stored.get("format", FORMAT)
        if written_in != FORMAT:
            raise SynmtError(
                f"was written in format {written_in}; this synmt reads format {FORMAT}",
                where=self.folder,
                do=f"Use the synmt that made it ({stored.get('synmt', 'unknown')})",
            )
        checksum = stored.pop("checksum", None)
        info = parse_json(json.dumps(stored), RunInfo, where=str(path))
        if checksum not in (None, _checksum(stored)):
            raise changed(path, "`checksum` from it")
        return info

    def steps(self) -> int:
        """Read after how many steps the run has finished."""
        steps = self.info().get("steps")
        if steps is None:
            raise broken_run(self.folder / "run.json", "steps is missing")
        return steps

    def write_info(self, **values: Any) -> None:
        """Set values of run.json."""
        info = {**(self.info() if self.exists() else {"format": FORMAT}), **values}
        info["checksum"] = _checksum(info)
        write_json(self.folder / "run.json", info, indent=1, ensure_ascii=False)

    def recipe(self) -> Recipe:
        """Read the recipe of the run."""
        path = self.folder / "recipe.yaml"
        values = load_yaml(path)
        for section, language in (("parser", "source"), ("target_parser", "target")):
            # before there was `auto`, runs that read no trees stored `compact` for languages
            # without such a model
            with suppress(AttributeError, LookupError, TypeError):
                if values[section]["model"] == "compact":
                    values[section]["model"] = parser_model("auto", values[language])
        return check_recipe(values, where=str(path))

    def write_recipe(self, recipe: Recipe) -> None:
        """Store every value of the recipe."""
        with write_atomically(self.folder / "recipe.yaml") as out:
            out.write(dump_yaml(recipe_values(recipe)))

    def features(self) -> FeatureValues:
        """Read the values of learned features; empty if the run has none."""
        return read_json_if_there(self.folder / "features.json", dict[str, tuple[str, ...]]) or {}

    def write_features(self, values: FeatureValues) -> None:
        """Store the values of learned features."""
        write_json(self.folder / "features.json", dict(values), ensure_ascii=False)

    def checkpoints(self) -> list[Path]:
        """List the checkpoint folders, oldest first."""
        folders = (self.folder / "checkpoints").glob("step-*")
        return sorted(folder for folder in folders if folder.name.removeprefix("step-").isdecimal())

    def reached(self) -> int:
        """Read the step of the newest checkpoint; 0 without one."""
        steps = self.checkpoints()
        return int(steps[-1].name.removeprefix("step-")) if steps else 0

    def checkpoint(self, step: int) -> Path:
        """Name the checkpoint of a step."""
        return self.folder / "checkpoints" / f"step-{step:08d}"

    def weights_of(self, checkpoint: str) -> Path:
        """Find the weights `best`, `last` or `average`, or those that the recipe uses (`final`)."""
        if checkpoint not in CHECKPOINTS:
            raise unknown_name("checkpoint", checkpoint, CHECKPOINTS)
        steps, path = self.checkpoints(), self.weights
        if checkpoint == "average":
            path = self.folder / "average.safetensors"
        elif checkpoint != "final" and steps:
            last = steps[-1]
            step = last if checkpoint == "last" else self._best(last)
            path = step / "model.safetensors"
        if path.exists() and (steps or checkpoint in ("final", "average")):
            return path
        raise SynmtError(
            f"the run has no {checkpoint} weights",
            where=self.folder,
            do="Continue it with the same `synmt train` command, or choose others with "
            "`--checkpoint`. Averaged ones are written if training.average is above 1",
        )

    def _best(self, last: Path) -> Path:
        """Find the best checkpoint, by the state of the last one."""
        best = read_json(last / "state.json", State).get("best_step")
        if not best:
            raise SynmtError(
                "no validation has given a finite value yet, so there is no best checkpoint",
                where=self.folder,
                do="Take the last one: `training.use=last`, or `--checkpoint last`",
            )
        return self.checkpoint(best)


def find_run(path: Path | None, root: Path = Path("runs")) -> Run:
    """Open a run folder, or a model of Hugging Face; without a path, the most recently finished run
    under `root`."""
    run = named_run(path or _newest_finished(root))
    run.info()
    verify(run.folder)
    return run


def named_run(path: Path) -> Run:
    """Name the run of a folder; a model of Hugging Face, `hf:ORGANISATION/NAME` or its folder,
    becomes a run in the cache when it is first named."""
    name, folder, facts = path.as_posix(), path.expanduser(), {"from": path.as_posix()}
    if name.startswith(HUB):
        folder = model_folder(name)
        facts["revision"] = folder.name
        name = name.partition("@")[0].rpartition("/")[2]
    elif is_model_folder(folder):
        name = folder.resolve().name
    else:
        return Run(folder)
    present = (folder / one for one in (*FILES, *WEIGHTS))
    files = {one.name: stored_sha256(one) for one in present if one.is_file()}
    key = fingerprint(_IMPORT, sorted(files.items()))[:12]
    run = Run(cache_folder() / "pretrained" / f"{name}-{key}")
    with alone(run.folder):
        if not run.exists():
            _import(folder, name, run.folder, {**facts, "files": files})
    return run


def _import(folder: Path, name: str, run: Path, facts: Mapping[str, Any]) -> None:
    """Write a model of Hugging Face as a finished run."""
    from synmt.exchange.marian import read_marian
    from synmt.model.weights import save_weights

    model = read_marian(folder, re.sub(r"[^\w.+-]+", "-", name).strip("-.+"))
    with write_folder_atomically(run) as unfinished:
        written = Run(unfinished)
        with recording(unfinished, "*.model", "*.safetensors", "recipe.yaml"):
            written.write_recipe(model.recipe)
            model.source.save(unfinished, "source")
            model.target.save(unfinished, "target")
            save_weights(model.model, written.weights)
        written.write_info(status="finished", steps=0, pretrained=dict(facts))


def _newest_finished(root: Path) -> Path:
    finished = []
    for path in sorted(root.glob("*/run.json")):
        with suppress(SynmtError):
            info = Run(path.parent).info()
            if info.get("status") == "finished":
                finished.append((info.get("finished_at") or "", path.parent))
    if not finished:
        raise SynmtError(
            f"there is no finished run in {root}/",
            do="Train one, for example `synmt train quickstart`, or name one with `--run`",
        )
    return max(finished)[1]


def _checksum(info: Mapping[str, Any]) -> str:
    return fingerprint(json.dumps(info, sort_keys=True))
