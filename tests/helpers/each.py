"""One test of a check of many things: a test for each of 250 takes longer to report than to run."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any


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


def _fault_in(check, thing):
    try:
        check(thing)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return None
