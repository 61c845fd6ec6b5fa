"""The options of each analysis, as Python and as the command line take them.

A field has the name of an option of `synmt analyze`. None stands for the default that its text
names.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Literal

from synmt.options import Option

# the same as in synmt.arrays, which loads numpy
Side = Literal["source", "target"]
MapContent = Literal["weights", "factor", "bias", "cross", "parents", "target"]
"""The values that heat maps show."""
Paths = Path | Sequence[Path] | None
"""One path or several; None for the default."""

Question = partial(Option, asks=True)
"""Makes a field an option that asks a question of `synmt analyze`."""

RUN = Option(
    "Run folder; default: the newest finished one in runs/. Scores by group and of words take "
    "several, and quoted patterns such as 'runs/pascal-*' for the seeds of one system.",
    metavar="RUN …",
    show_default=False,
)
Test = Annotated[str | None, Option("Test set of the run; default: `test`, or the first by name.")]
References = Annotated[
    Path | None, Option("File of references for --hypotheses or --compare.", metavar="FILE")
]
Source = Annotated[
    Path | None, Option("File of the source text for --hypotheses or --compare.", metavar="FILE")
]
Names = Annotated[
    Sequence[str],
    Option(
        "Names of the systems in the order of the table, the baseline first.",
        metavar="NAME …",
        show_default=False,
    ),
]
Metric = Annotated[str, Option("A metric of `synmt score`: bleu, chrf, ter, ribes …")]
Tokenize = Annotated[
    str | None,
    Option(
        "Tokenization of BLEU: 13a, intl, zh, ja-mecab, char, none …; default: as in the run's "
        "recipe, or 13a."
    ),
]
Lowercase = Annotated[
    bool | None,
    Option(
        "Whether scores ignore case; default: as in the run's recipe, or cased.",
        names="--lowercase/--cased",
    ),
]
Parses = Annotated[
    Path | None,
    Option(
        "Trees of the test set for groups by trees, --attention, --words and --robustness; "
        "default: the test set is parsed.",
        metavar="FILE.conllu",
    ),
]
Head = Annotated[
    str | None,
    Option(
        "An attention head, counted from 1, the mean of a layer, `6.mean`, or `all`. Default: "
        "heads that learn trees for --trees, all heads for --attention.",
        metavar="LAYER.HEAD",
    ),
]
SIDE = Option(
    "Side of the lengths, trees, words or heads; default: source (target for --buckets ldd and "
    "--words frequency)."
)
SENTENCE = Option(
    "Line of the test set for the heat maps, or the only one that --compare shows.",
    metavar="N",
    minimum=1,
)
Parser = Annotated[
    str | None,
    Option(
        "Stanza model for parsing or tagging; default: that of the run or its recipe. With "
        "--robustness: a second parser to compare with.",
        metavar="auto|compact|official|FOLDER",
    ),
]
Plot = Annotated[
    Path | None,
    Option(
        "Write the figure to a .png, .svg or .pdf file; with --trees, the sentences of --draw "
        "(.svg), and with --compare, box plots of sentence scores.",
        metavar="FILE",
    ),
]
Top = Annotated[
    int, Option("Number of sentences to show, or of n-grams of each kind.", metavar="N", minimum=1)
]


@dataclass(frozen=True, kw_only=True)
class CommonOptions:
    """Options of most analyses."""

    run: Annotated[Paths, RUN] = None
    test: Test = None
    parser: Parser = None
    plot: Plot = None


@dataclass(frozen=True, kw_only=True)
class RunOptions(CommonOptions):
    """Options of an analysis of one run."""

    run: Annotated[Path | None, RUN] = None


@dataclass(frozen=True, kw_only=True)
class SystemOptions(CommonOptions):
    """Options of an analysis of runs, or of files of translations; matches of a pattern are seeds
    of one system."""

    hypotheses: Annotated[
        Paths,
        Option(
            "Files of translations to analyse instead of runs, or patterns.",
            metavar="FILE …",
            show_default=False,
        ),
    ] = None
    references: References = None
    source: Source = None
    baseline: Annotated[
        Path | None,
        Option(
            "Run or file of translations to compare with; default: the first of several systems.",
            metavar="RUN|FILE",
        ),
    ] = None
    group_seeds: Annotated[
        bool,
        Option(
            "Treat runs or files as seeds of one system if their names differ only in `-seed1`, "
            "`.seed1`, or after the last dot.",
            names="--seeds",
        ),
    ] = False
    names: Names = ()
    tokenize: Tokenize = None
    lowercase: Lowercase = None
    side: Annotated[Side | None, SIDE] = None
    parses: Parses = None


@dataclass(frozen=True, kw_only=True)
class GroupOptions(SystemOptions):
    """Options of `analyze_groups`: where does one system beat another?"""

    metric: Metric = "bleu"
    labels: Annotated[
        Path | None,
        Option(
            "Labels for --by-label and --where: a tab-separated file with a header.",
            metavar="LABELS.tsv",
            is_argument=True,
        ),
    ] = None
    by_length: Annotated[bool, Question("Group by length.")] = False
    by_depth: Annotated[bool, Question("Group by the depth of the tree.")] = False
    by_distance: Annotated[
        bool, Question("Group by the mean and by the longest distance to a parent.")
    ] = False
    by_arity: Annotated[
        bool, Question("Group by the largest number of dependents that a word has.")
    ] = False
    by_projectivity: Annotated[
        bool,
        Question("Group by the number of arcs that make the tree non-projective."),
    ] = False
    by_entropy: Annotated[
        bool,
        Question(
            "Group by how unsure the parser is: the mean entropy of a word's possible parents. "
            "--parses needs trees of `synmt parse --arcs`.",
        ),
    ] = False
    by_relation: Annotated[
        bool,
        Question(
            "Group by the relations in the tree; useful for rare relations. --words relation "
            "counts the words of every relation.",
        ),
    ] = False
    by_label: Annotated[bool, Question("Group by the labels in LABELS.tsv, or in the run.")] = False
    label: Annotated[
        Sequence[str],
        Option("A column of the labels (repeatable); default: all columns with at most 50 values."),
    ] = ()
    where: Annotated[
        Sequence[str],
        Option(
            "Only sentences with COLUMN=VALUE, or COLUMN!=VALUE, in the labels (repeatable: all "
            "must hold).",
            metavar="CONDITION",
        ),
    ] = ()
    buckets: Annotated[
        str | None,
        Option(
            "Buckets of a paper (pascal, deps-san, ldd), or the last value of each bucket, such as "
            "10,20,30. Default: pascal for lengths, quarters of the data for trees. ldd counts "
            "target lengths."
        ),
    ] = None
    unit: Annotated[
        Literal["words", "pieces", "characters"],
        Option("Unit of length; characters are for text without spaces."),
    ] = "words"


@dataclass(frozen=True, kw_only=True)
class TreeOptions(RunOptions):
    """Options of `analyze_trees`: which trees has a model learned?"""

    gold: Annotated[
        Path | None,
        Option(
            "Text and gold trees to compare with; with --side target, trees of the test set's "
            "references. Default: the test set is parsed.",
            metavar="FILE.conllu",
        ),
    ] = None
    head: Head = None
    side: Annotated[Side, SIDE] = "source"
    draw: Annotated[
        int,
        Option(
            "Draw the first N sentences in the terminal and as SVG, in the run folder or --plot.",
            metavar="N",
            minimum=0,
            show_default=False,
        ),
    ] = 0


@dataclass(frozen=True, kw_only=True)
class GateOptions(RunOptions):
    """Options of `analyze_gates`: which target words use syntax?"""


@dataclass(frozen=True, kw_only=True)
class AttentionOptions(RunOptions):
    """Options of `analyze_attention`: what do heads attend to?"""

    head: Head = None
    side: Annotated[Side, SIDE] = "source"
    sentence: Annotated[int, SENTENCE] = 1
    what: Annotated[
        MapContent,
        Option(
            "Content of heat maps: attention weights, a variant's factor or bias, attention to the "
            "source, probable parents in latent trees, or the parents that supervised heads learn "
            "to attend to.",
        ),
    ] = "weights"
    parses: Parses = None


@dataclass(frozen=True, kw_only=True)
class CompareOptions:
    """Options of `analyze_compare`: which sentences do systems translate most differently?

    Each match of a pattern is a system.
    """

    compare: Annotated[
        Sequence[Path],
        Question(
            "Runs or files of translations, two or more: list the sentences that differ most from "
            "A, with trees and alignments, and draw a box plot of sentence scores for each.",
            metavar="A B …",
            show_default=False,
        ),
    ]
    test: Test = None
    references: References = None
    source: Source = None
    names: Names = ()
    metric: Metric = "bleu"
    tokenize: Tokenize = None
    lowercase: Lowercase = None
    parser: Parser = None
    sentence: Annotated[int | None, SENTENCE] = None
    top: Top = 20
    plot: Plot = None


@dataclass(frozen=True, kw_only=True)
class WordOptions(SystemOptions):
    """Options of `analyze_words`: how often is a word translated correctly?

    `tokenize` and `lowercase` are those of the words.
    """

    words: Annotated[
        str | None,
        Question(
            "How often is a word translated correctly, by its frequency, tag, relation, distance "
            "to the parent or depth (separated by commas)? Precision, recall and F1 of target "
            "words; recall of source words through alignments. Default side: target for "
            "frequencies, source for trees. source-tag, source-relation …: target words by the "
            "trees of the source.",
            metavar="LIST|all",
        ),
    ] = None
    ngrams: Annotated[
        bool,
        Question("List the n-grams that one system gets right and another gets wrong."),
    ] = False
    alignments: Annotated[
        Path | None,
        Option(
            "Word alignments of source and references, as pairs 0-0 1-2 on each line. Default: "
            "mean attention of the runs.",
            metavar="FILE",
        ),
    ] = None
    training_text: Annotated[
        Path | None,
        Option(
            "Training text to count frequencies in. Default: the text that the run was trained on.",
            metavar="FILE",
        ),
    ] = None
    top: Top = 20


@dataclass(frozen=True, kw_only=True)
class RobustnessOptions(RunOptions):
    """Options of `analyze_robustness`: how do damaged trees change translations?"""

    metric: Metric = "bleu"
    tokenize: Tokenize = None
    lowercase: Lowercase = None
    parses: Parses = None
    shares: Annotated[
        str,
        Option("Shares of words that get a random parent, between 0 and 1, separated by commas."),
    ] = "0,0.1,0.25,0.5,0.75,1"
    seed: Annotated[int, Option("Seed of the random parents and random trees.", minimum=0)] = 1
