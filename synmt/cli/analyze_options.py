"""The options of `synmt analyze`, as its help page shows them."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from synmt.cli.command import PARSERS, option

# one panel of the help page for each subject; options of several questions are in no panel
_common = partial(option, None, path_type=Path)
_scores = partial(option, "Scores by group", path_type=Path)
_trees = partial(option, "Trees", path_type=Path)
_weights = partial(option, "Attention and gates", path_type=Path)
_compare = partial(option, "Systems, sentence by sentence", path_type=Path)
_words = partial(option, "Words", path_type=Path)
_robust = partial(option, "Robustness", path_type=Path)

LABELS_FILE = "LABELS.tsv"

Labels = Annotated[
    Path | None,
    typer.Argument(
        metavar=LABELS_FILE,
        path_type=Path,  # type: ignore[arg-type]
        help="Labels for --by-label and --where: a tab-separated file with a header.",
    ),
]
ByLength = Annotated[bool, _scores("Group by length.", "--by-length")]
ByDepth = Annotated[bool, _scores("Group by the depth of the tree.", "--by-depth")]
ByDistance = Annotated[bool, _scores("Group by the mean and by the longest distance to a parent.", "--by-distance")]
ByRelation = Annotated[
    bool,
    _scores(
        "Group by the relations in the tree; useful for rare relations. --words relation counts the words of every "
        "relation.",
        "--by-relation",
    ),
]
ByLabel = Annotated[bool, _scores("Group by the labels in LABELS.tsv, or in the run.", "--by-label")]
Label = Annotated[list[str] | None, _scores("A column of the labels (repeatable); default: all columns.")]
Where = Annotated[
    list[str] | None,
    _scores(
        "Only sentences with COLUMN=VALUE, or COLUMN!=VALUE, in the labels (repeatable: all must hold).",
        metavar="CONDITION",
    ),
]
Baseline = Annotated[
    Path | None,
    _scores(
        "Run or file of translations to compare with; default: the first of several systems.",
        metavar="RUN|FILE",
    ),
]
GroupSeeds = Annotated[
    bool,
    _scores(
        "Treat runs or files as seeds of one system if their names differ only in `-seed1`, `.seed1`, or after the "
        "last dot.",
        "--seeds",
    ),
]
Buckets = Annotated[
    str | None,
    _scores(
        "Buckets of a paper (pascal, deps-san, ldd), or the last value of each bucket, such as 10,20,30. "
        "Default: pascal for lengths, quarters of the data for depths and distances. ldd counts target lengths."
    ),
]
Unit = Annotated[str, _scores("Unit of length: words, pieces or characters.")]
Tokenize = Annotated[
    str | None,
    _common("Tokenization of BLEU: 13a, intl, zh, ja-mecab, char, none …; default: as in the run's recipe, or 13a."),
]
Lowercase = Annotated[
    bool | None,
    _common("Whether scores ignore case; default: as in the run's recipe, or cased.", "--lowercase/--cased"),
]
Trees = Annotated[bool, _trees("Compare the trees in the model's weights with gold trees or a parser's.", "--trees")]
Gold = Annotated[
    Path | None,
    _trees(
        "Text and gold trees to compare with; with --side target, trees of the test set's references. "
        "Default: the test set is parsed.",
        metavar="FILE.conllu",
    ),
]
Draw = Annotated[
    int,
    _trees(
        "Draw the first N sentences in the terminal and as SVG, in the run folder or --plot.",
        metavar="N",
        min=0,
        show_default=False,
    ),
]
Gates = Annotated[
    bool, _weights("Show how far an LSTM's syntax gate opens at each target word, by part of speech.", "--gates")
]
Attention = Annotated[
    bool,
    _weights(
        "Show what each head attends to: entropy, how often the strongest weight is on the parent, heat maps.",
        "--attention",
    ),
]
Sentence = Annotated[int, _weights("Line of the test set for the heat maps.", metavar="N", min=1)]
Show = Annotated[
    str,
    _weights(
        "Content of heat maps: attention weights, a variant's factor or bias, attention to the source, or probable "
        "parents in latent trees.",
        metavar="weights|factor|bias|cross|parents",
    ),
]
Compare = Annotated[
    list[Path] | None,
    _compare(
        "Runs or files of translations, two or more: list the sentences that differ most from A, with trees and "
        "alignments, and draw a box plot of sentence scores for each.",
        metavar="A B …",
        show_default=False,
    ),
]
Top = Annotated[int, _compare("Number of sentences to show, or of n-grams of each kind.", metavar="N", min=1)]
Words = Annotated[
    str | None,
    _words(
        "How often is a word translated correctly, by its frequency, tag, relation, distance to the parent or depth "
        "(separated by commas)? Precision, recall and F1 of target words; recall of source words through alignments. "
        "Default side: target for frequencies, source for trees. source-tag, source-relation …: target words by the "
        "trees of the source.",
        "--words",
        metavar="LIST|all",
    ),
]
Ngrams = Annotated[bool, _words("List the n-grams that one system gets right and another gets wrong.", "--ngrams")]
Alignments = Annotated[
    Path | None,
    _words(
        "Word alignments of source and references, as pairs 0-0 1-2 on each line. Default: mean attention of the runs.",
        metavar="FILE",
    ),
]
TrainingText = Annotated[
    Path | None,
    _words("Training text to count frequencies in. Default: the text that the run was trained on.", metavar="FILE"),
]
Robustness = Annotated[
    bool,
    _robust(
        "Translate the test set again with rewired, random, flat and other trees (--parser: another parser's).",
        "--robustness",
    ),
]
Shares = Annotated[str, _robust("Shares of words that get a random parent, between 0 and 1, separated by commas.")]
Seed = Annotated[int, _robust("Seed of the random parents and random trees.", min=0)]
Run = Annotated[
    list[Path] | None,
    _common(
        "Run folder; default: the newest finished one in runs/. Scores by group and of words take several, and quoted "
        "patterns such as 'runs/pascal-*' for the seeds of one system.",
        metavar="RUN …",
        show_default=False,
    ),
]
Test = Annotated[str | None, _common("Test set of the run; default: `test`, or the first by name.")]
Hypotheses = Annotated[
    list[Path] | None,
    _common("Files of translations to analyse instead of runs, or patterns.", metavar="FILE …", show_default=False),
]
References = Annotated[Path | None, _common("File of references for --hypotheses or --compare.", metavar="FILE")]
Source = Annotated[Path | None, _common("File of the source text for --hypotheses or --compare.", metavar="FILE")]
MetricName = Annotated[str, _common("A metric of `synmt score`: bleu, chrf, ter, ribes …")]
Side = Annotated[
    str | None,
    _common(
        "Side of the lengths, trees, words or heads; default: source (target for --buckets ldd and --words frequency).",
        metavar="source|target",
    ),
]
Head = Annotated[
    str | None,
    _common(
        "An attention head, counted from 1, or `all`. Default: heads that learn trees for --trees, all heads for "
        "--attention.",
        metavar="LAYER.HEAD",
    ),
]
Parses = Annotated[
    Path | None,
    _common(
        "Trees of the test set for --by-depth, --by-distance, --by-relation, --attention, --words and --robustness; "
        "default: the test set is parsed.",
        metavar="FILE.conllu",
    ),
]
Parser = Annotated[
    str | None,
    _common(
        "Stanza model for parsing or tagging; default: that of the run or its recipe. With --robustness: a second "
        "parser to compare with.",
        metavar=PARSERS,
    ),
]
Plot = Annotated[
    Path | None,
    _common(
        "Write the figure to a .png, .svg or .pdf file; with --trees, the sentences of --draw (.svg), and with "
        "--compare, box plots of sentence scores.",
        metavar="FILE",
    ),
]
Page = Annotated[Path | None, _common("Write all analyses to one self-contained page.", "--html", metavar="FILE.html")]
