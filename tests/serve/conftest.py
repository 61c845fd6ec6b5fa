"""Two runs that are served."""

import pytest
from serving import make_served


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """Make the runs."""
    return make_served(tmp_path_factory.mktemp("served"))
