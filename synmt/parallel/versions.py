"""The versions that results depend on."""

from __future__ import annotations

import platform
from importlib import metadata

import synmt


def versions() -> dict[str, str]:
    """List the versions that results may depend on; a package that is not installed has none."""
    found = {"synmt": synmt.__version__, "Python": ".".join(platform.python_version_tuple()[:2])}
    for name in ("stanza", "torch", "sentencepiece", "numpy", "pyarrow"):
        try:
            # `+cpu` and `+cu130` are builds of the same version
            found[name] = metadata.version(name).partition("+")[0]
        except metadata.PackageNotFoundError:
            found[name] = "none"
    return found
