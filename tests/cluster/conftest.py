"""What the tests of clusters share."""

import pytest

from synmt.parallel import processes


@pytest.fixture(autouse=True)
def _look_often(monkeypatch):
    """Do not wait long for workers that join."""
    monkeypatch.setattr(processes, "_LOOK", 0.1)
