"""Where Stanza's models are stored: in synmt (one ships with it), in Stanza's own folder, or in any other folder."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from synmt.errors import SynmtError, UsageError, did_you_mean
from synmt.files import offline

COMPACT = Path(__file__).parent / "resources" / "stanza"
PROCESSORS = "tokenize,pos,lemma,depparse"


def locate(model: str, language: str) -> Path:
    """Find the folder with the models of a language."""
    folder = folder_of(model)
    if not _has(folder, language):
        check_code(language)
    languages = sorted(_resources(folder, model, language))
    if _has(folder, language):
        return folder
    if model == "compact":
        near = did_you_mean(language, languages)
        raise UsageError(
            f"no compact model for the language '{language}'",
            allowed=f"Languages that ship with synmt: {', '.join(languages)}. {near}".strip(),
            do="Use Stanza's own model: `--model official`; in a recipe, `parser.model=official` for the source and "
            "`target_parser.model=official` for the target",
        )
    raise missing(model, folder, language)


def default_model(language: str) -> str:
    """Choose the compact model if it ships for a language, otherwise Stanza's official one."""
    return "compact" if _has(COMPACT, language) else "official"


def check_code(language: str) -> None:
    """Raise UsageError for the name of a language instead of its code, such as `english` for `en`."""
    from stanza.models.common.constant import lang2lcode

    codes = {name.replace("_", " ").lower(): code for name, code in lang2lcode.items()}
    code = codes.get(language.replace("_", " ").lower())
    if code is not None and code != language:
        raise UsageError(f"'{language}' is the name of a language, not its code", do=f"Did you mean '{code}'?")


def missing(model: str, folder: Path, language: str, file: str = "") -> SynmtError:
    """Make the error for missing models, which says how to get them with and without a network."""
    what = f"the file {file} of the Stanza model for '{language}'" if file else f"Stanza models for '{language}'"
    if model != "official":
        return SynmtError(
            f"{what} not found",
            where=str(folder),
            allowed=f"A folder of models has resources.json and a folder {language} with tokenize, pos and depparse",
            do="Choose another folder, or use Stanza's own models (`official`)",
        )
    forbidden = "SYNMT_OFFLINE forbids the network; without it, the model is downloaded. " if offline() else ""
    return SynmtError(f"{what} not found", where=str(folder), allowed=forbidden + by_hand(folder, language))


def by_hand(folder: Path, language: str) -> str:
    """Say how the official models of a language come to a machine without a network."""
    return (
        f"Without a network: run `python -c \"import stanza; stanza.download('{language}')\"` on another machine with"
        f" STANZA_RESOURCES_DIR=stanza_resources, and copy resources.json and the folder {language} from there to"
        f" {folder}"
    )


def folder_of(model: str) -> Path:
    """Name the folder of `compact`, of `official`, or of a model that is a folder itself."""
    if model == "compact":
        return COMPACT
    if model != "official":
        return Path(model).expanduser()
    if os.environ.get("STANZA_RESOURCES_DIR"):
        return Path(os.environ["STANZA_RESOURCES_DIR"]).expanduser()
    # only Stanza knows its default folder, whose name depends on the version
    from stanza.resources.common import DEFAULT_MODEL_DIR

    return Path(DEFAULT_MODEL_DIR)


def _resources(folder: Path, model: str, language: str) -> dict[str, Any]:
    try:
        resources = json.loads((folder / "resources.json").read_text(encoding="utf-8"))
        return resources if isinstance(resources, dict) else {}
    except OSError:
        raise missing(model, folder, language, "resources.json") from None
    except ValueError as error:
        raise SynmtError(
            f"not a list of models ({error})",
            where=str(folder / "resources.json"),
            do="Copy or download the models again",
        ) from None


def _has(folder: Path, language: str) -> bool:
    # an alias in resources.json points to the folder of another language
    try:
        entry = json.loads((folder / "resources.json").read_text(encoding="utf-8")).get(language)
        return isinstance(entry, dict) and (folder / entry.get("alias", language)).is_dir()
    except (OSError, ValueError, AttributeError):
        return False
