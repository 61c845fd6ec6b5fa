"""`synmt analyze --robustness`."""

from __future__ import annotations

from pathlib import Path

from synmt.cli.finding import Finding


def analyze_robustness(
    *,
    run: Path | None,
    test: str | None,
    metric: str,
    tokenize: str | None,
    lowercase: bool | None,
    parser: str | None,
    shares: str,
    seed: int,
    plot: Path | None,
) -> Finding:
    """Find how translations suffer from damaged trees."""
    raise NotImplementedError
