"""What do attention heads attend to? Statistics over a test set, and heat maps of one sentence."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, cast

from synmt.analysis import inputs
from synmt.analysis.attention.figures import draw_agreement, draw_maps
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
    HeadStatistics,
    best_head,
    head_table,
    join,
    measure_heads,
    relation_agreement,
    relation_table,
)
from synmt.analysis.forward_passes import ParsedText
from synmt.analysis.heads import Head, annotation_heads
from synmt.analysis.options import AttentionOptions
from synmt.arrays import SIDES
from synmt.decode.translator import Translator
from synmt.errors import UsageError, did_you_mean
from synmt.evaluation.bootstrap import SAMPLES, SEED
from synmt.evaluation.outputs import Outputs, the_test_set
from synmt.model.capture import self_attention
from synmt.reporting.figures import check_plot
from synmt.reporting.values import Figure, Part, Report, TextBlock
from synmt.run_folder import find_run
from synmt.syntax.conllu import read_parses

_logger = logging.getLogger(__name__)


def analyze_attention(options: AttentionOptions) -> Report:
    """Measure attention heads over a test set, and read the heat maps of one sentence."""
    inputs.check_name(options.side, SIDES, "side")
    if options.what not in MAP_CONTENTS:
        raise UsageError(
            f"heat maps do not show '{options.what}'",
            where="--what",
            allowed=f"They show {', '.join(MAP_CONTENTS)}",
            do=did_you_mean(options.what, MAP_CONTENTS),
        )
    if options.plot:
        check_plot(options.plot)
    run = find_run(options.run)
    outputs = inputs.read_test(run.folder, options.test).as_read()
    translator = Translator.load(run)
    kind = _choose_attention(translator, options)
    content = cast(MapContent, options.what if kind in SIDES else kind)
    heads = heads_of(translator.model, kind, options.head)
    text = _read_text(options, outputs, kind, reads_trees=translator.reads_trees)
    if not text.model_trees:
        option = "" if kind == "target" else "--parses"
        inputs.check_recorded(translator, run.folder, option)
    heat_map = read_map(translator, heads, kind, text, content=content, number=options.sentence)
    if options.plot:
        inputs.save_plot(options.plot, partial(draw_maps, heat_map, system=outputs.system))
    parser = options.parses.name if options.parses else ""
    if kind != "cross" and not parser:
        lines = text.source, text.target
        text, parser = inputs.parse_text(translator, run, text.side, *lines, options.parser)
        _logger.info("compared with: %s parsed by %s", KINDS[kind].lines, parser)
    parser = "" if kind == "cross" else parser + inputs.as_read(translator, text)
    sentences, left_out = measure_heads(translator, heads, kind, text)
    joined = join(list(sentences.values()), trees=kind != "cross")
    words = [len(one.parents) for one in sentences.values()]
    facts = {"system": outputs.system, "test": outputs.test, "parser": parser or None}
    facts |= {"left_out": left_out, "attention": kind, "of": KINDS[kind].lines}
    facts |= {"sentences": len(sentences), **_facts(heads, joined), "map": _map_facts(heat_map)}
    with_trees = f", with trees of {parser}" if parser else ""
    of = f"{KINDS[kind].lines} of {the_test_set(outputs.test)}{with_trees}"
    return Report(
        title=f"{outputs.system}: {KINDS[kind].name}",
        parts=[
            TextBlock(lines=[f"{of}; {_counts(joined, len(sentences), kind)}"]),
            head_table(heads, joined, words, ends=KINDS[kind].ends),
            *_relations(heads, joined, outputs.system),
            _map_figure(heat_map, outputs.system),
        ],
        facts=facts,
        system=outputs.system,
        runs=(run.folder,),
    )


def _choose_attention(translator: Translator, options: AttentionOptions) -> AttentionKind:
    """Choose the kind of attention from `--side` and `--what`; an LSTM has none between the words
    of a side.

    Instead, it has the probable parents in its annotations, if it has any, and attention to the
    source.
    """
    side, what = options.side, options.what
    if what == "parents" and side != "source":
        raise UsageError(
            "only the source has annotations", where="--what parents", do="Leave out `--side`"
        )
    if what == "parents" or what == "cross":
        return what
    if self_attention(translator.model, "source"):
        return side
    if what in ("factor", "bias"):
        raise UsageError(
            f"an LSTM has no self-attention, and so no {what}",
            where=f"--what {what}",
            do="`--what cross` shows its attention to the source, `--what parents` the probable "
            "parents in its annotations, if it has any",
        )
    if side == "source" and annotation_heads(translator.model):
        _logger.info(
            "an LSTM has no self-attention: these are the probable parents in its annotations; "
            "`--what cross` shows its attention to the source"
        )
        return "parents"
    _logger.info("an LSTM has no self-attention: this is its attention to the source")
    return "cross"


def _read_text(
    options: AttentionOptions, outputs: Outputs, kind: AttentionKind, *, reads_trees: bool
) -> ParsedText:
    """Choose the lines of the test set, and read the trees of the source that the user gave.

    The model reads these trees, and its self-attention is compared with them.
    """
    target = {"target": outputs.reference, "cross": outputs.hypothesis}.get(kind)
    text = ParsedText(KINDS[kind].side, outputs.source, target, [])
    if options.parses is None:
        return text
    if kind == "target":
        do = "Leave out `--parses` or `--side target`"
        raise UsageError("trees of the source are no trees of the target", where="--parses", do=do)
    if kind == "cross" and not reads_trees:
        what = "nothing is compared with trees, and the model reads none"
        raise UsageError(what, where="--parses", do="Leave out `--parses`")
    trees = list(read_parses(options.parses, outputs.source))
    return replace(text, gold=[] if kind == "cross" else trees, model_trees=trees)


def _counts(joined: HeadStatistics, sentences: int, kind: AttentionKind) -> str:
    counts = f"{len(joined.visible):,} pieces in {sentences:,} sentences"
    if kind != "cross":
        counts += f"; {len(joined.parents):,} words, neither punctuation nor roots"
    if kind == "target":
        counts += f", with a parent to the left ({joined.visible_share or 0:.1%} of all)"
    return counts


def _relations(heads: Sequence[Head], joined: HeadStatistics, system: str) -> Iterator[Part]:
    """Show the agreement of all heads, if there are several, and by relation."""
    if not len(joined.parents):
        return
    if len(heads) > 1 and heads[0].layer:
        owners = ", ".join(sorted({head.variant for head in heads if head.variant}))
        caption = "Words whose highest weight is on their parent, by layer and head."
        framed = f" Framed: heads of {owners}." if owners else ""
        draw = partial(draw_agreement, heads, joined.agrees.mean(1).tolist(), system=system)
        yield Figure(draw=draw, caption=caption + framed)
    yield relation_table(heads, joined)


def _map_figure(heat_map: AttentionMap, system: str) -> Figure:
    kind = KINDS[heat_map.kind]
    dots = f"Rows: {kind.rows}; columns: {kind.columns}. A dot marks a piece inside a word."
    scale = " All heads share one scale." if len(heat_map.panels) > 1 else ""
    return Figure(
        draw=partial(draw_maps, heat_map, system=system),
        caption=f"Sentence {heat_map.sentence} ({kind.lines}). {dots}{scale}",
        title="Heat maps",
    )


def _facts(heads: Sequence[Head], joined: HeadStatistics) -> dict[str, Any]:
    """Return what the tables do not have; shares are from 0 to 1, and missing values None."""
    names = [head.name for head in heads]
    places = [
        {
            "name": head.name,
            "layer": head.layer or None,
            "head": head.number or None,
            "variant": head.variant or None,
        }
        for head in heads
    ]
    relations = {
        relation: dict(zip(names, shares, strict=True))
        for relation, shares in relation_agreement(joined).items()
    }
    return {
        "pieces": len(joined.visible),
        "words": len(joined.parents),
        "parents_in_sight": joined.visible_share,
        "intervals": {"share": 0.95, "resamples": SAMPLES, "seed": SEED},
        "best": names[best_head(joined)] if len(joined.parents) else None,
        "heads": places,
        "relations": relations,
    }


def _map_facts(heat_map: AttentionMap) -> dict[str, Any]:
    panels = {head.name: panel.round(6).tolist() for head, panel in heat_map.panels.items()}
    return {
        "what": heat_map.content,
        "sentence": heat_map.sentence,
        "rows": heat_map.rows,
        "columns": heat_map.columns,
        "heads": panels,
    }
