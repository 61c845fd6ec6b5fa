"""Downloads Stanza's official models: the files that a language needs, and no others.

    resources_<version>.json          all models and their hashes, at STANZA_RESOURCES_URL
    <language>/<processor>/<name>.pt  a model, at the address that the list gives (or
        STANZA_MODEL_URL)

The list gets its place in Stanza's folder after the models that it describes, so what is there is
complete. Once it is, nothing here asks the network.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from synmt.arrays import Values
from synmt.corpora.download import RemoteFile, download_all
from synmt.errors import SynmtError, UsageError, adding_advice, unknown_name
from synmt.files.json_files import read_cached_json
from synmt.files.reading import offline
from synmt.files.writing import alone, copy_file, write_json
from synmt.parsing.models import (
    PROCESSORS,
    by_hand,
    folder_of,
    known_resources,
    missing,
)
from synmt.parsing.pipeline import model_files


def is_complete(language: str, package: str) -> bool:
    """Check whether every file is there that the parser of a language reads."""
    try:
        files = model_files(folder_of("official"), language, package)
    except Exception:
        # no list of models, or one without this language or package
        return False
    has_parser = any("/depparse/" in name for name in files)
    return has_parser and all(path.is_file() for path in files.values())


def fetch(language: str, package: str) -> None:
    """Download the official models of a language that are missing; raises SynmtError where that is
    not possible."""
    if is_complete(language, package):
        return
    check_download(language)
    folder = folder_of("official")
    with alone(folder / "resources.json"):
        if not is_complete(language, package):
            _fetch(folder, language, package)


def _fetch(folder: Path, language: str, package: str) -> None:
    from stanza.resources import common

    resources = _read_list(folder, language)
    with common.logging_level_context("CRITICAL", None):
        wanted = _wanted(resources, language, package)
    files = {
        path: file
        for path, file in wanted.items()
        if not common.file_exists(folder / path, file.md5)
    }
    for path, place in zip(files, download_all(files.values()), strict=True):
        # the two may be on different disks
        copy_file(place, folder / path)
        place.unlink()
    code, old = _code(resources, language), known_resources(folder)
    # languages that are there already keep what the old list says of their files
    old_entries = {
        name: entry for name, entry in old.items() if name != code and (folder / name).is_dir()
    }
    values = resources | old_entries | {"resources_version": common.DEFAULT_RESOURCES_VERSION}
    write_json(folder / "resources.json", values, indent=1, ensure_ascii=False)


def _read_list(folder: Path, language: str) -> Values:
    """Download the list of all models; it is kept only together with a model."""
    from stanza.resources import common

    name = f"resources_{common.DEFAULT_RESOURCES_VERSION}.json"
    file = RemoteFile(f"{common.DEFAULT_RESOURCES_URL.rstrip('/')}/{name}")
    with adding_advice(by_hand(folder, language)):
        [path] = download_all([file])
    resources = read_cached_json(path, Values)
    # the next download of a model reads the newest list
    path.unlink()
    if resources is None:
        raise SynmtError("this is not a list of Stanza's models", where=file.address)
    return resources


def _wanted(resources: Values, language: str, package: str) -> dict[str, RemoteFile]:
    """List the files of a language by their path in Stanza's folder, as `stanza.download` does."""
    from stanza.resources import common

    code = _code(resources, language)
    _, _, _, packages = common.process_pipeline_parameters(language, None, package, PROCESSORS)
    models = common.maintain_processor_list(resources, code, None, packages)
    if "depparse" not in (name for name, _ in models):
        packages = {*resources[code]["depparse"], *resources[code].get("packages", {})}
        raise unknown_name("package", package, sorted(packages), where=f"Stanza, {language}")
    address = common.expand_model_url(resources, common.DEFAULT_MODEL_URL)
    files = {}
    for processor, name in common.flatten_processor_list(
        common.add_dependencies(resources, code, models)
    ):
        # `identity` is not a file
        if facts := resources[code].get(processor, {}).get(name):
            file = f"{processor}/{name}.pt"
            remote = address.format(
                resources_version=common.DEFAULT_RESOURCES_VERSION, lang=code, filename=file
            )
            files[f"{code}/{file}"] = RemoteFile(remote, md5=str(facts["md5"]))
    return files


def _code(resources: Values, language: str) -> str:
    """Follow the alias of a language, such as `zh` for `zh-hans`; raises UsageError for one without
    a parser."""
    entries = {name: entry for name, entry in resources.items() if isinstance(entry, dict)}
    code = entries.get(language, {}).get("alias", language)
    parsed = [name for name, entry in entries.items() if entry.get("depparse")]
    if code not in parsed:
        raise _unknown_language(language, parsed)
    return code


def check_download(language: str) -> None:
    """Refuse an unknown language, and a download if the network is off, without using it."""
    from stanza.models.common.constant import lcode2lang
    from stanza.resources.default_packages import default_treebanks

    if language not in lcode2lang and language not in default_treebanks:
        raise _unknown_language(language, default_treebanks)
    if offline():
        raise missing("official", folder_of("official"), language)


def _unknown_language(language: str, languages: Iterable[str]) -> UsageError:
    # the multilingual package only recognizes languages
    names = sorted(set(languages) - {"multilingual"})
    return unknown_name("language", language, names, where="Stanza's parsers")
