"""The options of `synmt analyze`, as its help page shows them."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

# one panel of the help page for each subject; options of several questions are in no panel
_common = partial(typer.Option, path_type=Path)  # type: ignore[arg-type]
_scores = partial(_common, rich_help_panel="Scores by group")
_trees = partial(_common, rich_help_panel="Trees")
_weights = partial(_common, rich_help_panel="Attention and gates")
_compare = partial(_common, rich_help_panel="Two systems, sentence by sentence")
_robust = partial(_common, rich_help_panel="Robustness")

LABELS_FILE = "LABELS.tsv"

Labels = Annotated[
    Path | None,
    typer.Argument(
        metavar=LABELS_FILE,
        path_type=Path,  # type: ignore[arg-type]
        help="Labels for --by-label and --where: a tab-separated file with a header.",
    ),
]
ByLength = Annotated[bool, _scores("--by-length", help="Group by length.")]
ByDepth = Annotated[bool, _scores("--by-depth", help="Group by the depth of the tree.")]
ByDistance = Annotated[
    bool, _scores("--by-distance", help="Group by the mean and by the longest distance to a parent.")
]
ByRelation = Annotated[bool, _scores("--by-relation", help="Group by the relations in the tree.")]
ByLabel = Annotated[bool, _scores("--by-label", help="Group by the labels in LABELS.tsv, or in the run.")]
Label = Annotated[list[str] | None, _scores(help="A column of the labels (repeatable); default: all columns.")]
Where = Annotated[
    list[str] | None,
    _scores(
        metavar="CONDITION",
        help="Only sentences with COLUMN=VALUE, or COLUMN!=VALUE, in the labels (repeatable: all must hold).",
    ),
]
Baseline = Annotated[Path | None, _scores(metavar="RUN|FILE", help="Run or file of translations to compare with.")]
Buckets = Annotated[
    str | None,
    _scores(
        help="Buckets of a paper (pascal, deps-san, ldd), or the last value of each bucket, such as 10,20,30. "
        "Default: pascal for lengths, quarters of the data for depths and distances. ldd counts target lengths.",
    ),
]
Unit = Annotated[str, _scores(help="Unit of length: words, pieces or characters.")]
Tokenize = Annotated[
    str | None,
    _scores(help="Tokeniser for BLEU: 13a, intl, zh, ja-mecab, char, none …; default: as in the run's recipe, or 13a."),
]
Lowercase = Annotated[
    bool | None,
    _scores("--lowercase/--cased", help="Whether scores ignore case; default: as in the run's recipe, or cased."),
]
Trees = Annotated[
    bool, _trees("--trees", help="Compare the trees in the model's weights with gold trees or a parser's.")
]
Gold = Annotated[
    Path | None,
    _trees(
        metavar="FILE.conllu",
        help="Text and gold trees to compare with; with --side target, trees of the test set's references. "
        "Default: parse the test set.",
    ),
]
Draw = Annotated[
    int,
    _trees(
        metavar="N",
        min=0,
        show_default=False,
        help="Number of sentences to draw: in the terminal, and into the run folder or --plot.",
    ),
]
Gates = Annotated[
    bool, _weights("--gates", help="Show how far an LSTM's syntax gate opens at each target word, by part of speech.")
]
Attention = Annotated[
    bool,
    _weights(
        "--attention",
        help="Show what each head attends to: entropy, how often the strongest weight is on the parent, heat maps.",
    ),
]
Sentence = Annotated[int, _weights(metavar="N", min=1, help="Line of the test set for the heat maps.")]
Show = Annotated[
    str,
    _weights(
        metavar="weights|factor|bias|cross",
        help="Content of heat maps: attention weights, a variant's factor or bias, or attention to the source.",
    ),
]
Compare = Annotated[
    tuple[Path, Path] | None,
    _compare(
        metavar="A B",
        help="Two runs or files of translations: list the sentences that differ most, with trees and alignments.",
    ),
]
Top = Annotated[int, _compare(metavar="N", min=1, help="Number of sentences to show.")]
Robustness = Annotated[
    bool,
    _robust(
        "--robustness",
        help="Translate the test set again with damaged trees, with another parser's, and without trees.",
    ),
]
Shares = Annotated[str, _robust(help="Shares of words that get a random parent, between 0 and 1, separated by commas.")]
Seed = Annotated[int, _robust(min=0, help="Random seed for these parents.")]
Run = Annotated[Path | None, _common(help="Run folder; default: the newest finished one in runs/.")]
Test = Annotated[str | None, _common(help="Test set of the run; default: `test`, or the first by name.")]
Hypotheses = Annotated[Path | None, _common(help="File of translations to analyse instead of a run.")]
References = Annotated[Path | None, _common(help="File of references for --hypotheses or --compare.")]
Source = Annotated[Path | None, _common(help="File of the source text for --hypotheses or --compare.")]
MetricName = Annotated[str, _common(help="A metric of `synmt score`: bleu, chrf, ter, ribes …")]
Side = Annotated[
    str | None,
    _common(
        metavar="source|target",
        help="Side of the lengths, trees or heads; default: source (target for --buckets ldd).",
    ),
]
Head = Annotated[
    str | None,
    _common(
        metavar="LAYER.HEAD",
        help="An attention head, counted from 1, or `all`. Default: heads that learn trees for --trees, all heads for "
        "--attention.",
    ),
]
Parses = Annotated[
    Path | None,
    _common(
        metavar="FILE.conllu",
        help="Trees of the test set for --by-depth, --by-distance, --by-relation and --robustness; default: parse it.",
    ),
]
Parser = Annotated[
    str | None,
    _common(
        metavar="FOLDER|official|compact",
        help="Stanza model that parses or tags; default: the run's, or its recipe's. With --robustness: another one.",
    ),
]
Plot = Annotated[
    Path | None,
    _common(help="Write the figure to a .png, .svg or .pdf file; with --trees, the sentences of --draw (.svg)."),
]
Page = Annotated[
    Path | None, _common("--html", metavar="FILE.html", help="Write all analyses to one self-contained page.")
]
AsJson = Annotated[bool, _common("--json", help="Print JSON.")]
