"""The shipped recipes as a table: system, corpus, the paper's score, and whether the text is on
this machine."""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import takewhile
from pathlib import Path

from synmt.corpora.known import KNOWN_CORPORA
from synmt.corpora.resolve import find_corpus
from synmt.recipe.catalogue import shipped_recipes
from synmt.recipe.load import load_recipe
from synmt.recipe.schema import Recipe
from synmt.reporting.values import Table, count_column, text_column

_REPORTED = re.compile(
    r"reported (?P<score>\d+\.\d+)(?P<valid> validation)? BLEU(?P<less> below| lower)?"
    r"(?: on \S+ and (?P<second>\d+\.\d+))?"
)


def recipe_table(words: Iterable[str] = ()) -> Table:
    """List the shipped recipes whose name, system, corpus or comment contains every word, in the
    order of their names; case does not matter."""
    words, rows = [word.lower() for word in words], []
    for name, path in shipped_recipes().items():
        recipe, comment = load_recipe(path), _comment(path)
        system, corpus = _system(recipe), f"{recipe.corpus.name} {recipe.source}-{recipe.target}"
        about = " ".join((name, system, corpus, comment)).lower()
        if all(word in about for word in words):
            pairs = KNOWN_CORPORA[recipe.corpus.name or ""].counts.get("train")
            rows.append(
                [
                    name,
                    system,
                    corpus,
                    pairs,
                    _reported(comment) or None,
                    "local"
                    if find_corpus(recipe.corpus, recipe.source, recipe.target)
                    else "missing",
                ]
            )
    return Table(
        columns=[
            *(text_column(title) for title in ("recipe", "system", "corpus")),
            count_column("pairs"),
            text_column(
                "reported BLEU",
                about="on the paper's test sets; valid: on its validation text; −: difference from "
                "the recipe it changes",
            ),
            text_column("text", about="missing: `synmt train` downloads or builds it"),
        ],
        rows=rows,
    )


def _comment(path: Path) -> str:
    """Join the lines before the first key of a recipe."""
    lines = takewhile(
        lambda line: line.startswith("#"), path.read_text(encoding="utf-8").splitlines()
    )
    return " ".join(line.removeprefix("#").strip() for line in lines)


def _system(recipe: Recipe) -> str:
    """Name the variants of a recipe, or the plain model, with tasks and control."""
    tasks, parser = recipe.tasks, recipe.parser
    names = [variant.name for variant in recipe.syntax.variants] or [recipe.model.architecture]
    if tasks.parsing != "none":
        names.append("multi-task")
    if tasks.mixed != "none":
        names.append("parse2seq" if tasks.mixed_only else "mixed encoder")
    control = "rewired" if parser.rewire else ""
    if parser.control != "none":
        control = parser.control
    return " + ".join(dict.fromkeys(names)) + (f" ({control})" if control else "")


def _reported(comment: str) -> str:
    """Find the paper's BLEU in the comment of a recipe; empty if there is none."""
    match = _REPORTED.search(comment)
    if match is None:
        return ""
    sign, second = "−" if match["less"] else "", f", {match['second']}" if match["second"] else ""
    return sign + match["score"] + second + (" valid" if match["valid"] else "")
