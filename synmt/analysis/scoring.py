"""How several kinds of `synmt analyze` score translations: as asked for, else as the run's recipe does."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from synmt.evaluation.metrics import Metric, MetricOptions, Score
    from synmt.evaluation.outputs import Outputs


def scoring(outputs: Outputs, tokenize: str | None, lowercase: bool | None) -> MetricOptions:
    """Take the options given, and the run's own for the others."""
    own = outputs.scoring
    return replace(
        own,
        tokenize=own.tokenize if tokenize is None else tokenize,
        lowercase=own.lowercase if lowercase is None else lowercase,
    )


def scored(metric: Metric, outputs: Outputs, run: Path | None) -> Score:
    """Score translations, and keep what was counted with the run that they are of."""
    from synmt.evaluation.cache import cached_score

    folder = run / "tests" / outputs.test / "segments" if run else None
    return cached_score(metric, outputs.hypothesis, outputs.reference, sources=outputs.source or None, folder=folder)
