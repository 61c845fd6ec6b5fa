"""What several tests share."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

# before torch is loaded, here and in the commands that tests start: two test processes share two cores
os.environ.setdefault("OMP_NUM_THREADS", "1")

JOURNEYS = """
    test_cli_ test_console test_journey test_systems test_old_formats test_chosen_run test_way_through test_one_way_through
    test_training test_tasks test_target_trees test_variant_page test_one_file test_api_page test_readme
    test_parsers test_parsing test_parse_cache test_arcs.py test_translator test_forced test_robustness
    ::test_help_imports _killed_ compile ::test_every_tree_has_one_root equation_on_random_trees
    wide_enough_finds_what_enumeration_finds for_all_functions_of_the_word_vocabulary go_together_as_in_plain
""".split()
"""Parts of the names of journeys: files with commands, training runs and Stanza's pipeline, then tests that start processes,
compile models or enumerate much. Tests that read real corpora are journeys too.
"""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark every test as `unit` or `journey`."""
    for item in items:
        reads_corpora = "data_folder" in getattr(item, "fixturenames", ())
        is_journey = reads_corpora or any(part in item.nodeid for part in JOURNEYS)
        item.add_marker("journey" if is_journey else "unit")


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
