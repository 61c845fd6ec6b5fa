"""What several tests share."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

# before torch is loaded, here and in the commands that tests start: two test processes share two cores
os.environ.setdefault("OMP_NUM_THREADS", "1")


@pytest.fixture(scope="session", autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keep the tests out of the user's cache."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SYNMT_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """Find the real corpora in the folder that `SYNMT_DATA` names; skip the test if it is not set."""
    if not os.environ.get("SYNMT_DATA"):
        pytest.skip("needs real corpora: set SYNMT_DATA to their folder (CONTRIBUTING.md lists them)")
    folder = Path(os.environ["SYNMT_DATA"])
    assert folder.is_dir(), f"SYNMT_DATA={folder} is not a folder"
    return folder


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make a folder with the tiny corpus; the network is off and the cache is empty."""
    # imports torch, which most tests do without
    from tiny import write_corpus

    monkeypatch.setenv("SYNMT_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("SYNMT_OFFLINE", "1")
    write_corpus(tmp_path / "corpus")
    return tmp_path
