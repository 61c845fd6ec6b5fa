"""`synmt analyze --compare`."""

from __future__ import annotations

from pathlib import Path

from synmt.cli.finding import Finding


def analyze_compare(
    *,
    compare: tuple[Path, Path],
    test: str | None,
    references: Path | None,
    source: Path | None,
    metric: str,
    tokenize: str | None,
    lowercase: bool | None,
    parser: str | None,
    top: int,
) -> Finding:
    """Find the sentences that two systems translate most differently."""
    raise NotImplementedError
