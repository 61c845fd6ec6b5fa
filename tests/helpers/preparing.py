"""Small parallel texts with trees, and the prepared corpora that are made of them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from resolving import resolved

from synmt.corpora.resolve import Corpus
from synmt.data.annotate import annotate, annotation_name
from synmt.data.corpus import Example, PreparedCorpus, Split
from synmt.data.prepare import prepare
from synmt.recipe.load import check_recipe
from synmt.recipe.schema import Recipe
from synmt.syntax.conllu import format_conllu
from synmt.syntax.parse import Parse

Pairs = Sequence[tuple[str, str]]

PAIRS = [
    ("The monkey eats a banana.", "Der Affe isst eine Banane."),
    ("The girl sees the monkey.", "Das Mädchen sieht den Affen."),
    ("", "Nichts."),
    ("Bananas!", "Bananen!"),
    ("The monkey eats a banana.", "Der Affe isst eine Banane."),
    ("One two three four five six seven eight nine ten.", "Zehn."),
    ("A girl eats.", "Ein Mädchen isst."),
    ("Zero\u200bwidth \u2028 monkey", "Affe 😀"),
    ("The boy sees a tree.", " "),
    ("The boy sees a tree.", "Der Junge sieht einen Baum."),
]
VALID = [("The girl eats.", "Das Mädchen isst."), ("Monkey.", ""), ("A tree.", "Ein Baum.")]
CHAIN = {"parser": "chain"}

_NAMES = (
    "monkey banana apple tree girl boy river stone bird house garden letter window farmer teacher"
)
_VERBS = "eats sees takes likes finds wants throws washes counts paints brings carries"
LINES = [
    f"The {a} {verb} a {b}."
    for a, verb, b in product(_NAMES.split(), _VERBS.split(), _NAMES.split())
    if (a < b) == (len(verb) > 4)
]
ODD_TEXTS = [
    "The monkey eats a banana.",
    "  two  blanks  ",
    "ﬁne ½ cup, ＦＵＬＬ width",
    "e\u0301te\u0301 soft\u00adhyphen",
    "zero\u200bwidth \u200b \u200bblank",
    "😀 a 👩‍👩‍👧 monkey😀eats",
    "مرحبا بالعالم",
    "bell\x07 tab\there \x00nul",
    "two\u2028lines\x85next",
    "<s> <unk> </s> <pad> <0x41>",
    "日本語の文です。",
    "don't can't, (it's) -- \"so\"!",
]


def recipe_of(**sections: Any) -> Recipe:
    """Make a recipe with a small vocabulary."""
    languages = {"name": "small", "source": "en", "target": "de", "corpus": {"name": "controlled"}}
    usual = {"vocabulary": {"size": 600, "kind": "unigram"}, "model": {"embeddings": "separate"}}
    return check_recipe({**languages, **usual, **sections}, where="test")


def corpus_of(folder: Path, train: Pairs = PAIRS, valid: Pairs = VALID) -> Corpus:
    """Write the texts of a corpus."""
    folder.mkdir(parents=True, exist_ok=True)
    for split, pairs in {"train": train, "valid": valid}.items():
        for side, language in enumerate(("en", "de")):
            text = "".join(f"{pair[side]}\n" for pair in pairs)
            (folder / f"{split}.{language}").write_text(text, encoding="utf-8")
    return resolved(folder=folder)


def prepared(folder: Path, corpus: Corpus | None = None, **sections: Any) -> PreparedCorpus:
    """Prepare a corpus in a folder."""
    corpus = corpus or corpus_of(folder / "text")
    prepare(recipe_of(**sections), corpus, folder / "prepared")
    return PreparedCorpus.open(folder / "prepared")


def tree_of(line: str) -> Parse:
    """Hang every word on the one before it."""
    found = [match.span() for match in re.finditer(r"\w+|[^\w\s\x07]", line)]
    count, spans = len(found), np.array(found).reshape(-1, 2)
    return Parse(
        words=[line[start:end] for start, end in found],
        spans=spans,
        parents=np.maximum(np.arange(count) - 1, 0),
        relations=["root", *["next"] * (count - 1)][:count],
        tags=["X"] * count,
    )


def write_trees(path: Path, lines: Sequence[str], trees: Sequence[Parse]) -> Path:
    """Write the trees of lines as CoNLL-U."""
    numbered = enumerate(zip(trees, lines, strict=True), start=1)
    blocks = (format_conllu(tree, line, number) for number, (tree, line) in numbered)
    path.write_text("".join(blocks), encoding="utf-8")
    return path


def trees_for(corpus: Corpus, folder: Path) -> dict[str, Path]:
    """Write chains as trees of the source of both splits."""
    paths = {}
    for split in ("train", "valid"):
        lines = corpus.splits()[split].source.read_bytes().decode().split("\n")[:-1]
        path = folder / f"{split}.trees.conllu"
        paths[split] = write_trees(path, lines, [tree_of(line) for line in lines])
    return paths


def annotated(
    folder: Path, train: Pairs = PAIRS, valid: Pairs = VALID, **sections: Any
) -> tuple[PreparedCorpus, str]:
    """Prepare a corpus with chains as trees of the source; gives the name of the annotation too."""
    corpus = corpus_of(folder / "text", train, valid)
    data = prepared(folder, corpus, **sections)
    annotate(data.folder, corpus, trees_for(corpus, folder), parser=CHAIN)
    return data, annotation_name("source", CHAIN)


def rows_of(split: Split) -> list[Example]:
    """Read all rows of a split."""
    return split.rows(range(len(split)))
