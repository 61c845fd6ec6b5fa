"""The shipped recipes as a table: system, corpus, the paper's score, and whether the text is on
this machine."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path

from synmt.corpora.resolve import missing_files, stated_counts
from synmt.recipe.catalogue import shipped_recipes
from synmt.recipe.load import load_recipe
from synmt.recipe.schema import Recipe
from synmt.reporting.values import Table, count_column, text_column

_REPORTED = re.compile(
    r"reported (?P<score>\d+\.\d+)(?P<valid> validation)? BLEU(?P<less> below| lower)?"
    r"(?: on \S+ and (?P<second>\d+\.\d+))?"
)


@dataclass(frozen=True)
class RecipeEntry:
    """What the list says about a shipped recipe.

    system: the variants by their names in recipes, or the plain model.
    pairs: sentence pairs of the training text, as the paper counts them; None if it does not.
    reported: BLEU in the paper, on the test sets or (valid) on the validation text; empty if there
        is none.
    missing: names of the files that the corpus lacks on this machine.
    comment: the first lines of the recipe, which say what it is.
    """

    name: str
    system: str
    corpus: str
    pairs: int | None
    reported: str
    missing: tuple[str, ...]
    comment: str

    def matches(self, words: Iterable[str]) -> bool:
        """Check whether every word is part of the name, the system, the corpus or the comment; case
        does not matter."""
        text = " ".join((self.name, self.system, self.corpus, self.comment)).lower()
        return all(word.lower() in text for word in words)


def recipe_table(entries: Iterable[RecipeEntry]) -> Table:
    """Make the table of a list of recipes."""
    reported = (
        "on the paper's test sets; valid: on its validation text; −: difference from the "
        "recipe it changes"
    )
    text = "local, if it is on this machine; if it is missing, `synmt train` downloads or builds it"
    columns = [
        *(text_column(name) for name in ("recipe", "system", "corpus")),
        count_column("pairs"),
        text_column("reported BLEU", about=reported),
        text_column("text", about=text),
    ]
    rows = [
        [
            entry.name,
            entry.system,
            entry.corpus,
            entry.pairs,
            entry.reported or None,
            "missing" if entry.missing else "local",
        ]
        for entry in entries
    ]
    return Table(columns=columns, rows=rows)


def list_recipes(words: Iterable[str] = ()) -> list[RecipeEntry]:
    """List the shipped recipes that match all words, in the order of their names."""
    words = list(words)
    entries = (_entry(name, path) for name, path in shipped_recipes().items())
    return [entry for entry in entries if entry.matches(words)]


def _entry(name: str, path: Path) -> RecipeEntry:
    recipe, comment = load_recipe(path), _comment(path)
    return RecipeEntry(
        name,
        _system(recipe),
        f"{recipe.corpus.name} {recipe.source}-{recipe.target}",
        _pairs(recipe),
        _reported(comment),
        tuple(missing_files(recipe.corpus, recipe.source, recipe.target)),
        comment,
    )


def _comment(path: Path) -> str:
    """Join the lines before the first key of a recipe."""
    lines = path.read_text(encoding="utf-8").splitlines()
    return " ".join(
        line.removeprefix("#").strip()
        for line in takewhile(lambda line: line.startswith("#"), lines)
    )


def _system(recipe: Recipe) -> str:
    names = [variant.name for variant in recipe.syntax.variants] or [recipe.model.architecture]
    if recipe.tasks.parsing != "none":
        names.append("multi-task")
    if recipe.tasks.mixed != "none":
        names.append("parse2seq" if recipe.tasks.mixed_only else "mixed encoder")
    control = (
        recipe.parser.control
        if recipe.parser.control != "none"
        else "rewired"
        if recipe.parser.rewire
        else ""
    )
    return " + ".join(dict.fromkeys(names)) + (f" ({control})" if control else "")


def _reported(comment: str) -> str:
    found = _REPORTED.search(comment)
    if found is None:
        return ""
    scores = f"−{found['score']}" if found["less"] else found["score"]
    return (
        scores
        + (f", {found['second']}" if found["second"] else "")
        + (" valid" if found["valid"] else "")
    )


def _pairs(recipe: Recipe) -> int | None:
    return stated_counts(recipe.corpus).get("train")
