"""What several tests share."""

from __future__ import annotations

import gc
import logging
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import pytest

# before torch is loaded, here and in the commands that tests start: two test processes share two
# cores
os.environ.setdefault("OMP_NUM_THREADS", "1")

# all other tests compute on the CPU, where results are the same everywhere; `make gpu` compares a
# GPU with it
if "SYNMT_TEST_GPU" not in os.environ:
    os.environ["CUDA_VISIBLE_DEVICES"] = "-1"

# a shell lets what it starts in the background ignore Ctrl-C, and so would the commands that tests
# interrupt
signal.signal(signal.SIGINT, signal.default_int_handler)

CORPORA = ("multi30k", "ud", "pascal-outputs", "lingeval")
"""Folders with the real corpora that tests read, inside `SYNMT_DATA`."""


JOURNEYS_ONLY = ("\npytestmark = pytest.mark.journey", "\npytestmark = [pytest.mark.journey")
"""How a file says that all of its tests are journeys."""


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out files of journeys when only unit tests are wanted: to import them takes as long as
    many tests."""
    if config.option.markexpr != "unit" or collection_path.suffix != ".py":
        return None
    text = collection_path.read_text(encoding="utf-8")
    return True if any(mark in text for mark in JOURNEYS_ONLY) else None


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Collect no garbage while tests are collected: what is imported stays, and to look through it
    again and again takes a third of the time."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


def pytest_collection_modifyitems(items: list[pytest.Item], config: pytest.Config) -> None:
    """Mark tests that read real corpora as journeys, and all others as unit tests; leave out the
    suite in the suite."""
    if config.option.markexpr != "whole_suite":
        items[:] = [item for item in items if item.get_closest_marker("whole_suite") is None]
    for item in items:
        if "data_folder" in getattr(item, "fixturenames", ()):
            item.add_marker("journey")
        if item.get_closest_marker("journey") is None:
            item.add_marker("unit")


def pytest_collection_finish() -> None:
    """Leave out work that no test needs.

    All loggers pass on what they log: pytest visits those that do not, 50 of torch, six times for
    each test. What the modules hold stays until the end, so that Python need not look through it
    for garbage again and again.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000, 10, 10)
    for logger in logging.root.manager.loggerDict.values():
        if isinstance(logger, logging.Logger):
            logger.propagate = True


@pytest.fixture(scope="session", autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keep the tests out of the user's cache."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SYNMT_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="session", autouse=True)
def _quick_disk() -> Iterator[None]:
    """Leave out waiting for the disk: it protects against a loss of power, which no test stages."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda descriptor: None)
        yield


LOADING = ("tests/parsing/", "tests/fast/", "tests/test_start.py")
"""Where tests are about the models of parsers, and get their own."""


@pytest.fixture(scope="session", autouse=True)
def _parsers_loaded_once() -> Iterator[None]:
    """Load the models of a parser once for all tests that only parse: it takes a third of a second.

    Files that are replaced are read again.
    """
    from synmt.parsing import pipeline

    load = pipeline._pipeline
    loaded = cache(lambda files, *how: load(*how))

    def once(folder: Path, *how: object) -> object:
        if os.environ.get("PYTEST_CURRENT_TEST", "").startswith(LOADING):
            return load(folder, *how)
        states = map(os.stat, sorted(folder.rglob("*")))
        return loaded(tuple((one.st_ino, one.st_mtime_ns) for one in states), folder, *how)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pipeline, "_pipeline", once)
        yield


@pytest.fixture
def random(request: pytest.FixtureRequest) -> object:
    """Draw the random numbers of a seed, which `of_seeds` gives."""
    import numpy as np

    return np.random.default_rng(request.param)


@pytest.fixture(scope="module")
def offline() -> Iterator[None]:
    """Turn the network off."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SYNMT_OFFLINE", "1")
        yield


@pytest.fixture
def show_remarks(caplog: pytest.LogCaptureFixture) -> None:
    """Let `caplog` collect what a command shows on stderr, remarks included."""
    caplog.set_level("INFO", logger="synmt")


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """Find the real corpora in the folder that `SYNMT_DATA` names; skip the test if it does not
    have all of them."""
    folder = Path(os.environ.get("SYNMT_DATA") or "SYNMT_DATA")
    missing = [name for name in CORPORA if not (folder / name).is_dir()]
    if missing:
        pytest.skip(
            f"set SYNMT_DATA to a folder with {', '.join(CORPORA)} (CONTRIBUTING.md); missing: "
            f"{', '.join(missing)}"
        )
    return folder


@pytest.fixture(scope="session")
def nc11(data_folder: Path) -> Callable[[str], Path]:
    """Find the files of the PASCAL paper's systems and their test set, by the name before
    `.test.gz`."""
    folder = data_folder / "pascal-outputs" / "nc11en2de"
    if not folder.is_dir():
        pytest.skip(f"needs {folder}")
    return lambda name: folder / f"{name}.test.gz"


@pytest.fixture(scope="module", params=["en_ewt-ud-dev", "en_ewt-ud-test", "de_gsd-ud-dev"])
def treebank(request: pytest.FixtureRequest, data_folder: Path) -> list[object]:
    """Read the gold trees of a treebank."""
    from synmt.syntax.conllu import read_conllu

    parses = [parse for _, parse in read_conllu(data_folder / "ud" / f"{request.param}.conllu.gz")]
    assert len(parses) > 700
    return parses


@pytest.fixture
def empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Give a test a cache of its own."""
    monkeypatch.setenv("SYNMT_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, empty_cache: None) -> Path:
    """Make a folder with the tiny corpus; the network is off and the cache is empty."""
    # imports torch, which most tests do without
    from tiny import write_corpus

    monkeypatch.setenv("SYNMT_OFFLINE", "1")
    write_corpus(tmp_path / "corpus")
    return tmp_path


@pytest.fixture
def reported(monkeypatch: pytest.MonkeyPatch) -> list[list]:
    """Record the progress of each job: its name, total and unit, then the amounts of work as they
    are done."""
    jobs: list[list] = []

    @contextmanager
    def display(*job):
        jobs.append([*job])
        yield jobs[-1].append

    monkeypatch.setattr("synmt.reporting.progress._display", display)
    return jobs
