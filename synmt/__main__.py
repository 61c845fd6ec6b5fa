"""`python -m synmt` is the command `synmt`."""

from synmt.cli import main

if __name__ == "__main__":
    main()
