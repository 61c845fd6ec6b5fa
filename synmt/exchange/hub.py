"""Find a model of Hugging Face: a folder, or `hf:ORGANISATION/NAME`, which is downloaded once."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from synmt.errors import SynmtError, UsageError
from synmt.files.reading import offline, stored_sha256

HUB = "hf:"

CONFIG = "config.json"
FILES = (
    CONFIG,
    "generation_config.json",
    "tokenizer_config.json",
    "vocab.json",
    "target_vocab.json",
    "source.spm",
    "target.spm",
)
WEIGHTS = ("model.safetensors", "pytorch_model.bin")
"""The first one that is there is read."""
_HASH = re.compile("[0-9a-f]{64}")


_options = {"planning": False}


class NotDownloaded(SynmtError):
    """A model of the hub that is not on this machine."""


@contextmanager
def without_downloads() -> Iterator[None]:
    """Download nothing in this block, which only finds out what would be done."""
    before = _options["planning"]
    _options["planning"] = True
    try:
        yield
    finally:
        _options["planning"] = before


def is_planning() -> bool:
    """Return whether this is a dry run."""
    return _options["planning"]


_NEEDED = (CONFIG, "vocab.json", "source.spm", "target.spm")


def weights_of(folder: Path) -> Path | None:
    """Find the weights of a model; None if they are missing."""
    return next((folder / name for name in WEIGHTS if (folder / name).is_file()), None)


def is_model_folder(folder: Path) -> bool:
    """Return whether a folder has the layout of Hugging Face."""
    return (folder / CONFIG).is_file() and not (folder / "run.json").exists()


def model_folder(name: str) -> Path:
    """Return the folder of `hf:ORGANISATION/NAME` or `hf:ORGANISATION/NAME@REVISION`; download what
    is missing.

    Raises SynmtError if that is not possible, or if a file is not the one of the hub.
    """
    repository, _, revision = name.removeprefix(HUB).partition("@")
    if not re.fullmatch(r"[\w.-]+/[\w.-]+", repository):
        raise UsageError(
            f"'{name}' does not name a model",
            allowed=f"{HUB}ORGANISATION/NAME, such as {HUB}Helsinki-NLP/opus-mt-en-de",
        )
    try:
        from huggingface_hub import snapshot_download
        from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError
    except ImportError:
        do = "pip install 'synmt[hub]'"
        raise SynmtError(f"{HUB} needs the package huggingface_hub", do=do) from None

    def snapshot(*files: str, local: bool) -> Path:
        return Path(
            snapshot_download(
                repository,
                revision=revision or None,
                allow_patterns=list(files),
                local_files_only=local,
            )
        )

    # what has been downloaded once stays as it is
    with suppress(LocalEntryNotFoundError):
        folder = snapshot(local=True)
        if all((folder / name).is_file() for name in _NEEDED) and weights_of(folder):
            _check(folder)
            return folder
    if offline():
        raise _unavailable(repository, "SYNMT_OFFLINE is set")
    if is_planning():
        raise NotDownloaded("has not been downloaded", where=f"{HUB}{repository}")
    try:
        folder = snapshot(*FILES, WEIGHTS[0], local=False)
        if not weights_of(folder):
            folder = snapshot(*FILES, WEIGHTS[1], local=False)
    except (HfHubHTTPError, OSError) as error:
        raise _unavailable(repository, _reason(error)) from None
    _check(folder)
    return folder


def _unavailable(repository: str, reason: str) -> NotDownloaded:
    return NotDownloaded(
        f"cannot be downloaded ({reason})",
        where=f"{HUB}{repository}",
        do=f"Copy {', '.join(FILES)} (those that the model has) and {' or '.join(WEIGHTS)} from "
        f"https://huggingface.co/{repository} into a folder, and name this folder instead",
    )


def _reason(error: Exception) -> str:
    status = getattr(getattr(error, "response", None), "status_code", None)
    if status in (401, 403):
        return "there is no such model, or it is private: log in with `hf auth login`"
    if status == 404:
        return "there is no such model, or no such revision"
    return str(error).split("\n")[0]


def _check(folder: Path) -> None:
    """Compare the large files with their hashes, which are the names under which the hub's cache
    keeps them."""
    for path in folder.iterdir():
        kept = path.resolve()
        if _HASH.fullmatch(kept.name) and stored_sha256(kept) != kept.name:
            raise SynmtError(
                "broken: its content is not that of the hub",
                where=path,
                do=f"Remove {kept}, and run the same command again",
            )
