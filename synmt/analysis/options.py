"""The options of each analysis; fields have the names of the options of `synmt analyze`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from synmt.arrays import Side


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """Options that most analyses share."""

    run: Path | None = None
    test: str | None = None
    parser: str | None = None
    plot: Path | None = None


@dataclass(frozen=True, kw_only=True)
class GroupOptions(RunOptions):
    """Options of `analyze_groups`: where does one system beat another?

    side: whose lengths and trees; None is the source, but the target for length buckets of a paper that uses it.
    """

    by_length: bool = False
    by_depth: bool = False
    by_distance: bool = False
    by_relation: bool = False
    by_label: bool = False
    hypotheses: Path | None = None
    references: Path | None = None
    source: Path | None = None
    metric: str = "bleu"
    tokenize: str | None = None
    lowercase: bool | None = None
    labels: Path | None = None
    label: Sequence[str] = ()
    where: Sequence[str] = ()
    baseline: Path | None = None
    buckets: str | None = None
    unit: str = "words"
    side: Side | None = None
    parses: Path | None = None


@dataclass(frozen=True, kw_only=True)
class TreeOptions(RunOptions):
    """Options of `analyze_trees`: which trees has a model learnt?"""

    gold: Path | None = None
    head: str | None = None
    side: str = "source"
    draw: int = 0


@dataclass(frozen=True, kw_only=True)
class GateOptions(RunOptions):
    """Options of `analyze_gates`: which target words use syntax?"""


@dataclass(frozen=True, kw_only=True)
class AttentionOptions(RunOptions):
    """Options of `analyze_attention`: what do heads attend to?"""

    head: str | None = None
    side: str = "source"
    sentence: int = 1
    what: str = "weights"


@dataclass(frozen=True, kw_only=True)
class CompareOptions:
    """Options of `analyze_compare`: which sentences do two systems translate most differently?"""

    compare: tuple[Path, Path]
    test: str | None = None
    references: Path | None = None
    source: Path | None = None
    metric: str = "bleu"
    tokenize: str | None = None
    lowercase: bool | None = None
    parser: str | None = None
    top: int = 20


@dataclass(frozen=True, kw_only=True)
class RobustnessOptions(RunOptions):
    """Options of `analyze_robustness`: how do damaged trees change translations?"""

    metric: str = "bleu"
    tokenize: str | None = None
    lowercase: bool | None = None
    parses: Path | None = None
    shares: str = "0,0.1,0.25,0.5,0.75,1"
    seed: int = 1
