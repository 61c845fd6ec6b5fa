"""The command `synmt`, also as `python -m synmt`."""

import os
import sys


def main() -> None:
    """Run the command line; Ctrl-C ends it quietly even while it is still being loaded."""
    # `python -m` would take any module from the working folder, even one that has the name of an installed one
    if sys.path[0] == os.getcwd() and os.path.dirname(os.path.dirname(__file__)) != sys.path[0]:
        sys.path.remove(sys.path[0])
    try:
        from synmt.cli import main as command

        command()
    except KeyboardInterrupt:
        print("synmt: interrupted", file=sys.stderr)
        sys.exit(130)


if __name__ == "__main__":
    main()
