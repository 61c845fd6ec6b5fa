"""COMET and BEER: trained metrics, computed by the programs of their authors.

The score of a text is the mean over its sentences. Scores from 0 to 1 are multiplied by 100.
"""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from synmt.arrays import Texts
from synmt.errors import SynmtError, UsageError
from synmt.evaluation.metrics import MeanMetric, MetricOptions
from synmt.files.reading import offline, stored_sha256


class Comet(MeanMetric):
    """COMET (Rei et al., 2020, 2022); its model is loaded for the first text."""

    title = "COMET"
    reads_source = True

    def __init__(self, options: MetricOptions) -> None:
        model = options.comet_model
        try:
            self._package: Any = import_module("comet")
        except ImportError as error:
            do = "Install it, in a separate environment, with `pip install 'synmt[comet]'`"
            raise SynmtError(f"COMET is not installed ({error})", do=do) from None
        version = getattr(self._package, "__version__", "unknown")
        self._name, self._model = model, None
        if model.endswith(".ckpt"):
            # two checkpoints may have the same name
            model = f"{Path(model).name}@{stored_sha256(Path(model))[:12]}"
        self.signature = f"nrefs:1|model:{model}|scale:100|version:{version}"

    def score_segments(
        self, hypotheses: Texts, references: Texts, sources: Texts | None
    ) -> Sequence[float]:
        import torch

        assert sources is not None
        self._model = self._model or _load_comet(self._package, self._name)
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


def _load_comet(package: Any, model: str) -> Any:
    try:
        if offline() and not model.endswith(".ckpt") and "/" not in model:
            # COMET would download a name from before the hub even with local_files_only
            raise FileNotFoundError("only models of the hub may be in the cache")
        if not model.endswith(".ckpt"):
            model = package.download_model(model, local_files_only=offline())
        return package.load_from_checkpoint(model, local_files_only=offline())
    # COMET itself raises bare exceptions
    except Exception as error:
        do = "Look for its name on huggingface.co/Unbabel, or give the path of a checkpoint"
        if offline():
            do = "SYNMT_OFFLINE forbids the network: give the path of a checkpoint"
        raise SynmtError(f"cannot load COMET's model '{model}' ({error!r})", do=do) from error


_BEER_LINE = re.compile(r"^sent \d+ score is (-?\d*\.?\d+(?:E-?\d+)?)$", re.MULTILINE)


class Beer(MeanMetric):
    """BEER 2.0 (Stanojević & Sima'an, 2014, 2015), from the folder where it is unpacked; its script
    prints `sent 1 score is 0.42` for each sentence.

    The script's own score of the text is not used: it divides the sum by one sentence too many.
    """

    title = "BEER"

    def __init__(self, options: MetricOptions) -> None:
        folder = Path(options.beer_folder or os.environ.get("BEER_HOME", "")).expanduser()
        self._script = folder.resolve() / "beer"
        if not self._script.is_file():
            raise UsageError(
                "BEER is not part of synmt, and this folder has no script `beer`",
                where=folder,
                do="Unpack BEER 2.0 and give its folder with `--beer FOLDER` or BEER_HOME",
            )
        # the archives identify the program; one of a release is named after its version
        archives = sorted(self._script.parent.glob("*.jar"))
        parts = [f"{path.stem}@{stored_sha256(path)[:12]}" for path in archives or [self._script]]
        self.signature = f"nrefs:1|scale:100|version:{'+'.join(parts)}"

    def score_segments(
        self, hypotheses: Texts, references: Texts, sources: Texts | None
    ) -> Sequence[float]:
        with tempfile.TemporaryDirectory() as folder:
            for name, lines in (("hypotheses", hypotheses), ("references", references)):
                # to BEER a carriage return ends a line
                text = "".join(" ".join(line.split()) + "\n" for line in lines)
                Path(folder, name).write_text(text, encoding="utf-8", newline="\n")
            output = self._run(folder)
        scores = [100 * float(value) for value in _BEER_LINE.findall(output)]
        if len(scores) != len(hypotheses):
            raise SynmtError(
                f"BEER printed {len(scores):,} scores for {len(hypotheses):,} sentences",
                where=self._script,
                do="Use release 2.0",
            )
        return scores

    def _run(self, folder: str) -> str:
        # names without a folder: the script does not quote them, and splits references at colons
        command = [str(self._script), "-s", "hypotheses", "-r", "references", "--printSentScores"]
        try:
            return subprocess.run(
                command,
                cwd=folder,
                capture_output=True,
                encoding="utf-8",
                errors="replace",
                check=True,
            ).stdout
        except (OSError, subprocess.CalledProcessError) as error:
            output = getattr(error, "stderr", "").strip()
            what = f"BEER failed ({error}) {output}".strip()
            do = "It needs Java, and its script must be executable"
            raise SynmtError(what, where=self._script, do=do) from None
