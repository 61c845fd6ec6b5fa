"""What do attention heads attend to? Statistics over a test set, and heat maps of one sentence."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import cast

from synmt.analysis.attention.heads import AttentionKind, Head, has_heads, heads_of
from synmt.analysis.attention.json_values import summary_as_json
from synmt.analysis.attention.map_plot import check_legible, save_maps
from synmt.analysis.attention.maps import AttentionText, MapContent, check_content, read_map
from synmt.analysis.attention.statistics import measure_heads
from synmt.analysis.attention.summary import AttentionContext, AttentionSummary, summarize
from synmt.analysis.attention.tables import summary_as_html, summary_as_text
from synmt.analysis.forward_passes import ParsedText
from synmt.analysis.inputs import (
    as_read,
    check_name,
    check_recorded,
    name_parser,
    parse_texts,
    parser_of,
    read_test,
    save_plot,
    say_left_out,
)
from synmt.analysis.options import AttentionOptions
from synmt.analysis.plots import check_plot
from synmt.analysis.report import AnalysisReport
from synmt.arrays import SIDES
from synmt.decode.translator import Translator
from synmt.errors import UsageError
from synmt.evaluation.outputs import Outputs
from synmt.evaluation.progress import progress
from synmt.run import Run, find_run

_logger = logging.getLogger(__name__)


def analyze_attention(options: AttentionOptions) -> AnalysisReport:
    """Measure attention heads over a test set, and read the heat maps of one sentence."""
    check_name(options.side, SIDES, "side")
    check_content(options.what)
    if options.plot:
        check_plot(options.plot)
    run = find_run(options.run)
    outputs = read_test(run.folder, options.test)
    translator = Translator.load(run)
    kind, content = _choose_attention(translator, options.side, options.what)
    source = _Source(run, outputs, translator, _text_of(outputs, kind), heads_of(translator.model, kind, options.head))
    check_recorded(translator, run.folder)
    shown = read_map(translator, source.heads, source.text, content, options.sentence)
    if plot := options.plot:
        check_legible(shown)
        save_plot(plot, lambda: save_maps(shown, plot, system=outputs.system))
    summary = _summarize(source, options.parser)
    say_left_out(too_long=summary.too_long, empty=summary.empty)
    return AnalysisReport(
        outputs.system,
        to_json=lambda: summary_as_json(summary, shown),
        to_text=lambda: summary_as_text(summary),
        to_html=lambda: [summary_as_html(summary, shown)],
        runs=(run.folder,),
    )


@dataclass(frozen=True)
class _Source:
    """The model, its heads, and the text."""

    run: Run
    outputs: Outputs
    translator: Translator
    text: AttentionText
    heads: list[Head]


def _choose_attention(translator: Translator, side: str, what: str) -> tuple[AttentionKind, MapContent]:
    """Choose the kind of attention from `--side` and `--what`; an LSTM has only attention to the source."""
    if has_heads(translator.model):
        return cast(AttentionKind, "cross" if what == "cross" else side), cast(MapContent, what)
    if what in ("factor", "bias"):
        raise UsageError(
            f"an LSTM has no self-attention, and so no {what}",
            where=f"--what {what}",
            do="Leave out `--what` to see its attention to the source",
        )
    if what != "cross":
        _logger.info("an LSTM has no self-attention: this is its attention to the source")
    return "cross", "cross"


def _text_of(outputs: Outputs, kind: AttentionKind) -> AttentionText:
    """Choose the lines of the test set: the source, the references, or the run's own translations."""
    if kind == "source":
        return AttentionText(kind, "source", outputs.source, None)
    if kind == "target":
        return AttentionText(kind, "reference", outputs.source, outputs.reference)
    return AttentionText(kind, "the run's own translation", outputs.source, outputs.hypothesis)


def _summarize(source: _Source, parser: str | None) -> AttentionSummary:
    parsed, trees = _parse(source, parser)
    context = AttentionContext(
        source.outputs.system, source.outputs.test, source.text.kind, source.text.name, parser=trees
    )
    with progress("reading attention", len(parsed.source), "sentences") as advance:
        statistics = measure_heads(source.translator, source.heads, context.kind, parsed, advance)
    return summarize(statistics, context, lines=len(parsed.source))


def _parse(source: _Source, model: str | None) -> tuple[ParsedText, str]:
    """Parse the side of self-attention; a model that reads trees of this parser reads the same ones."""
    text, translator = source.text, source.translator
    if text.kind == "cross":
        return ParsedText("target", text.source, text.target, []), ""
    parser = parser_of(translator, source.run.recipe(), text.kind, model)
    _logger.info("compared with: %s parsed by %s", text.name, name_parser(parser))
    parsed = parse_texts(translator, parser, text.kind, text.source, text.target, named=model is not None)
    note = "" if parsed.model_trees is None else as_read(translator.reading.control)
    return parsed, name_parser(parser) + note
