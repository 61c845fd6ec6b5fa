"""What do attention heads attend to? Statistics over a test set, and heat maps of one sentence."""

from __future__ import annotations

import logging
from dataclasses import asdict, dataclass
from typing import Any, cast

from synmt.analysis import inputs
from synmt.analysis.attention.heads import AttentionKind, Head, has_heads, heads_of, side_of
from synmt.analysis.attention.map_plot import check_legible, draw_maps
from synmt.analysis.attention.maps import AttentionMap, AttentionText, MapContent, check_content, read_map
from synmt.analysis.attention.statistics import measure_heads
from synmt.analysis.attention.summary import AttentionContext, AttentionSummary, HeadRow, RelationRow, summarize
from synmt.analysis.attention.tables import summary_as_html, summary_as_text
from synmt.analysis.forward_passes import ParsedText
from synmt.analysis.options import AttentionOptions
from synmt.analysis.report import AnalysisReport
from synmt.analysis.trees.sources import annotation_sources
from synmt.arrays import SIDES
from synmt.decode.translator import Translator
from synmt.errors import UsageError
from synmt.evaluation.bootstrap import SAMPLES, SEED
from synmt.evaluation.outputs import Outputs
from synmt.reporting.figures import check_plot
from synmt.run import Run, find_run
from synmt.syntax.conllu import read_parses
from synmt.syntax.parse import Parse

_logger = logging.getLogger(__name__)


def analyze_attention(options: AttentionOptions) -> AnalysisReport:
    """Measure attention heads over a test set, and read the heat maps of one sentence."""
    inputs.check_name(options.side, SIDES, "side")
    check_content(options.what)
    if options.plot:
        check_plot(options.plot)
    run = find_run(options.run)
    outputs = inputs.read_test(run.folder, options.test).as_read()
    translator = Translator.load(run)
    kind, content = _choose_attention(translator, options.side, options.what)
    given = _read_trees(options, outputs, kind, reads_trees=translator.reads_trees)
    heads = heads_of(translator.model, kind, options.head)
    source = _Source(run, outputs, translator, _text_of(outputs, kind), heads, given)
    if not source.given:
        do = "Use a run that records its parser" if kind == "target" else inputs.GIVE_TREES
        inputs.check_recorded(translator, run.folder, do=do)
    heat_map = read_map(translator, source.heads, source.text, content, options.sentence, source.given)
    if options.plot:
        check_legible(heat_map)
        inputs.save_plot(options.plot, lambda: draw_maps(heat_map, system=outputs.system))
    summary = _summarize(source, options)
    inputs.say_left_out(too_long=summary.too_long, empty=summary.empty)
    return AnalysisReport(
        outputs.system,
        to_json=lambda: _to_json(summary, heat_map),
        to_text=lambda: summary_as_text(summary),
        to_html=lambda: [summary_as_html(summary, heat_map)],
        runs=(run.folder,),
    )


@dataclass(frozen=True)
class _Source:
    """The model, its heads, the text, and the trees of the source that were given, if any."""

    run: Run
    outputs: Outputs
    translator: Translator
    text: AttentionText
    heads: list[Head]
    given: list[Parse]


def _choose_attention(translator: Translator, side: str, what: str) -> tuple[AttentionKind, MapContent]:
    """Choose the kind of attention from `--side` and `--what`; an LSTM has none between the words of a side.

    Instead, it has the probable parents in its annotations, if it has any, and attention to the source.
    """
    if what == "parents":
        if side != "source":
            raise UsageError("only the source has annotations", where="--what parents", do="Leave out `--side`")
        return "parents", "parents"
    if has_heads(translator.model):
        return cast(AttentionKind, "cross" if what == "cross" else side), cast(MapContent, what)
    latent = bool(annotation_sources(translator.model))
    if what in ("factor", "bias"):
        also = ", `--what parents` the probable parents in its annotations" * latent
        raise UsageError(
            f"an LSTM has no self-attention, and so no {what}",
            where=f"--what {what}",
            do=f"`--what cross` shows its attention to the source{also}",
        )
    if what == "cross":
        return "cross", "cross"
    if side == "source" and latent:
        shown = "these are the probable parents in its annotations; `--what cross` shows its attention to the source"
        _logger.info(f"an LSTM has no self-attention: {shown}")
        return "parents", "parents"
    _logger.info("an LSTM has no self-attention: this is its attention to the source")
    return "cross", "cross"


