"""COMET and BEER: trained metrics, computed by the programs of their authors.

The score of a text is the mean over its sentences. Scores from 0 to 1 are multiplied by 100.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from synmt.errors import SynmtError, UsageError
from synmt.evaluation.metrics import Lines, MeanMetric, MetricOptions
from synmt.files.reading import offline, stored_sha256


def comet(options: MetricOptions) -> MeanMetric:
    """Make COMET (Rei et al., 2020, 2022); its model is loaded for the first text."""
    return _Comet(options.comet_model)


def beer(options: MetricOptions) -> MeanMetric:
    """Make BEER 2.0 (Stanojević & Sima'an, 2014, 2015), from the folder where it is unpacked."""
    folder = options.beer_folder or os.environ.get("BEER_HOME")
    if not folder:
        raise UsageError(
            "BEER is not part of synmt, and its folder is not set",
            do="Unpack BEER 2.0 and give its folder with `--beer FOLDER` or BEER_HOME",
        )
    return _Beer(Path(folder).expanduser())


class _Comet(MeanMetric):
    title = "COMET"
    reads_source = True

    def __init__(self, model: str) -> None:
        self._package = _comet_package()
        self._name, self._model = model, None
        # two checkpoints may have the same name
        identity = (
            f"{Path(model).name}@{stored_sha256(Path(model))[:12]}"
            if model.endswith(".ckpt")
            else model
        )
        version = getattr(self._package, "__version__", "unknown")
        self.signature = f"nrefs:1|model:{identity}|scale:100|version:{version}"

    def score_segments(
        self, hypotheses: Lines, references: Lines, sources: Lines | None
    ) -> Sequence[float]:
        import torch

        assert sources is not None
        if self._model is None:
            self._model = _load_comet(self._package, self._name)
        texts = {"src": sources, "mt": hypotheses}
        if self._model.requires_references():
            texts["ref"] = references
        samples = [
            dict(zip(texts, lines, strict=True)) for lines in zip(*texts.values(), strict=True)
        ]
        prediction = self._model.predict(
            samples, gpus=int(torch.cuda.is_available()), progress_bar=False
        )
        return [100 * float(score) for score in prediction.scores]


def _comet_package() -> Any:
    try:
        package = import_module("comet")
    except ImportError as error:
        raise SynmtError(
            f"COMET is not installed ({error})", do="Install it with `pip install 'synmt[comet]'`"
        ) from None
    # another package has the same name
    if not hasattr(package, "download_model"):
        raise SynmtError(
            "the installed package 'comet' is not the metric",
            do="Install it, in a separate environment, with `pip install 'synmt[comet]'`",
        )
    return package


def _load_comet(package: Any, model: str) -> Any:
    local = {"local_files_only": True} if offline() else {}
    try:
        if model.endswith(".ckpt"):
            return package.load_from_checkpoint(model, **local)
        if offline() and "/" not in model:
            # an old name, from before the hub: COMET would download it even with local_files_only
            raise FileNotFoundError(
                "SYNMT_OFFLINE allows only models of the hub, or the path of a checkpoint"
            )
        return package.load_from_checkpoint(package.download_model(model, **local), **local)
    # COMET itself raises bare exceptions
    except Exception as error:
        raise SynmtError(
            f"cannot load COMET's model '{model}' "
            f"({' '.join(str(error).split()) or type(error).__name__})",
            do="SYNMT_OFFLINE forbids the network: put the model into the cache of Hugging Face, "
            "or give its checkpoint"
            if offline()
            else "Look for its name on huggingface.co/Unbabel, or give the path of a checkpoint",
        ) from error


_BEER_LINE = re.compile(r"^sent (\d+) score is (-?\d*\.?\d+(?:E-?\d+)?)$", re.MULTILINE)


class _Beer(MeanMetric):
    """BEER, whose script prints `sent 1 score is 0.42` for each sentence.

    The script's own score of the text is not used: it divides the sum by one sentence too many.
    """

    title = "BEER"

    def __init__(self, folder: Path) -> None:
        self._script = folder.resolve() / "beer"
        if not self._script.is_file():
            raise UsageError(
                "the script `beer` is missing", where=str(folder), do="Give the folder of BEER 2.0"
            )
        if shutil.which("java") is None:
            raise SynmtError(
                "BEER needs Java, and the command `java` was not found", do="Install a Java runtime"
            )
        # the archives identify the program; one of a release is named after its version
        archives = sorted(self._script.parent.glob("*.jar"))
        parts = [f"{path.stem}@{stored_sha256(path)[:12]}" for path in archives or [self._script]]
        self.signature = f"nrefs:1|scale:100|version:{'+'.join(parts)}"

    def score_segments(
        self, hypotheses: Lines, references: Lines, sources: Lines | None
    ) -> Sequence[float]:
        with tempfile.TemporaryDirectory() as folder:
            for name, lines in (("hypotheses", hypotheses), ("references", references)):
                # to BEER a carriage return ends a line
                text = "".join(" ".join(line.split()) + "\n" for line in lines)
                Path(folder, name).write_text(text, encoding="utf-8", newline="\n")
            return self._read(self._run(folder), len(hypotheses))

    def _run(self, folder: str) -> str:
        # names without a folder: the script does not quote them, and splits references at colons
        command = [str(self._script), "-s", "hypotheses", "-r", "references", "--printSentScores"]
        try:
            done = subprocess.run(
                command, cwd=folder, capture_output=True, encoding="utf-8", errors="replace"
            )
        except OSError as error:
            raise SynmtError(
                f"BEER cannot be started ({error.strerror})",
                where=str(self._script),
                do="Make the script executable",
            ) from None
        if done.returncode:
            output = (done.stderr or done.stdout).strip().splitlines() or ["no message"]
            raise SynmtError(
                f"BEER failed with code {done.returncode}: {output[-1]}", where=str(self._script)
            )
        return done.stdout

    def _read(self, output: str, sentences: int) -> list[float]:
        found = _BEER_LINE.findall(output)
        if [int(number) for number, _ in found] != list(range(1, sentences + 1)):
            first = next(iter(output.splitlines()), "")
            what = (
                f"BEER printed scores for {len(found):,} sentences, not for {sentences:,}; its "
                f"first line is '{first}'"
            )
            raise SynmtError(what, where=str(self._script), do="Use release 2.0")
        return [100 * float(value) for _, value in found]
