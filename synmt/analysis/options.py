"""The options of each analysis; fields have the names of the options of `synmt analyze`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from synmt.arrays import Side


@dataclass(frozen=True, kw_only=True)
class CommonOptions:
    """Options that most analyses share.

    test: name of a test set of the run; None for `test`, else the first by name.
    parser: Stanza model that parses or tags: compact, official or a folder; None for that of the run or its recipe.
    plot: file of the figure (.png, .svg, .pdf); None draws none.
    """

    test: str | None = None
    parser: str | None = None
    plot: Path | None = None


@dataclass(frozen=True, kw_only=True)
class RunOptions(CommonOptions):
    """Options of an analysis of one run.

    run: run folder; None for the newest finished one in runs/.
    """

    run: Path | None = None


@dataclass(frozen=True, kw_only=True)
class GroupOptions(CommonOptions):
    """Options of `analyze_groups`: where does one system beat another?

    by_length, by_depth, by_distance, by_relation, by_label: which groups to make; at least one.
    run: run folder, or several; None for the newest finished one in runs/.
    hypotheses: file of translations to analyse instead of a run, or several; references, source: their other files.
    group_seeds: whether runs or files whose names differ only in a seed are one system.
    metric, tokenize, lowercase: how to score; None for the last two: as in the run's recipe, else 13a and cased.
    labels: a tab-separated file with a header and a row for each sentence; None for that of the run.
    label: columns of the labels to group by; all if empty.
    where: conditions COLUMN=VALUE or COLUMN!=VALUE, all of which a sentence must meet to be counted.
    baseline: run folder or file of translations to compare with; None compares several systems with the first.
        Here, and in `run` and `hypotheses`, the matches of a pattern are seeds of one system.
    buckets: of a paper (pascal, deps-san, ldd), or the last value of each bucket, such as 10,20,30.
    unit: of lengths: words, pieces or characters.
    side: whose lengths and trees; None is the source, but the target for length buckets of a paper that uses it.
    parses: CoNLL-U file with trees of the side; None parses the test set.
    """

    by_length: bool = False
    by_depth: bool = False
    by_distance: bool = False
    by_relation: bool = False
    by_label: bool = False
    run: Path | Sequence[Path] | None = None
    hypotheses: Path | Sequence[Path] | None = None
    group_seeds: bool = False
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
    """Options of `analyze_trees`: which trees has a model learned?

    gold: CoNLL-U file with text and trees to compare with; None parses the test set.
    head: an attention head LAYER.HEAD, counted from 1, or all; None for what has learned trees.
    side: source or target, whose trees are read.
    draw: number of sentences to draw.
    """

    gold: Path | None = None
    head: str | None = None
    side: str = "source"
    draw: int = 0


@dataclass(frozen=True, kw_only=True)
class GateOptions(RunOptions):
    """Options of `analyze_gates`: which target words use syntax?"""


@dataclass(frozen=True, kw_only=True)
class AttentionOptions(RunOptions):
    """Options of `analyze_attention`: what do heads attend to?

    head: an attention head LAYER.HEAD, counted from 1; None for all.
    side: source or target, whose self-attention is read.
    sentence: line of the test set for the heat maps, from 1.
    what: content of the heat maps: weights, factor, bias, cross or parents.
    parses: CoNLL-U file with trees of the source, to read and to compare with; None parses it.
    """

    head: str | None = None
    side: str = "source"
    sentence: int = 1
    what: str = "weights"
    parses: Path | None = None


@dataclass(frozen=True, kw_only=True)
class CompareOptions:
    """Options of `analyze_compare`: which sentences do systems translate most differently?

    compare: two run folders or files of translations, or more; each match of a pattern is a system.
    test: name of a test set of the runs; None for `test`, else the first by name.
    references, source: files that belong to files of translations.
    metric, tokenize, lowercase: how to score; None for the last two: as in the first run's recipe, else 13a and cased.
    parser: Stanza model that parses the source; None for that of the run or its recipe.
    top: number of sentences to show.
    plot: file of the figure (.svg) with a box of sentence scores for each system; None draws none.
    """

    compare: Sequence[Path]
    test: str | None = None
    references: Path | None = None
    source: Path | None = None
    metric: str = "bleu"
    tokenize: str | None = None
    lowercase: bool | None = None
    parser: str | None = None
    top: int = 20
    plot: Path | None = None


@dataclass(frozen=True, kw_only=True)
class WordOptions(CommonOptions):
    """Options of `analyze_words`: how often is a word translated correctly?

    words: what to group words by, with commas: frequency, tag, relation, distance, depth, or all of these; source-tag …
        for target words by the tag … of the source word that they are aligned with; None for no groups.
    ngrams: whether to find n-grams that one system gets right and another gets wrong.
    run, hypotheses, group_seeds, references, source, baseline: as in `GroupOptions`.
    tokenize, lowercase: how lines are tokenized, and whether case counts; None: as in the run's recipe, else 13a.
    side: whose words; None: target words by frequency, and source words by their trees.
    parses: CoNLL-U file with trees of the source or, with the side target, of the references; None parses them.
    alignments: file with word alignments of source and references; None takes the mean attention of the runs.
    training_text: file of the side's training text; None takes the prepared text of the first run that has one.
    top: number of n-grams to show of each system.
    """

    words: str | None = None
    ngrams: bool = False
    run: Path | Sequence[Path] | None = None
    hypotheses: Path | Sequence[Path] | None = None
    group_seeds: bool = False
    references: Path | None = None
    source: Path | None = None
    baseline: Path | None = None
    tokenize: str | None = None
    lowercase: bool | None = None
    side: Side | None = None
    parses: Path | None = None
    alignments: Path | None = None
    training_text: Path | None = None
    top: int = 20


@dataclass(frozen=True, kw_only=True)
class RobustnessOptions(RunOptions):
    """Options of `analyze_robustness`: how do damaged trees change translations?

    parser: a second parser to compare with.
    metric, tokenize, lowercase: how to score; None for the last two: as in the run's recipe.
    parses: CoNLL-U file with trees of the test set; None parses it.
    shares: probabilities that a word gets a random parent, separated by commas.
    seed: of these parents, and of random and shuffled trees.
    """

    metric: str = "bleu"
    tokenize: str | None = None
    lowercase: bool | None = None
    parses: Path | None = None
    shares: str = "0,0.1,0.25,0.5,0.75,1"
    seed: int = 1
