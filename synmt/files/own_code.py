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
from contextlib import contextmanager
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
        copies = {name: self.copy / name for name in self.files}
        read = {name: path.read_bytes() for name, path in copies.items() if path.is_file()}
        return read == self.files

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
    package = name.partition(".")[0]
    stored = copies is not None and (copies / package).exists()
    roots = [copies] if copies is not None and stored else _roots(package) or [Path.cwd()]
    for file in (root / place for root in roots for place in _places(name)):
        if not file.is_file():
            continue
        root = next(root for root in roots if root in file.parents)
        if root.name not in ("site-packages", "dist-packages") and root != _STANDARD:
            return OwnCode(root, _source(root, package, alone=stored), installed=False)
        inside = [parent for parent in file.parents if root in parent.parents]
        parts = [file, *(parent / "__init__.py" for parent in inside)]
        content = {
            part.relative_to(root).as_posix(): part.read_bytes() for part in parts if part.is_file()
        }
        return OwnCode(root, content, installed=True)
    return None


def _places(name: str) -> list[str]:
    """List the files that a module may have."""
    path = name.replace(".", "/")
    return [f"{path}.py", f"{path}/__init__.py"]


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
        if _hashes(copies).get(package, code.digest) != code.digest:
            what = "the code has changed since the run was trained"
            raise broken_run(copies / package, what)
        if here is not None and differs:
            _warn_of_change(package, here.root, copies)
    _allow(code, name, where)
    if not code.installed and _loaded.get(package) != code.digest:
        # Python imports another version of these packages
        packages = {path.partition("/")[0].removesuffix(".py") for path in code.files}
        for module in [module for module in sys.modules if module.partition(".")[0] in packages]:
            del sys.modules[module]
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
    file = spec.origin if spec.has_location and spec.origin else os.__file__
    return [Path(place).parent for place in spec.submodule_search_locations or [file]]


def _source(root: Path, package: str, *, alone: bool) -> dict[str, bytes]:
    """Read the source of a package, and of what it imports from the folder beside it.

    alone: whether the folder has nothing else, and so no files that an installed package replaces.
    """
    files, names = {}, [package]
    for name in names:
        for path in (root / f"{name}.py", *sorted((root / name).rglob("*.py"))):
            file = path.relative_to(root)
            if not path.is_file() or any(part.startswith(".") for part in file.parts):
                continue
            files[file.as_posix()] = source = path.read_bytes()
            for other in _imported(source):
                if other not in names and (alone or root in (_roots(other) or [root])):
                    names.append(other)
    return files


def _imported(source: bytes) -> list[str]:
    """List the packages that a source imports."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            nodes = list(ast.walk(ast.parse(source)))
    except (SyntaxError, ValueError, RecursionError):
        # Python reports what is wrong when it imports the module
        return []
    names = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    names |= {
        node.module
        for node in nodes
        if isinstance(node, ast.ImportFrom) and not node.level and node.module
    }
    return sorted({name.partition(".")[0] for name in names})


def _allow(code: OwnCode, name: str, where: str) -> None:
    if code.is_allowed():
        return
    if os.environ.get(ALLOW, "") in ("", "0"):
        file = next(place for place in _places(name) if place in code.files)
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


def _hashes(copies: Path) -> dict[str, str]:
    # pydantic, which `synmt --help` does not need
    from synmt.files.json_files import read_json_if_there

    return read_json_if_there(copies / HASHES, dict[str, str]) or {}


@cache
def _warn_of_change(package: str, here: Path, copies: Path) -> None:
    _logger.warning(
        "%s in %s is not what the run was trained with: its own copy in %s is used",
        package,
        here,
        copies,
    )
