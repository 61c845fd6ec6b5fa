"""The command `synmt`, also as `python -m synmt`."""

import os
import sys
from contextlib import suppress


def main() -> None:
    """Run the command line; Ctrl-C ends it quietly even while it is still being loaded."""
    _leave_out_working_folder()
    try:
        from synmt.cli import main as command

        command()
    except KeyboardInterrupt:
        print("synmt: interrupted", file=sys.stderr)
        sys.exit(130)


def _leave_out_working_folder() -> None:
    """Import nothing from the working folder, which may come from others, unless synmt itself is
    there."""
    with suppress(OSError):
        here = os.getcwd()
        if os.path.dirname(os.path.dirname(__file__)) != here:
            # of other processes, from Python 3.11 on
            os.environ.setdefault("PYTHONSAFEPATH", "1")
            # of `python -m`
            sys.path[:1] = [] if sys.path[:1] == [here] else sys.path[:1]


if __name__ == "__main__":
    main()
