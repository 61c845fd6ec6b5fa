"""The command `synmt`, also as `python -m synmt`."""

import os
import sys


def main() -> None:
    """Run the command line; Ctrl-C ends it quietly even while it is still being loaded."""
    # other processes import nothing from the working folder, which may come from others; Python
    # 3.10 does not know it
    os.environ.setdefault("PYTHONSAFEPATH", "1")
    try:
        from synmt.cli import main as command

        command()
    except KeyboardInterrupt:
        print("synmt: interrupted", file=sys.stderr)
        sys.exit(130)


if __name__ == "__main__":
    main()
