"""What do attention heads attend to? Statistics over a test set, and heat maps of one sentence."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, cast

import numpy as np

from synmt.analysis import inputs
from synmt.analysis.attention.figures import check_legible, draw_agreement, draw_maps, is_legible
from synmt.analysis.attention.heads import (
    KINDS,
    MAP_CONTENTS,
    AttentionKind,
    AttentionMap,
    MapContent,
    heads_of,
    read_map,
    side_of,
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
from synmt.reporting.page import paragraph
from synmt.reporting.values import Figure, Part, Report, TextBlock
from synmt.run_folder import Run, find_run
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
    kind, content = _choose_attention(translator, options.side, options.what)
    text = _read_text(options, outputs, kind, reads_trees=translator.reads_trees)
    heads = heads_of(translator.model, kind, options.head)
    if not text.model_trees:
        do = "Use a run that records its parser" if kind == "target" else inputs.GIVE_TREES
        inputs.check_recorded(translator, run.folder, do=do)
    heat_map = read_map(translator, heads, kind, text, content=content, number=options.sentence)
    if options.plot:
        check_legible(heat_map)
        inputs.save_plot(options.plot, partial(draw_maps, heat_map, system=outputs.system))
    text, parser = _parse(options, translator, run, kind, text)
    sentences, too_long = measure_heads(translator, heads, kind, text)
    left_out = inputs.log_left_out(len(text.source), len(sentences), too_long)
    joined = join(list(sentences.values()), trees=kind != "cross")
    words = [len(one.parents) for one in sentences.values()]
    of = (
        f"{KINDS[kind].lines} of "
        f"{the_test_set(outputs.test)}{f', with trees of {parser}' if parser else ''}"
    )
    facts = {
        "system": outputs.system,
        "test": outputs.test,
        "parser": parser or None,
        "left_out": left_out,
    }
    facts |= {"attention": kind, "of": KINDS[kind].lines, "sentences": len(sentences)}
    return Report(
        title=f"{outputs.system}: {KINDS[kind].name}",
        parts=[
            TextBlock(lines=[f"{of}; {_counts(joined, len(sentences), kind)}"]),
            head_table(heads, joined, words, ends=KINDS[kind].ends),
            *_relations(heads, joined, outputs.system),
            _map_figure(heat_map, heads[best_head(joined)], outputs.system),
        ],
        facts={**facts, **_facts(heads, joined), "map": _map_facts(heat_map)},
        system=outputs.system,
        runs=(run.folder,),
    )


def _choose_attention(
    translator: Translator, side: str, what: str
) -> tuple[AttentionKind, MapContent]:
    """Choose the kind of attention from `--side` and `--what`; an LSTM has none between the words
    of a side.

    Instead, it has the probable parents in its annotations, if it has any, and attention to the
    source.
    """
    if what == "parents":
        if side != "source":
            raise UsageError(
                "only the source has annotations", where="--what parents", do="Leave out `--side`"
            )
        return "parents", "parents"
    if what == "cross":
        return "cross", "cross"
    if self_attention(translator.model, "source"):
        return cast(AttentionKind, side), cast(MapContent, what)
    latent = bool(annotation_heads(translator.model))
    if what in ("factor", "bias"):
        also = ", `--what parents` the probable parents in its annotations" * latent
        raise UsageError(
            f"an LSTM has no self-attention, and so no {what}",
            where=f"--what {what}",
            do=f"`--what cross` shows its attention to the source{also}",
        )
    if side == "source" and latent:
        shown = (
            "these are the probable parents in its annotations; `--what cross` shows its "
            "attention to the source"
        )
        _logger.info(f"an LSTM has no self-attention: {shown}")
        return "parents", "parents"
    _logger.info("an LSTM has no self-attention: this is its attention to the source")
    return "cross", "cross"


def _read_text(
    options: AttentionOptions, outputs: Outputs, kind: AttentionKind, *, reads_trees: bool
) -> ParsedText:
    """Choose the lines of the test set, and read the trees of the source that the user gave.

    The model reads these trees, and its self-attention is compared with them.
    """
    target = {"target": outputs.reference, "cross": outputs.hypothesis}.get(kind)
    text = ParsedText(side_of(kind), outputs.source, target, [])
    if options.parses is None:
        return text
    if kind == "target":
        do = "Leave out `--parses` or `--side target`"
        raise UsageError("trees of the source are no trees of the target", where="--parses", do=do)
    if kind == "cross" and not reads_trees:
        what = "nothing is compared with trees, and the model reads none"
        raise UsageError(what, where="--parses", do="Leave out `--parses`")
    trees = list(read_parses(options.parses, outputs.source))
    return replace(text, gold=trees, model_trees=trees)


def _parse(
    options: AttentionOptions,
    translator: Translator,
    run: Run,
    kind: AttentionKind,
    text: ParsedText,
) -> tuple[ParsedText, str]:
    """Parse the side of self-attention, and name the parser; a model that reads its trees reads the
    same ones."""
    if kind == "cross":
        return text, ""
    if options.parses:
        name = options.parses.name
    else:
        parser = inputs.parser_of(translator, run.recipe(), text.side, options.parser)
        name = inputs.name_parser(parser)
        _logger.info("compared with: %s parsed by %s", KINDS[kind].lines, name)
        named = options.parser is not None
        text = inputs.parse_texts(
            translator, parser, text.side, text.source, text.target, named=named
        )
    read = translator.reads_trees and text.model_trees is not None
    return text, name + inputs.as_read(translator.reading.control) * read


def _counts(joined: HeadStatistics, sentences: int, kind: AttentionKind) -> str:
    counts = f"{len(joined.visible):,} pieces in {sentences:,} sentences"
    if kind != "cross":
        counts += f"; {len(joined.parents):,} words, neither punctuation nor roots"
    if kind == "target":
        counts += f", with a parent to the left ({_visible(joined):.1%} of all)"
    return counts


def _visible(joined: HeadStatistics) -> float:
    """Compute the share of words with a visible parent among all that are neither punctuation nor
    roots."""
    return len(joined.parents) / (len(joined.parents) + len(joined.hidden))


def _relations(heads: Sequence[Head], joined: HeadStatistics, system: str) -> Iterator[Part]:
    """Show the agreement of all heads, if there are several, and by relation."""
    if not len(joined.parents):
        return
    if len(heads) > 1 and heads[0].layer:
        owners = ", ".join(sorted({head.variant for head in heads} - {""}))
        caption = "Words whose highest weight is on their parent, by layer and head."
        draw = partial(draw_agreement, heads, joined.agrees.mean(1).tolist(), system=system)
        yield Figure(draw=draw, caption=caption + f" Framed: heads of {owners}." * bool(owners))
    yield relation_table(heads, joined)


def _map_figure(heat_map: AttentionMap, best: Head, system: str) -> Part:
    """Show the heat maps of all heads; that of the best head alone if the sentence is too long for
    all."""
    kind, title = (
        KINDS[heat_map.kind],
        f"Sentence {heat_map.sentence} ({KINDS[heat_map.kind].lines})",
    )
    if not is_legible(heat_map) and len(heat_map.panels) > 1:
        head = best if best in heat_map.panels else next(iter(heat_map.panels))
        heat_map = replace(heat_map, panels={head: heat_map.panels[head]})
        title += f", {head.name} only, because the sentence is long"
    if not is_legible(heat_map):
        return TextBlock(
            html=paragraph(
                f"{title} is too long for a heat map; choose another one with --sentence."
            )
        )
    one_scale = " All heads share one scale." * (len(heat_map.panels) > 1)
    caption = (
        f"{title}. Rows: {kind.rows}; columns: {kind.columns}. A dot marks a piece inside a "
        f"word.{one_scale}"
    )
    return Figure(
        draw=partial(draw_maps, heat_map, system=system),
        caption=caption,
        title="Heat maps",
        shrinks=False,
    )


def _facts(heads: Sequence[Head], joined: HeadStatistics) -> dict[str, Any]:
    """Return what the tables do not have; shares are from 0 to 1, and missing values None."""
    names = [head.name for head in heads]
    return {
        "pieces": len(joined.visible),
        "words": len(joined.parents),
        "parents_in_sight": _visible(joined) if len(joined.parents) else None,
        "intervals": {"share": 0.95, "resamples": SAMPLES, "seed": SEED},
        "best": names[best_head(joined)] if len(joined.parents) else None,
        "heads": [
            {
                "name": head.name,
                "layer": head.layer or None,
                "head": head.number or None,
                "variant": head.variant or None,
            }
            for head in heads
        ],
        "relations": {
            name: dict(zip(names, relation_agreement(joined, name), strict=True))
            for name in np.unique(joined.relations).tolist()
        },
    }


def _map_facts(heat_map: AttentionMap) -> dict[str, Any]:
    return {
        "what": heat_map.content,
        "sentence": heat_map.sentence,
        "rows": heat_map.rows,
        "columns": heat_map.columns,
        "heads": {head.name: panel.round(6).tolist() for head, panel in heat_map.panels.items()},
    }
