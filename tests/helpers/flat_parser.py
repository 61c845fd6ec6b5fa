"""A parser without a model, which runs in processes that tests kill."""

import os
import signal
import time

from synmt.parsing.bulk import parse_file
from synmt.syntax.parse import flat_parse


class FlatParser:
    """Makes flat trees: a line with `poison` fails, `stop` and `kill` end the run.

    asked: the lines that it was given.
    """

    def __init__(self, name="flat", slow=0.0):
        self.identity, self.fingerprint = {"backend": "flat", "name": name}, f"{name:0>12}"
        self.slow, self.asked = slow, []

    def processes(self):
        return 2

    def parse(self, lines, *, on_failure=None):
        self.asked += lines
        time.sleep(self.slow)
        for index, line in enumerate(lines):
            if "poison" in line and on_failure:
                on_failure(index, "poisoned")
            if line == "stop":
                raise KeyboardInterrupt
            if line == "kill":
                os.kill(os.getpid(), signal.SIGKILL)
        return [flat_parse(line) for line in lines]


def parse_with_flat(source, target, parser=None, **options):
    """Parse a text in shards of four lines; returns the steps."""
    options = {"shard_lines": 4, "workers": 1, **options}
    return list(parse_file(source, target, parser or FlatParser(), **options))


def parse_slowly(source, target, workers):
    """Parse a text in a session of its own, slowly enough to be killed meanwhile."""
    os.setsid()
    parse_with_flat(source, target, FlatParser(slow=0.1), workers=workers)


def group_lives(group):
    """Check whether some process of a group still runs."""
    try:
        os.killpg(group, 0)
    except (ProcessLookupError, PermissionError):
        return False
    return True