def _text_of(outputs: Outputs, kind: AttentionKind) -> AttentionText:
    """Choose the lines of the test set: the source, the references, or the run's own translations."""
    if side_of(kind) == "source":
        return AttentionText(kind, "source", outputs.source, None)
    if kind == "target":
        return AttentionText(kind, "reference", outputs.source, outputs.reference)
    return AttentionText(kind, "the run's own translation", outputs.source, outputs.hypothesis)


def _read_trees(options: AttentionOptions, outputs: Outputs, kind: AttentionKind, *, reads_trees: bool) -> list[Parse]:
    """Read the trees of the source: the model reads them, and its self-attention is compared with them."""
    if options.parses is None:
        return []
    if kind == "target":
        do = "Leave out `--parses` or `--side target`"
        raise UsageError("trees of the source are no trees of the target", where="--parses", do=do)
    if kind == "cross" and not reads_trees:
        what = "nothing is compared with trees, and the model reads none"
        raise UsageError(what, where="--parses", do="Leave out `--parses`")
    return list(read_parses(options.parses, outputs.source))


def _summarize(source: _Source, options: AttentionOptions) -> AttentionSummary:
    parsed, trees = _parse(source, options)
    context = AttentionContext(
        source.outputs.system,
        source.outputs.test,
        source.text.kind,
        source.text.name,
        trees,
        given=options.parses is not None,
        tagged=bool(source.translator.task),
    )
    statistics = measure_heads(source.translator, source.heads, context.kind, parsed)
    return summarize(statistics, context, lines=len(parsed.source))


def _parse(source: _Source, options: AttentionOptions) -> tuple[ParsedText, str]:
    """Parse the side of self-attention; a model that reads trees of this parser reads the same ones."""
    text, translator, model = source.text, source.translator, options.parser
    given = source.given or None
    if text.kind == "cross":
        return ParsedText("target", text.source, text.target, [], given), ""
    if options.parses:
        note = inputs.as_read(translator.reading.control) if translator.reads_trees else ""
        return ParsedText("source", text.source, text.target, source.given, given), options.parses.name + note
    side = side_of(text.kind)
    parser = inputs.parser_of(translator, source.run.recipe(), side, model)
    _logger.info("compared with: %s parsed by %s", text.name, inputs.name_parser(parser))
    parsed = inputs.parse_texts(translator, parser, side, text.source, text.target, named=model is not None)
    note = "" if parsed.model_trees is None else inputs.as_read(translator.reading.control)
    return parsed, inputs.name_parser(parser) + note


def _to_json(summary: AttentionSummary, heat_map: AttentionMap) -> dict[str, Any]:
    """Convert a summary and the map of one sentence; shares are from 0 to 1, and missing values None."""
    context, best = summary.context, summary.best
    return {
        "system": context.system,
        "test": context.test,
        "attention": context.kind,
        "of": context.text,
        "parser": context.parser or None,
        "sentences": summary.sentences,
        "left_out": {"too_long": summary.too_long, "empty": summary.empty},
        "pieces": summary.pieces,
        "words": summary.words,
        "parents_in_sight": summary.visible,
        "intervals": {"share": 0.95, "resamples": SAMPLES, "seed": SEED},
        "best": None if best is None else summary.rows[best].head.name,
        "heads": [_row_as_json(row) for row in summary.rows],
        "baselines": [asdict(one) for one in summary.baselines],
        "relations": [_relation_as_json(row, summary) for row in summary.relations],
        "map": _map_as_json(heat_map),
    }


def _row_as_json(row: HeadRow) -> dict[str, Any]:
    usual = row.usual_offset
    return {
        "name": row.head.name,
        "layer": row.head.layer,
        "head": row.head.number,
        "variant": row.head.variant or None,
        "entropy": {"bits": row.bits, "share_of_the_largest": row.relative_bits},
        "weight_on_no_word": row.no_word,
        "parent": asdict(row.parent) if row.parent else None,
        "weight_on_the_parent": row.parent_weight,
        "usual_choice": {"offset": usual[0], "share": usual[1]} if usual else None,
    }


def _relation_as_json(row: RelationRow, summary: AttentionSummary) -> dict[str, Any]:
    names = [one.head.name for one in summary.rows]
    return {
        "relation": row.relation,
        "words": row.words,
        "best_offset": {"offset": row.offset, "parent": row.by_offset},
        "best_head": names[row.best],
        "heads": dict(zip(names, row.heads, strict=True)),
    }


def _map_as_json(heat_map: AttentionMap) -> dict[str, Any]:
    return {
        "what": heat_map.content,
        "of": heat_map.text,
        "sentence": heat_map.sentence,
        "rows": heat_map.rows,
        "columns": heat_map.columns,
        "heads": {head.name: panel.round(6).tolist() for head, panel in heat_map.panels.items()},
    }
