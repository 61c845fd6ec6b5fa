"""`synmt analyze --attention`."""

from __future__ import annotations

from pathlib import Path

from synmt.cli.finding import Finding


def analyze_attention(
    *,
    run: Path | None,
    test: str | None,
    parser: str | None,
    head: str | None,
    side: str,
    sentence: int,
    what: str,
    plot: Path | None,
) -> Finding:
    """Find what each head looks at."""
    raise NotImplementedError
