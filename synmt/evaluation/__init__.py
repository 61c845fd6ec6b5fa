"""How good translations are: metrics, confidence intervals, significance, contrastive sets."""

from typing import Any


def __getattr__(name: str) -> Any:
    # imported when it is used, since most modules of this package need less
    if name == "compare_systems":
        from synmt.evaluation.comparison import compare_systems

        return compare_systems
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
