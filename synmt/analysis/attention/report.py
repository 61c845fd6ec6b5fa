"""What do attention heads attend to? Statistics over a test set, and heat maps of one sentence."""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from synmt.analysis import inputs
from synmt.analysis.answers import range_in_words
from synmt.analysis.attention.heads import (
    KINDS,
    AttentionKind,
    AttentionMap,
    heads_of,
    read_map,
)
from synmt.analysis.attention.statistics import (
    head_table,
    join,
    measure_heads,
    relation_agreement,
    relation_table,
)
from synmt.analysis.forward_passes import ParsedText
from synmt.analysis.options import AttentionOptions, MapContent
from synmt.arrays import Values
from synmt.decode.translator import Translator
from synmt.evaluation.outputs import Outputs, from_run, the_test_set
from synmt.model.capture import self_attention
from synmt.model.heads import annotation_heads, supervised_heads
from synmt.reporting.figures import GRID, check_plot, new_figure, save_figure
from synmt.reporting.values import Figure, Report
from synmt.run_folder import find_run
from synmt.syntax.conllu import read_parses
from synmt.syntax.parse import without_breaks

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing

LEAST = -10.0
"""Lower end of the scale: with this bias, a weight is already divided by 22,000."""

_UNITS = {
    "weights": "weight, 0 to 1",
    "cross": "weight, 0 to 1",
    "parents": "probability of a parent; on the diagonal: of the root",
    "factor": "factor on the score",
    "bias": "bias added to the score, nats",
    "target": "1: the piece that the head learns to attend to; grey: masked",
}
_CELL, _LARGEST = 0.2, 28.0
"""Inches: the size of a cell, and that of all panels side by side, for which cells shrink."""
_MOST_IN_A_ROW = 8
"""Maximum number of panels side by side."""


def analyze_attention(options: AttentionOptions) -> Report:
    """Measure attention heads over a test set, and read the heat maps of one sentence."""
    check_plot(options.plot)
    run = find_run(options.run)
    outputs = from_run(run.folder, options.test).as_read()
    translator = Translator.load(run)
    kind = _choose_attention(translator, options)
    heads = heads_of(translator.model, kind, options.head)
    text = _read_text(options, outputs, kind)
    if not text.model_trees:
        inputs.check_recorded(translator, run.folder, "" if kind == "target" else "--parses")
    content: MapContent = options.what
    parse = partial(
        inputs.parse_text, translator, run, text.side, text.source, text.target, options.parser
    )
    if content == "target":
        supervised_heads(translator.model, text.side, heads)
        text = text if text.gold else parse()
    if content == "weights" and (kind == "cross" or kind == "parents"):
        content = kind
    heat_map = read_map(translator, heads, kind, text, content=content, number=options.sentence)
    draw_map = partial(draw_maps, heat_map, system=outputs.system)
    save_figure(draw_map, options.plot)
    if kind != "cross" and not text.gold:
        text = parse()
    sentences, left_out = measure_heads(translator, heads, kind, text)
    joined = join(list(sentences.values()))
    words = [len(sentence.parents) for sentence in sentences.values()]
    table = head_table(heads, joined, words, ends=KINDS[kind].ends)
    looks = "The share of words whose highest weight is on their parent"
    counts = {"sentences": len(sentences), "pieces": len(joined.visible), "words": sum(words)}
    return Report(
        title=f"{outputs.system}: {KINDS[kind].name}",
        parts=[
            range_in_words(table, "parent", looks),
            table,
            *([relation_table(heads, joined)] if kind != "cross" else []),
            Figure(
                draw=draw_map,
                caption=f"Sentence {options.sentence} ({KINDS[kind].lines}).",
                title="Heat maps",
            ),
        ],
        notes=[
            f"{KINDS[kind].lines} of {the_test_set(outputs.test)}",
            *([f"trees: {inputs.describe_trees(translator, text)}"] if kind != "cross" else []),
            ", ".join(f"{count:,} {name}" for name, count in counts.items()),
        ],
        facts={
            "attention": kind,
            **counts,
            "left_out": left_out,
            "parents_out_of_sight": len(joined.hidden),
            "relations": relation_agreement(heads, joined),
            "map": _map_facts(heat_map),
        },
        runs=(run.folder,),
    )


