"""Where things are."""

import os
from pathlib import Path

TESTS = Path(__file__).parents[1]
ROOT = TESTS.parent

FOLDERS = sorted({str(path.parent) for path in TESTS.rglob("*.py")})
IMPORTABLE = os.pathsep.join([str(ROOT), *FOLDERS])
"""PYTHONPATH of a process that imports what a test file or helper defines."""
