"""Calls that have to end with a message for a person."""

import pytest

from synmt.errors import SynmtError, UsageError


def assert_refused(message, call, *arguments, **options):
    """Call what has to refuse its arguments, with a message that matches a pattern."""
    with pytest.raises(UsageError, match=message):
        call(*arguments, **options)


def assert_fails(message, call, *arguments, **options):
    """Call what has to fail, with a message that matches a pattern."""
    with pytest.raises(SynmtError, match=message):
        call(*arguments, **options)
