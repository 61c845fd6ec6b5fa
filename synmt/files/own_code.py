"""Modules of users' own that recipes name: where their source is, whether it may run, and copies of
it.

A module runs only if the user has allowed its code: the source of its package, and of what that
imports from the folder beside it. Python then reads a copy in the cache folder, which is named by
the hash of this source, so that what runs is what was allowed. No files in the folder itself, such
as compiled modules, are used.
"""

from __future__ import annotations

import ast
import hashlib
import importlib
import logging
import os
import sys
import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from types import ModuleType

from synmt.errors import UsageError, broken_run, listed
from synmt.files.reading import cache_folder
from synmt.files.writing import write_atomically, write_json

ALLOW = "SYNMT_ALLOW_CODE"
"""The environment variable that allows code, here and in the processes that this one starts."""
HASHES = "hashes.json"
"""The file of a run's copies that has the hash of each."""

_STANDARD = Path(os.__file__).parent
_loaded: dict[str, str] = {}
"""The hashes of the code that this process has imported, by package."""

_logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class OwnCode:
    """The source of a module and of what it needs.

    root: the folder of its package.
    files: by their paths in this folder.
    installed: whether the module is part of an installed package, which is used where it is.
    """

    root: Path
    files: Mapping[str, bytes]
    installed: bool

    @cached_property
    def digest(self) -> str:
        """The SHA-256 of all files and their names."""
        return hashlib.sha256(repr(sorted(self.files.items())).encode()).hexdigest()

    @property
    def copy(self) -> Path:
        """Name the folder of the copy, which exists if the code is allowed."""
        return cache_folder() / "code" / self.digest

    def is_allowed(self) -> bool:
        """Check whether the user has allowed this code, now or before."""
        paths = [(self.copy / name, content) for name, content in self.files.items()]
        return all(path.is_file() and path.read_bytes() == content for path, content in paths)

    def write(self, folder: Path) -> None:
        """Write a copy of the files."""
        for name, content in self.files.items():
            with write_atomically(folder / name, binary=True) as out:
                out.write(content)


@contextmanager
def allowing_code(allowed: bool = True) -> Iterator[None]:
    """Allow the code of recipes and runs that the block loads."""
    before = os.environ.get(ALLOW, "")
    os.environ[ALLOW] = "1" if allowed else before
    try:
        yield
    finally:
        os.environ[ALLOW] = before


def find_code(name: str, copies: Path | None = None) -> OwnCode | None:
    """Find the source of a module, without importing anything; None if it is missing.

    copies: where a run keeps its own code, which comes first.
    """
    package, path = name.partition(".")[0], name.replace(".", "/")
    kept = copies is not None and (copies / package).exists()
    roots = [copies] if copies is not None and kept else _roots(package) or [Path.cwd()]
    files = (
        (root, root / file) for root in roots for file in (f"{path}.py", f"{path}/__init__.py")
    )
    root, file = next(((root, file) for root, file in files if file.is_file()), (None, None))
    if root is None or file is None:
        return None
    if root.name in ("site-packages", "dist-packages") or root == _STANDARD:
        parts = [
            file,
            *(parent / "__init__.py" for parent in file.parents if root in parent.parents),
        ]
        content = {
            part.relative_to(root).as_posix(): part.read_bytes() for part in parts if part.is_file()
        }
        return OwnCode(root, content, installed=True)
    return OwnCode(root, _source(root, package, alone=kept), installed=False)


def import_own(name: str, copies: Path | None = None, *, where: str) -> ModuleType | None:
    """Import a module of the user's own if its code is allowed; None if it is missing.

    copies: where a run keeps its own code, which comes first.
    where: the key of the recipe that names the module.
    """
    package, code, here = name.partition(".")[0], find_code(name, copies), find_code(name)
    differs = code is not None and here is not None and code.digest != here.digest
    if name in sys.modules and package not in _loaded and not differs:
        # the program that calls synmt has imported it
        return sys.modules[name]
    if code is None:
        return None
    if copies is not None and code.root == copies:
        _check_hash(copies, package, code)
        if differs:
            _warn_of_change(package, str(here.root if here else ""), str(copies))
    _allow(code, name, where)
    if not code.installed and _loaded.get(package) != code.digest:
        _forget(code)
        _loaded[package] = code.digest
    return _import(name, code, where)


def own_code(names: Iterable[str]) -> dict[str, OwnCode]:
    """Find the code of modules by their package; installed packages are left out."""
    found = {name.partition(".")[0]: find_code(name) for name in names if is_own(name)}
    return {package: code for package, code in found.items() if code and not code.installed}


def keep_code(names: Iterable[str], copies: Path) -> None:
    """Write the code of modules into a run, with its hashes."""
    found = own_code(names)
    for code in found.values():
        code.write(copies)
    if found:
        write_json(copies / HASHES, {package: code.digest for package, code in found.items()})


