"""What several tests share."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

# before torch is loaded, here and in the commands that tests start: two test processes share two cores
os.environ.setdefault("OMP_NUM_THREADS", "1")

JOURNEYS = re.compile(
    # files with commands, training runs and Stanza's pipeline
    r"/test_(cli_|every_recipe|recipe_list|known_corpora|corpus_items|download|console|journey|systems|old_formats"
    r"|chosen_run|way_through|one_|bpe_dropout"
    r"|training|pipeline|tasks|target_trees|variant_page|api_page|official|readme|analyze_from_python"
    r"|pars(ers|ing|e_cache)\b|arcs\b|translator|forced|robustness)"
    # tests that start processes, train, compile models, or enumerate or sample much
    r"|::test_help_imports|_killed_|compile|equation_on_random_trees|wide_enough_finds"
    r"|for_all_functions_of_the_word_vocabulary|_plain_python"
    r"|_schedule\.py::test_(the_rate_falls|a_run_|a_checkpoint|patience|the_loss)|_controlled\.py|_contrast\.py"
    r"|_sampling\.py::test_(rounding|sentences_with|a_sentence_gets)|_beam\.py::test_a_(sentence_gets|log_prob)|rejects_five_percent|enumeration_of_all_exchanges"
    r"|_keep_the_rules_of_torch|_pass_the_check_with_padding"
)
"""What the names of journeys contain; tests that read real corpora are journeys too."""

CORPORA = ("multi30k", "ud", "pascal-outputs", "lingeval")
"""Folders with the real corpora that tests read, inside `SYNMT_DATA`."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark every test as `unit` or `journey`."""
    for item in items:
        reads_corpora = "data_folder" in getattr(item, "fixturenames", ())
        is_journey = reads_corpora or JOURNEYS.search(item.nodeid)
        item.add_marker("journey" if is_journey else "unit")


@pytest.fixture(scope="session", autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keep the tests out of the user's cache."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SYNMT_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


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
    """Find the real corpora in the folder that `SYNMT_DATA` names; skip the test if it does not have all of them."""
    folder = Path(os.environ.get("SYNMT_DATA") or "SYNMT_DATA")
    missing = [name for name in CORPORA if not (folder / name).is_dir()]
    if missing:
        pytest.skip(
            f"set SYNMT_DATA to a folder with {', '.join(CORPORA)} (CONTRIBUTING.md); missing: {', '.join(missing)}"
        )
    return folder


@pytest.fixture(scope="session")
def nc11(data_folder: Path) -> Callable[[str], Path]:
    """Find the files of the PASCAL paper's systems and their test set, by the name before `.test.gz`."""
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
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make a folder with the tiny corpus; the network is off and the cache is empty."""
    # imports torch, which most tests do without
    from tiny import write_corpus

    monkeypatch.setenv("SYNMT_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("SYNMT_OFFLINE", "1")
    write_corpus(tmp_path / "corpus")
    return tmp_path
