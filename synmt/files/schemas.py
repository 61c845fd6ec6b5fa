"""Schemas of the JSON files of runs and prepared corpora; those of older versions lack some of the
keys."""

from __future__ import annotations

from typing import Annotated, Any, Generic, Literal, TypeVar

from pydantic import ConfigDict, Field, with_config
from typing_extensions import NotRequired, Required, TypedDict

from synmt.files.json_files import Amount, Count

T = TypeVar("T")

may_have_more = with_config(ConfigDict(extra="allow"))
"""Keeps keys that are not listed."""

_Name = Annotated[str, Field(pattern=r"^[^/\x00]+$", max_length=250)]
"""The name of a file or folder."""
_Finite = Annotated[float, Field(allow_inf_nan=False)]
_Pair = Annotated[list[Count], Field(min_length=2, max_length=2)]
"""A number for the source, and one for the target."""


class OfSides(TypedDict, Generic[T]):
    """Something of each side."""

    source: T
    target: T


class OfSplits(TypedDict, Generic[T]):
    """Something of each split."""

    train: T
    valid: T


@may_have_more
class Versioned(TypedDict):
    """A file in any version of its format."""

    format: int


@may_have_more
class ParserIdentity(TypedDict, total=False):
    """What determines the trees of a parser, or of files that were given in its place."""

    backend: str
    model: Annotated[str, Field(pattern=r"^[^\x00]*$", max_length=4000)]
    package: _Name
    files: dict[str, str] | None
    features: list[str]


@may_have_more
class RunParser(ParserIdentity):
    """The parser that a run can load again."""

    language: _Name


@may_have_more
class ParserFacts(TypedDict):
    """What a parser's folder and Stanza say."""

    stanza: str
    files: dict[str, str]


class StoredParser(TypedDict):
    """What the cache knows of a parser, and the states of the files that it was read from."""

    folder: str
    facts: ParserFacts
    files: dict[str, list[int]]


@may_have_more
class ParseCost(TypedDict):
    """What parsing a text took; older versions of a run have the wall clock only."""

    words: Count
    processor_seconds: NotRequired[Amount]


@may_have_more
class RunInfo(TypedDict, total=False):
    """The content of run.json."""

    format: Required[int]
    name: str
    status: str
    synmt: str
    steps: Count | None
    finished_at: str | None
    devices: list[str]
    prepared: _Name
    trees: dict[str, _Name]
    parser: RunParser | None
    pairs: Count
    parsing: dict[str, ParseCost]
    text: dict[str, dict[str, Any]]
    init: dict[str, str]
    pretrained_weights: list[str]
    inputs: dict[str, dict[str, str]]


@may_have_more
class State(TypedDict, total=False):
    """What is read of state.json without the model."""

    best_step: Count


class LogLine(TypedDict, total=False):
    """A line of log.jsonl, as far as it is read; a number that is not finite is null."""

    kind: Required[str]
    step: Required[Count]
    loss: _Finite | None
    memory: Amount | None
    tokens: Count | None
    seconds: Amount | None
    processor_seconds: Amount | None
    joules: Amount | None


class ScoreOfTest(TypedDict):
    """The score of a metric in scores.json."""

    score: float
    signature: str


class CostOfTest(TypedDict):
    """The content of cost.json, of a test set."""

    sentences: Count
    processor_seconds: Amount


@may_have_more
class TextFacts(TypedDict):
    """The facts of a shard of text."""

    reasons: dict[str, Count]
    cut: Count
    words: _Pair
    pieces: _Pair
    unknown: _Pair


class SplitFacts(TextFacts):
    """A split in corpus.json: what was kept and removed, and how words were segmented."""

    lines: Count
    rows: Count
    shards: Annotated[int, Field(ge=1, le=1_000_000)]


@may_have_more
class FilterFacts(TypedDict):
    """The filters in corpus.json."""

    max_pieces: Count


@may_have_more
class PreparedFacts(TypedDict):
    """The content of corpus.json."""

    format: int
    source: str
    target: str
    filters: FilterFacts
    vocabularies: OfSides[Literal["vocabulary", "source", "target"]]
    vocabulary_sizes: OfSides[Count]
    splits: OfSplits[SplitFacts]


class TreeCounts(TypedDict):
    """How the words of trees match the pieces of a split."""

    pieces: Count
    words: Count
    merged: Count


@may_have_more
class AnnotationFacts(TypedDict):
    """The content of annotation.json."""

    format: int
    side: Literal["source", "target"]
    parser: ParserIdentity
    relations: OfSplits[dict[str, Count]]
    arcs: bool
    tags: list[str]
    counts: OfSplits[TreeCounts]


class FeatureFacts(TypedDict):
    """The values of a feature of words in a shard, and how often each occurs."""

    values: list[str]
    counts: list[Count]


@may_have_more
class TreeFacts(TypedDict):
    """The facts of a shard of trees."""

    relations: list[str]
    relation_counts: list[Count]
    tags: list[str]
    counts: TreeCounts
    arcs: list[str] | None
    whole: NotRequired[bool]
    features: NotRequired[dict[str, FeatureFacts]]


class MixedFacts(TypedDict):
    """The content of mixed.json: all opening brackets."""

    units: list[str]
