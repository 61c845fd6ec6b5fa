"""Cases in a block of text: one a line."""


def cases(text: str, between: str = "=>") -> list[list[str]]:
    """List the parts of each line, without comments."""
    lines = (line for line in text.strip().splitlines() if not line.startswith("#"))
    return [[part.strip() for part in line.split(between)] for line in lines]
