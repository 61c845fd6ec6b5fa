"""Trees and alignments of the sentences that `synmt analyze --compare` shows; what cannot be had is left out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from synmt.analysis.inputs import file_language, find_parser, name_parser, parse_lines
from synmt.cli import console
from synmt.errors import SynmtError

if TYPE_CHECKING:
    from synmt.analysis.compare.page import About, Shown
    from synmt.analysis.compare.sentences import ComparedSentence
    from synmt.arrays import DoubleArray, IntArray
    from synmt.decode.translator import Translator
    from synmt.parsing.parser import StanzaParser
    from synmt.recipe.schema import Recipe
    from synmt.syntax.parse import Parse


@dataclass(frozen=True, eq=False)
class Words:
    """What is known of the words of some sentences, by their line."""

    about: About
    by_line: dict[int, Shown]

    def shown(self, one: ComparedSentence) -> Shown:
        """Give a sentence as the page shows it."""
        return self.by_line[one.line]

    def values(self, one: ComparedSentence) -> dict[str, Any]:
        """Give the words, the tree and the alignments of a sentence as plain values; what is missing is None."""
        shown = self.by_line[one.line]
        tree = shown.tree
        parents = {"parents": tree.parents.tolist(), "relations": tree.relations, "tags": tree.tags} if tree else None
        return {
            "source_words": shown.source_words.tolist(),
            "tree": parents,
            "alignment_a": _pairs(shown.attention_a),
            "alignment_b": _pairs(shown.attention_b),
        }


def find_words(
    sentences: Sequence[ComparedSentence],
    runs: tuple[Path | None, Path | None],
    source: Path | None,
    parser: str | None,
) -> Words:
    """Parse the sources, and align the translations of runs.

    runs: the folders of A and B; None for a file.
    source: the file that the source comes from, where that is no run.
    parser: the model that was named.
    """
    from synmt.analysis.compare.page import About, Shown
    from synmt.analysis.compare.word_difference import word_spans

    lines = [one.source for one in sentences]
    translators, recipe = _translators(runs)
    about = About(recipe.source, recipe.target) if recipe else About()
    parses, name = _parsed(lines, translators, recipe, source, parser) if any(lines) else (None, "")
    spans = [word_spans(line) for line in lines]
    if parses:
        spans = [parse.spans if len(parse) else words for parse, words in zip(parses, spans, strict=True)]
    attention = [
        _attention(translator, lines, [one.a if number == 0 else one.b for one in sentences], spans)
        for number, translator in enumerate(translators)
    ]
    shown = {
        one.line: Shown(one, parses[index] if parses else None, spans[index], attention[0][index], attention[1][index])
        for index, one in enumerate(sentences)
    }
    return Words(replace(about, parser=name), shown)


def _translators(runs: Sequence[Path | None]) -> tuple[list[Translator | None], Recipe | None]:
    """Load the runs, and give the recipe of the last one; alignments of one that cannot be loaded are left out."""
    from synmt.decode.translator import Translator
    from synmt.run import find_run

    found: list[Translator | None] = []
    recipe = None
    for folder in runs:
        translator = None
        if folder is not None:
            opened = find_run(folder)
            recipe = opened.recipe()
            try:
                translator = Translator.load(opened, remark=console.warn)
            except SynmtError as error:
                console.warn(f"{opened.name} is not aligned: {error}")
        found.append(translator)
    return found, recipe


def _parsed(
    lines: list[str],
    translators: Sequence[Translator | None],
    recipe: Recipe | None,
    source: Path | None,
    named: str | None,
) -> tuple[list[Parse] | None, str]:
    """Parse sources, and name the parser; without one that serves the language, say so and go on without trees."""
    try:
        parser = _parser(translators, recipe, source, named)
        return parse_lines(parser, lines), name_parser(parser)
    except SynmtError as error:
        if named:
            raise
        console.remark(f"no trees of the source: {error}")
        return None, ""


def _parser(
    translators: Sequence[Translator | None], recipe: Recipe | None, source: Path | None, named: str | None
) -> StanzaParser:
    """Find the parser that was named, else one that a run reads, else the recipe's; of files, by their language."""
    from synmt.parsing.parser import StanzaParser

    if recipe is None:
        return StanzaParser(file_language(source), model=named or "compact")
    own = [one for one in translators if one and one.reads_trees and one.parser_identity is not None]
    return own[-1].parser if own and named is None else find_parser(recipe, "source", named, to="parse")


def _attention(
    translator: Translator | None, sources: list[str], targets: list[str], source_words: list[IntArray]
) -> list[DoubleArray | None]:
    from synmt.analysis.compare.aligned import word_attention
    from synmt.analysis.compare.word_difference import word_spans

    nothing: list[DoubleArray | None] = [None] * len(sources)
    if translator is None:
        return nothing
    try:
        return word_attention(translator, sources, targets, source_words, [word_spans(line) for line in targets])
    except SynmtError as error:
        # as where the run does not say which parser makes the trees that it reads
        console.remark(f"without one of the alignments: {error}")
        return nothing


def _pairs(attention: DoubleArray | None) -> list[tuple[int, int]] | None:
    from synmt.decode.alignment import best_pairs

    return None if attention is None else best_pairs(attention)