def changed_code(names: Iterable[str], copies: Path) -> list[str]:
    """List the packages of modules that are not those of the copies any more."""
    hashes = _hashes(copies)
    return [
        package
        for package, code in own_code(names).items()
        if hashes.get(package, code.digest) != code.digest
    ]


def is_own(name: str) -> bool:
    """Check whether the name of a variant is that of a module outside synmt."""
    return "." in name and not name.startswith("synmt.")


def folders_searched(copies: Path | None) -> str:
    """List where modules are looked for."""
    folders = [str(copies)] if copies is not None and copies.exists() else []
    return listed([*folders, str(Path.cwd()), f"the packages of {sys.executable}"])


def _roots(package: str) -> list[Path]:
    """List the folders in which Python finds a package; empty if it finds none."""
    specs = (finder.find_spec(package, None) for finder in sys.meta_path)
    spec = next(filter(None, specs), None)
    if spec is None:
        return []
    places = spec.submodule_search_locations or [
        spec.origin if spec.has_location and spec.origin else os.__file__
    ]
    return [Path(place).parent for place in places]


def _source(root: Path, package: str, *, alone: bool) -> dict[str, bytes]:
    """Read the source of a package, and of what it imports from the folder beside it.

    alone: whether the folder has nothing else, and so no files that an installed package replaces.
    """
    files, names = {}, [package]
    for name in names:
        for path in (root / f"{name}.py", *sorted((root / name).rglob("*.py"))):
            file = path.relative_to(root)
            if path.is_file() and not any(part.startswith(".") for part in file.parts):
                files[file.as_posix()] = path.read_bytes()
                others = [
                    other for other in _imported(files[file.as_posix()]) if other not in names
                ]
                names += [other for other in others if alone or root in (_roots(other) or [root])]
    return files


def _imported(source: bytes) -> list[str]:
    """List the packages that a source imports."""
    with suppress(SyntaxError, ValueError, RecursionError), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        nodes = list(ast.walk(ast.parse(source)))
        names = [
            alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names
        ]
        names += [
            node.module or ""
            for node in nodes
            if isinstance(node, ast.ImportFrom) and not node.level
        ]
        return sorted({name.partition(".")[0] for name in names} - {""})
    # Python reports what is wrong when it imports the module
    return []


def _allow(code: OwnCode, name: str, where: str) -> None:
    if code.is_allowed():
        return
    if os.environ.get(ALLOW, "") in ("", "0"):
        place = name.replace(".", "/")
        file = next(path for path in code.files if path in (f"{place}.py", f"{place}/__init__.py"))
        raise UsageError(
            f"{name} is not part of synmt: {file} in {code.root} would be imported, and may do all "
            "that you can do",
            where=where,
            do="Read it. If you trust it, run the same command with --allow-code (in Python, set "
            f"{ALLOW}=1), which allows it until it changes",
        )
    code.write(code.copy)
    for folder in {parent for path in code.files for parent in Path(path).parents} - {Path()}:
        # a package without this file would also be looked for elsewhere
        if f"{folder.as_posix()}/__init__.py" not in code.files:
            (code.copy / folder / "__init__.py").touch()
    _logger.info(
        "the code of %s in %s is allowed until it changes: %s",
        name,
        code.root,
        listed(code.files, 5),
    )


def _import(name: str, code: OwnCode, where: str) -> ModuleType:
    folder = str(code.copy)
    if not code.installed:
        sys.path.insert(0, folder)
        importlib.invalidate_caches()
    try:
        return importlib.import_module(name)
    except Exception as error:
        raise UsageError(
            f"{name} in {code.root} cannot be imported ({type(error).__name__}: {error})",
            where=where,
            do="Install what it needs, or correct it. `synmt --debug` shows the traceback",
        ) from error
    finally:
        if not code.installed:
            sys.path.remove(folder)


def _forget(code: OwnCode) -> None:
    """Let Python import another version of these packages."""
    packages = {path.partition("/")[0].removesuffix(".py") for path in code.files}
    for module in [module for module in sys.modules if module.partition(".")[0] in packages]:
        del sys.modules[module]


def _check_hash(copies: Path, package: str, code: OwnCode) -> None:
    if _hashes(copies).get(package, code.digest) != code.digest:
        raise broken_run(copies / package, "the code has changed since the run was trained")


def _hashes(copies: Path) -> dict[str, str]:
    # pydantic, which `synmt --help` does not need
    from synmt.files.json_files import read_json_if_there

    return read_json_if_there(copies / HASHES, dict[str, str]) or {}


@cache
def _warn_of_change(package: str, here: str, copies: str) -> None:
    _logger.warning(
        "%s in %s is not what the run was trained with: its own copy in %s is used",
        package,
        here,
        copies,
    )
