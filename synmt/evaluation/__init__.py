"""How good translations are: metrics, confidence intervals, significance, contrastive sets."""


def __getattr__(name: str) -> object:
    # loaded when it is used, since most modules of this package need less
    if name == "compare_systems":
        from synmt.evaluation.comparison import compare_systems

        return compare_systems
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
