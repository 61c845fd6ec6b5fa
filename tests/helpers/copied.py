"""The whole project in another folder, and its tests there."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from places import ROOT, TESTS

CACHES = shutil.ignore_patterns("__pycache__", ".*_cache")
OWN = {".git", ".venv", "runs", "data"}


def copy_project(place, wing=""):
    """Copy the project, without one of its wings if it is named."""

    def left_out(folder, names):
        left = {ROOT: OWN, ROOT / "synmt": {wing}}
        return left.get(Path(folder), set()) | CACHES(folder, names)

    return Path(shutil.copytree(ROOT, place, ignore=left_out))


def count_passed(place, *arguments):
    """Run tests of a copy, all of which have to pass; return how many there are."""
    environment = {**os.environ, "PYTHONPATH": str(place), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-m", "pytest", *arguments]
    done = subprocess.run(command, cwd=place, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
    return int(re.findall(r"(\d+) passed", done.stdout)[0])


IN_TWO = ("--numprocesses", "2", "--dist", "worksteal")
"""Options to run tests in two processes."""


def path_of(name):
    """Find the file of tests with a name, from the folder of the project."""
    return str(next(TESTS.rglob(f"test_{name}.py")).relative_to(ROOT))
