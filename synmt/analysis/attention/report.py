"""`synmt analyze --attention`: what each head looks at, in numbers over a test set and as heat maps of a sentence."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, cast

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
from synmt.cli import console
from synmt.cli.finding import AnalysisReport
from synmt.errors import UsageError

if TYPE_CHECKING:
    from synmt.analysis.attention.heads import Head, Place, What
    from synmt.analysis.attention.maps import AttentionMap
    from synmt.analysis.attention.table import AttentionReport
    from synmt.analysis.trees.induced import Texts
    from synmt.decode.translator import Translator
    from synmt.evaluation.outputs import Outputs
    from synmt.run import Run


def analyze_attention(
    *,
    run: Path | None,
    test: str | None,
    parser: str | None,
    head: str | None,
    side: str,
    sentence: int,
    what: str,
    plot: Path | None,
) -> AnalysisReport:
    """Find what each head looks at."""
    from synmt.analysis.attention.heads import heads_of
    from synmt.analysis.attention.values import as_json
    from synmt.cli.attention_tables import make_section, print_tables
    from synmt.decode.translator import Translator
    from synmt.run import find_run

    _check_request(side, what, plot)
    opened = find_run(run)
    outputs = read_test(opened.folder, test)
    translator = Translator.load(opened, remark=console.warn)
    place, shows = _place(translator, side, what)
    asked = _Asked(opened, outputs, translator, place, heads_of(translator.model, place, head))
    shown = asked.map(shows, sentence)
    if plot:
        _draw(shown, plot, outputs.system)
    report = asked.report(parser)
    say_left_out(too_long=report.too_long, empty=report.empty)
    return AnalysisReport(
        outputs.system,
        lambda: as_json(report, shown),
        lambda: print_tables(report),
        lambda: [make_section(report, shown)],
        (opened.folder,),
    )


def _check_request(side: str, what: str, plot: Path | None) -> None:
    from synmt.analysis.attention.heads import check_what
    from synmt.arrays import SIDES

    check_name(side, SIDES, "side")
    check_what(what)
    if plot:
        from synmt.analysis.plots import check_plot

        check_plot(plot)


def _place(translator: Translator, side: str, what: str) -> tuple[Place, What]:
    """Find which attention is asked for; an LSTM has only one."""
    from synmt.analysis.attention.heads import has_heads

    if has_heads(translator.model):
        return cast("Place", "cross" if what == "cross" else side), cast("What", what)
    if what in ("factor", "bias"):
        raise UsageError(
            f"an LSTM has no self-attention, and so no {what} in it",
            where=f"--what {what}",
            do="Leave `--what` out to see its attention to the source",
        )
    if what != "cross":
        console.remark("an LSTM has no self-attention: this is its attention to the source")
    return "cross", "cross"


@dataclass(frozen=True)
class _Asked:
    """What is looked at."""

    run: Run
    outputs: Outputs
    translator: Translator
    place: Place
    heads: list[Head]

    @property
    def text(self) -> str:
        """Which lines of the test set are looked at, or written."""
        return {"source": "source", "target": "reference", "cross": "the run's own translation"}[self.place]

    @property
    def target(self) -> list[str] | None:
        """What the model is made to write."""
        return {"source": None, "target": self.outputs.reference, "cross": self.outputs.hypothesis}[self.place]

    def map(self, what: What, sentence: int) -> AttentionMap:
        """Read the matrices of one sentence."""
        from synmt.analysis.attention.maps import read_map

        check_recorded(self.translator, self.run.folder)
        source, target, text = self.outputs.source, self.target, self.text
        return read_map(
            self.translator, self.heads, self.place, what, sentence, source=source, target=target, text=text
        )

    def report(self, parser: str | None) -> AttentionReport:
        """Sum up what the heads look at over the whole test set."""
        from synmt.analysis.attention.statistics import measure_heads
        from synmt.analysis.attention.table import About, report_attention

        texts, trees = self._texts(parser)
        about = About(self.outputs.system, self.outputs.test, self.place, self.text, trees)
        with console.progress("reading attention", len(texts.source), "sentences") as advance:
            found = measure_heads(self.translator, self.heads, self.place, texts, advance)
        return report_attention(found, about, lines=len(texts.source))

    def _texts(self, parser: str | None) -> tuple[Texts, str]:
        """Parse the side that is looked at; the model reads the trees too where they are its own parser's."""
        from synmt.analysis.trees.induced import Texts

        source, target = self.outputs.source, self.target
        if self.place == "cross":
            return Texts("target", source, target, []), ""
        made_by = parser_of(self.translator, self.run.recipe(), self.place, parser)
        console.remark(f"compared with: {self.text} parsed by {name_parser(made_by)}")
        texts = parse_texts(self.translator, made_by, self.place, source, target, named=parser is not None)
        read = "" if texts.read is None else as_read(self.translator.reading.control)
        return texts, name_parser(made_by) + read


def _draw(shown: AttentionMap, path: Path, system: str) -> None:
    from synmt.analysis.attention.map_plot import check_legible, save_maps

    check_legible(shown)
    save_plot(path, lambda: save_maps(shown, path, system=system))