def _choose_attention(translator: Translator, options: AttentionOptions) -> AttentionKind:
    """Choose the kind of attention from `--side` and `--what`; an LSTM has none between the words
    of a side.

    Instead, it has the probable parents in its annotations, if it has any, and attention to the
    source.
    """
    if options.what == "parents" or options.what == "cross":
        return options.what
    if self_attention(translator.model, "source"):
        return options.side
    annotated = options.side == "source" and annotation_heads(translator.model)
    return "parents" if annotated else "cross"


def _read_text(options: AttentionOptions, outputs: Outputs, kind: AttentionKind) -> ParsedText:
    """Choose the lines of the test set, and read the trees that the user gave.

    Attention is compared with these trees; if they are of the source, the model reads them, too.
    """
    target = {"target": outputs.reference, "cross": outputs.hypothesis}.get(kind)
    if options.parses is None:
        return ParsedText(KINDS[kind].side, outputs.source, target, [])
    lines = outputs.reference if kind == "target" else outputs.source
    trees = list(read_parses(options.parses, lines))
    gold, read = [] if kind == "cross" else trees, None if kind == "target" else trees
    return ParsedText(KINDS[kind].side, outputs.source, target, gold, read, options.parses.name)


def _map_facts(heat_map: AttentionMap) -> Values:
    return {
        "what": heat_map.content,
        "sentence": heat_map.sentence,
        "rows": heat_map.rows,
        "columns": heat_map.columns,
        "heads": {head.name: panel.round(6).tolist() for head, panel in heat_map.panels.items()},
    }


def draw_maps(heat_map: AttentionMap, *, system: str) -> Drawing:
    """Draw the matrix of each head, several heads in a grid of layers and heads.

    Rows are the pieces that attend, columns the pieces attended to; all share one colour scale.
    """
    kind, panels = KINDS[heat_map.kind], heat_map.panels
    rows, columns = (
        [without_breaks(piece) for piece in pieces] for pieces in (heat_map.rows, heat_map.columns)
    )
    across = min(_MOST_IN_A_ROW, len(panels))
    down = math.ceil(len(panels) / across)
    values = np.stack(list(panels.values()))  # (S, Tq, Tk)
    low, high = max(LEAST, np.nanmin(values)), np.nanmax(values)
    cell = min(_CELL, _LARGEST / max(across * len(columns), down * len(rows)))
    letters = min(8, 50 * cell)
    figure = new_figure(3 + across * len(columns) * cell, 2 + down * len(rows) * cell)
    grid = figure.subplots(down, across, sharex=True, sharey=True, squeeze=False)
    for axes, (head, panel) in zip(grid.flat, panels.items(), strict=False):
        axes.imshow(panel, cmap="Blues", vmin=low, vmax=high, aspect="auto")
        axes.grid(visible=False)
        axes.set_facecolor(GRID)
        axes.set_title(head.title, fontsize=8)
        axes.set_yticks(range(len(rows)), rows, fontsize=letters)
        axes.set_xticks(range(len(columns)), columns, rotation=90, fontsize=letters)
    for axes in grid.flat[len(panels) :]:
        axes.set_axis_off()
    title = f"{system}: {kind.name}, sentence {heat_map.sentence}, {kind.lines}"
    figure.suptitle(title, wrap=True)
    figure.supylabel("Piece that attends")
    figure.supxlabel("Piece attended to")
    figure.colorbar(grid[0, 0].images[0], ax=figure.axes, label=_UNITS[heat_map.content])
    return figure
