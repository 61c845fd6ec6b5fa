"""What do attention heads attend to? Statistics over a test set, and heat maps of one sentence."""

from __future__ import annotations

from functools import partial
from typing import Any, cast

from synmt.analysis import inputs
from synmt.analysis.attention.figures import draw_maps
from synmt.analysis.attention.heads import (
    KINDS,
    MAP_CONTENTS,
    AttentionKind,
    AttentionMap,
    MapContent,
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
from synmt.analysis.heads import annotation_heads
from synmt.analysis.options import AttentionOptions
from synmt.arrays import SIDES
from synmt.decode.translator import Translator
from synmt.errors import unknown_name
from synmt.evaluation.outputs import Outputs, the_test_set
from synmt.model.capture import self_attention
from synmt.reporting.figures import check_plot
from synmt.reporting.values import Figure, Part, Report
from synmt.run_folder import find_run
from synmt.syntax.conllu import read_parses


def analyze_attention(options: AttentionOptions) -> Report:
    """Measure attention heads over a test set, and read the heat maps of one sentence."""
    inputs.check_name(options.side, SIDES, "side")
    if options.what not in MAP_CONTENTS:
        raise unknown_name("map", options.what, MAP_CONTENTS, where="--what")
    if options.plot:
        check_plot(options.plot)
    run = find_run(options.run)
    outputs = inputs.read_test(run.folder, options.test).as_read()
    translator = Translator.load(run)
    kind = _choose_attention(translator, options)
    heads = heads_of(translator.model, kind, options.head)
    text = _read_text(options, outputs, kind)
    if not text.model_trees:
        inputs.check_recorded(translator, run.folder, "" if kind == "target" else "--parses")
    plain = options.what == "weights" and kind not in SIDES
    content = cast(MapContent, kind if plain else options.what)
    heat_map = read_map(translator, heads, kind, text, content=content, number=options.sentence)
    draw_map = partial(draw_maps, heat_map, system=outputs.system)
    if options.plot:
        inputs.save_plot(options.plot, draw_map)
    parser = options.parses.name if options.parses else ""
    if kind != "cross" and not parser:
        lines = text.source, text.target
        text, parser = inputs.parse_text(translator, run, text.side, *lines, options.parser)
    parser = "" if kind == "cross" else parser + inputs.as_read(translator, text)
    sentences, left_out = measure_heads(translator, heads, kind, text)
    joined = join(list(sentences.values()), trees=kind != "cross")
    words = [len(one.parents) for one in sentences.values()]
    parts: list[Part] = [head_table(heads, joined, words, ends=KINDS[kind].ends)]
    if kind != "cross":
        parts.append(relation_table(heads, joined))
    caption = f"Sentence {options.sentence} ({KINDS[kind].lines})."
    parts.append(Figure(draw=draw_map, caption=caption, title="Heat maps"))
    counts = {"sentences": len(sentences), "pieces": len(joined.visible), "words": sum(words)}
    return Report(
        title=f"{outputs.system}: {KINDS[kind].name}",
        parts=parts,
        notes=[
            f"{KINDS[kind].lines} of {the_test_set(outputs.test)}",
            *([f"trees: {parser}"] if parser else []),
            ", ".join(f"{count:,} {name}" for name, count in counts.items()),
        ],
        facts={
            "system": outputs.system,
            "attention": kind,
            **counts,
            "left_out": left_out,
            "parents_in_sight": joined.visible_share,
            "relations": relation_agreement(heads, joined),
            "map": _map_facts(heat_map),
        },
        system=outputs.system,
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
    return ParsedText(KINDS[kind].side, outputs.source, target, gold, read)


def _map_facts(heat_map: AttentionMap) -> dict[str, Any]:
    panels = {head.name: panel.round(6).tolist() for head, panel in heat_map.panels.items()}
    return {
        "what": heat_map.content,
        "sentence": heat_map.sentence,
        "rows": heat_map.rows,
        "columns": heat_map.columns,
        "heads": panels,
    }
