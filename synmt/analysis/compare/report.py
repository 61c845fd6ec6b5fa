"""Which sentences do systems translate most differently?"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from string import ascii_uppercase
from typing import TYPE_CHECKING

import numpy as np

from synmt.analysis.answers import differences_in_words
from synmt.analysis.compare.sentences import (
    MARKED,
    ComparedSentence,
    ComparedSystems,
    bracketed,
    classify_all,
    rank_differences,
    ranking_metric,
    stretches,
    word_spans,
)
from synmt.analysis.compare.words import SentenceWords, WordDetails, find_words
from synmt.analysis.inputs import read_translations
from synmt.analysis.options import CompareOptions
from synmt.arrays import Values
from synmt.decode.alignment import best_pairs
from synmt.errors import UsageError
from synmt.evaluation.comparison import score_outputs
from synmt.evaluation.metrics import make_metric
from synmt.evaluation.outputs import the_test_set
from synmt.reporting.figures import INK, check_plot, new_figure, save_figure, series_style
from synmt.reporting.page import picture, template
from synmt.reporting.values import (
    Column,
    Figure,
    Report,
    Table,
    TextBlock,
    Written,
    count_column,
    text_column,
)
from synmt.syntax.drawing import TreeDrawing, draw_svg
from synmt.syntax.parse import words_at

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing


def analyze_compare(options: CompareOptions) -> Report:
    """Find the sentences that systems translate most differently from the first one."""
    check_plot(options.plot)
    systems = read_translations(
        options.compare,
        test=options.test,
        references=options.references,
        source=options.source,
        apart=True,
        names=options.names,
    )
    if not 2 <= len(systems) <= len(ascii_uppercase):
        what = f"2 to {len(ascii_uppercase)} systems can be compared, not {len(systems)}"
        raise UsageError(what, where="--compare")
    outputs = [replace(system.seeds[0], system=system.name) for system in systems]
    settings = outputs[0].scoring.updated(options)
    metrics = make_metric(options.metric, settings), ranking_metric(options.metric, settings)
    scores, ranks = ([score_outputs(metric, system) for system in outputs] for metric in metrics)
    words = [system.as_read() for system in outputs]
    # alignments are those of words: systems that tokenize the source in different ways are compared
    # without them
    same = all(system.source == words[0].source for system in words)
    shown, line = words if same else outputs, options.sentence
    if line and line > (count := len(shown[0].reference)):
        raise UsageError(f"there are {count:,} sentences", where=f"--sentence {line}")
    compared = rank_differences(shown, scores, ranks, top=options.top, line=line)
    runs = [system.run for system in outputs]
    draw = partial(draw_boxes, compared)
    save_figure(draw, options.plot)

    @cache  # parsing and aligning take long, and the tables need neither
    def details() -> WordDetails:
        return find_words(compared.sentences, runs, options.source, options.parser, raw=not same)

    def details_as_json() -> Values:
        words = details()
        sentences = [{"line": line, **of_line.as_json()} for line, of_line in words.by_line.items()]
        return {"parser": words.parser or None, "sentences": sentences}

    table = systems_table(compared)
    names, test = ", ".join(system.name for system in compared.systems), the_test_set(compared.test)
    boxes = (
        f"{compared.ranking.title} of single sentences; a diamond is the mean of a system. Right: "
        f"each sentence by {outputs[0].system} and by the others; above the line they are better."
    )
    return Report(
        title=f"{names}, sentence by sentence" + (f", on {test}" if compared.test else ""),
        parts=[
            differences_in_words([table], outputs[0].system, "score"),
            table,
            quantiles_table(compared),
            Figure(draw=draw, caption=boxes),
            sentences_table(compared, lambda: make_cards(compared, details()), options.sentence),
        ],
        notes=[metric.label for metric in metrics],
        late_facts=details_as_json,
        runs=tuple(dict.fromkeys(run for run in runs if run)),
    )


def systems_table(compared: ComparedSystems) -> Table:
    """Make a row for each system: score, difference from the first, and in how many sentences it is
    better."""
    about = (
        f"from {compared.systems[0].name}, by paired bootstrap (Koehn, 2004); p is corrected for "
        "the number of systems (Holm, 1979), the interval is not"
    )
    ranking = compared.ranking.title
    columns = [
        text_column("system"),
        Column(compared.metric.title, name="score"),
        Column("difference", signed=True, about=about),
        Column("95 % interval", signed=True, name="interval"),
        Column("p", kind="p", name="holm_p"),
        count_column("better", name="wins", about=f"in how many sentences, by {ranking}"),
        count_column("equal", name="ties"),
        count_column("worse", name="losses"),
    ]
    rows = []
    for letter, system in zip(compared.letters, compared.systems, strict=True):
        comparison, gains = system.difference, system.gains
        against = [None] * 6
        if comparison:
            counts = [int(chosen.sum()) for chosen in (gains > 0, gains == 0, gains < 0)]
            against = [comparison.difference, comparison.interval, system.holm_p, *counts]
        rows.append([f"{letter}: {system.name}", system.score, *against])
    return Table(columns=columns, rows=rows)


def quantiles_table(compared: ComparedSystems) -> Table:
    """Make a row for each system: what a box plot shows of its sentence scores."""
    titles = ("lowest", "lower quartile", "median", "upper quartile", "highest")
    rows = [
        [system.name, *np.quantile(system.sentences, (0, 0.25, 0.5, 0.75, 1)).tolist()]
        for system in compared.systems
    ]
    columns = [text_column("system"), *(Column(title, digits=1) for title in titles)]
    title = f"{compared.ranking.title} of single sentences"
    return Table(title=title, columns=columns, rows=rows)


def sentences_table(
    compared: ComparedSystems, on_page: Callable[[], TextBlock], chosen: int | None = None
) -> Table:
    """Make rows for each sentence: its source, its reference and its translations.

    chosen: the line of the only one, if the user chose it.
    """
    columns = [
        count_column("line"),
        Column("gain", digits=1, signed=True, about="of the others over A, on average"),
        text_column("text"),
        Column(compared.ranking.title, digits=1, name="score"),
        text_column("sentence", about=f"[…]: {MARKED}"),
    ]
    rows = []
    for sentence in compared.sentences:
        first = [sentence.line, sentence.gain]
        if sentence.source:
            rows.append([*first, "source", None, sentence.source])
        rows.append([*first, "reference", None, sentence.reference])
        kinds = classify_all(sentence.translations, sentence.reference)
        for letter, score, line, word_kinds in zip(
            compared.letters, sentence.scores, sentence.translations, kinds, strict=True
        ):
            rows.append([*first, letter, score, Written(line, bracketed(line, word_kinds))])
    title = (
        f"Sentence {chosen}"
        if chosen
        else "Sentences with the largest gains, then those with the largest losses, by "
        f"{compared.ranking.title}"
    )
    return Table(title=title, columns=columns, rows=rows, shared=2, on_page=on_page)


def make_cards(compared: ComparedSystems, details: WordDetails) -> TextBlock:
    """Write each sentence with its translations, its tree and its alignments, for a page.

    Words that differ are marked by colour and underlined: solid if the reference has the word,
    dashed if it does not.
    """
    cards = []
    for sentence in compared.sentences:
        words = details.by_line[sentence.line]
        caption = f"Line {sentence.line}: tree of the source"
        tree = ""
        if parse := words.tree:
            tree = picture(draw_svg([TreeDrawing("", parse.parents, parse)]), caption=caption)
        cards.append((sentence, tree, _translations(sentence, words, compared)))
    page = template(Path(__file__).parent, "cards.html")
    return TextBlock(html=page.render(marked=MARKED, parser=details.parser, cards=cards))


def _translations(
    sentence: ComparedSentence, words: SentenceWords, compared: ComparedSystems
) -> list[tuple[str, float, list[tuple[str, str]], list[str]]]:
    """List the letter, the score, the stretches and the aligned words of each translation."""
    source, translations = words_at(sentence.source, words.source_words), []
    places = zip(
        compared.letters,
        sentence.scores,
        sentence.translations,
        classify_all(sentence.translations, sentence.reference),
        words.attentions,
        strict=True,
    )
    for letter, score, line, kinds, attention in places:
        target = words_at(line, word_spans(line))
        pairs = [] if attention is None else best_pairs(attention)
        aligned = [f"{source[first]}–{target[second]}" for first, second in pairs]
        translations.append((letter, score, list(stretches(line, kinds)), aligned))
    return translations


def draw_boxes(compared: ComparedSystems) -> Drawing:
    """Draw a box of sentence scores for each system (Tukey, 1977), and each sentence by the scores
    of the first system and of the others (Liu & Sima'an, 2022, figure 3)."""
    drawing = new_figure(9, 3 + 0.2 * len(compared.systems))
    axes, points = drawing.subplots(1, 2)
    axes.boxplot(
        [system.sentences for system in compared.systems],
        orientation="horizontal",
        tick_labels=[system.name for system in compared.systems],
        showmeans=True,
        meanprops={"marker": "D"},
    )
    axes.invert_yaxis()
    axes.set_xlabel(f"{compared.ranking.title} of single sentences")
    first, *others = compared.systems
    for index, system in enumerate(others, 1):
        style = series_style(index) | {"markersize": 2, "alpha": 0.4, "label": system.name}
        points.plot(first.sentences, system.sentences, **style)
    points.axline((0, 0), slope=1, color=INK, linewidth=0.8)
    points.set(xlabel=f"{compared.ranking.title}, {first.name}", ylabel=compared.ranking.title)
    points.legend()
    return drawing
