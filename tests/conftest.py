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
    """Keep the tests out of the cache of whoever runs them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SYNMT_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture
def show_remarks(caplog: pytest.LogCaptureFixture) -> None:
    """Let `caplog` collect what a command shows on stderr, remarks included."""
    caplog.set_level("INFO", logger="synmt")


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """Find the real corpora: `SYNMT_DATA`, else shared/data beside the project."""
    beside = Path(__file__).resolve().parents[2] / "shared" / "data"
    folder = Path(os.environ.get("SYNMT_DATA") or beside)
    if not folder.is_dir():
        pytest.skip(f"needs the real data, and {folder} is no folder; set SYNMT_DATA")
    return folder


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make a folder with the tiny corpus, without a network and with a cache of its own."""
    # imports torch, which most tests do without
    from tiny import write_corpus

    monkeypatch.setenv("SYNMT_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("SYNMT_OFFLINE", "1")
    write_corpus(tmp_path / "corpus")
    return tmp_path
