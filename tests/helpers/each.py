"""One test of a check of many things: a test for each of 250 takes longer to report than to run.
And a test that is repeated with other random numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest


def of_each(things: Iterable[Any]) -> Callable[[Callable[[Any], None]], Callable[[], None]]:
    """Make one test of a check; it names everything that fails, with the reason."""
    things = list(things)
    assert things, "a check of nothing finds no fault"

    def as_test(check):
        def test():
            faults = {str(thing): fault for thing in things if (fault := _fault_in(check, thing))}
            assert not faults, faults

        test.__doc__ = check.__doc__
        return test

    return as_test


def of_seeds(number: int) -> pytest.MarkDecorator:
    """Repeat a test with the random numbers of some seeds, as its `random`."""
    return pytest.mark.parametrize("random", range(number), indirect=True)


def _fault_in(check, thing):
    try:
        check(thing)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return None
