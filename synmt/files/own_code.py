"""Modules of users' own that recipes name: where their source is, whether it may run, and copies of
it.

A module runs only if the user has allowed its code: the source of its package, and of what that
imports from the folder next to it. Python then reads a copy in the cache folder, which is named by
the hash of this source, so that what runs is what was allowed. No files in the folder itself, such
as compiled modules, are used.
"""

from __future__ import annotations

import hashlib
import importlib
import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import ModuleType

from synmt.errors import UsageError
from synmt.files.reading import cache_folder
from synmt.files.writing import write_content

ALLOW = "SYNMT_ALLOW_CODE"
"""The environment variable that allows code, here and in the processes that this one starts."""

_STANDARD = Path(os.__file__).parent
_IMPORT = re.compile(r"^\s*(?:from\s+(\w+)|import\s+([\w., ]+))", re.MULTILINE)
_loaded: dict[str, str] = {}
"""The hashes of the code that this process has imported, by package."""


@dataclass(frozen=True)
class OwnCode:
    """The source of a module and of what it needs.

    root: the folder of its package.
    files: by their paths in this folder.
    """

    root: Path
    files: Mapping[str, bytes]

    @property
    def installed(self) -> bool:
        """Whether the module is part of an installed package, which is used where it is."""
        return self.root.name in ("site-packages", "dist-packages") or self.root == _STANDARD

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
        try:
            return self.files == {name: (self.copy / name).read_bytes() for name in self.files}
        except OSError:
            return False

    def write(self, folder: Path) -> None:
        """Write a copy of the files."""
        for name, content in self.files.items():
            write_content(folder / name, content)


@contextmanager
def allowing_code(allowed: bool = True) -> Iterator[None]:
    """Allow the code of recipes and runs that the block loads."""
    before = os.environ.get(ALLOW, "")
    os.environ[ALLOW] = "1" if allowed else before
    try:
        yield
    finally:
        os.environ[ALLOW] = before


def is_own(name: str) -> bool:
    """Check whether the name of a variant is that of a module outside synmt."""
    return "." in name and not name.startswith("synmt.")


def find_code(name: str, copies: Path | None = None) -> OwnCode | None:
    """Find the source of a module, without importing anything; None if it is missing.

    copies: where a run keeps its own code, which comes first.
    """
    package = name.partition(".")[0]
    path = name.replace(".", "/")
    for root in [copies] if copies and (copies / package).exists() else _roots(package):
        for file in (f"{path}.py", f"{path}/__init__.py"):
            if (root / file).is_file():
                content = {file: (root / file).read_bytes()}
                code = OwnCode(root, content)
                return code if code.installed else OwnCode(root, _source(root, package))
    return None


def import_own(name: str, copies: Path | None = None, *, where: str) -> ModuleType | None:
    """Import a module of the user's own if its code is allowed; None if it is missing.

    copies: where a run keeps its own code, which comes first.
    where: the key of the recipe that names the module.
    """
    package, code = name.partition(".")[0], find_code(name, copies)
    if name in sys.modules and package not in _loaded:
        # the program that calls synmt has imported it
        return sys.modules[name]
    if code is None:
        return None
    if not code.is_allowed():
        _allow(code, name, where)
    folders = [] if code.installed else [str(code.copy)]
    if folders and _loaded.get(package) != code.digest:
        # Python imports another version of these packages
        packages = {path.partition("/")[0].removesuffix(".py") for path in code.files}
        for module in [module for module in sys.modules if module.partition(".")[0] in packages]:
            del sys.modules[module]
        _loaded[package] = code.digest
    sys.path[:0] = folders
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
        del sys.path[: len(folders)]


def own_code(names: Iterable[str], copies: Path | None = None) -> dict[str, OwnCode]:
    """Find the code of modules by their package, as `find_code` does; installed packages are left
    out."""
    all_code = {name.partition(".")[0]: find_code(name, copies) for name in names if is_own(name)}
    return {package: code for package, code in all_code.items() if code and not code.installed}


def changed_code(names: Iterable[str], copies: Path) -> list[str]:
    """List the packages of modules that are not those of a run's copies any more."""
    copied = own_code(names, copies)
    return [
        package
        for package, code in own_code(names).items()
        if package in copied and copied[package].digest != code.digest
    ]


def _roots(package: str) -> list[Path]:
    """List the folders in which Python finds a package; the working folder if it finds none."""
    specs = (finder.find_spec(package, None) for finder in sys.meta_path)
    spec = next(filter(None, specs), None)
    if spec is None:
        return [Path.cwd()]
    return [Path(place).parent for place in spec.submodule_search_locations or ()]


def _source(root: Path, package: str) -> dict[str, bytes]:
    """Read the source of a package, and of what it imports from the folder next to it."""
    files, names = {}, [package]
    for name in names:
        for path in (root / f"{name}.py", *sorted((root / name).rglob("*.py"))):
            file = path.relative_to(root)
            if path.is_file() and not any(part.startswith(".") for part in file.parts):
                files[file.as_posix()] = source = path.read_bytes()
                names += [other for other in _imported(source) if other not in [*names, "synmt"]]
    return files


def _imported(source: bytes) -> list[str]:
    """List the packages that a source imports."""
    names: list[str] = []
    for package, others in _IMPORT.findall(source.decode(errors="replace")):
        names += [package] if package else map(str.strip, others.split(","))
    return sorted({re.split(r"\W", name)[0] for name in names})


def _allow(code: OwnCode, name: str, where: str) -> None:
    if os.environ.get(ALLOW, "") in ("", "0"):
        raise UsageError(
            f"{name} is not part of synmt: {name.replace('.', '/')} in {code.root} would be "
            "imported, and may do all that you can do",
            where=where,
            do="Read it. If you trust it, run the same command with --allow-code (in Python, set "
            f"{ALLOW}=1), which allows it until it changes",
        )
    code.write(code.copy)
    for folder in filter(Path.is_dir, list(code.copy.rglob("*"))):
        # a package without this file would also be looked for elsewhere
        (folder / "__init__.py").touch()
