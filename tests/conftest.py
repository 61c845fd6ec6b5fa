"""What several tests share."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """Find the real corpora: `SYNMT_DATA`, else shared/data beside the project."""
    beside = Path(__file__).resolve().parents[2] / "shared" / "data"
    folder = Path(os.environ.get("SYNMT_DATA") or beside)
    if not folder.is_dir():
        pytest.skip(f"needs the real data, and {folder} is no folder; set SYNMT_DATA")
    return folder
