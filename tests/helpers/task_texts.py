"""A text of three pairs with trees, for systems that learn from linearised trees."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import preparing
from tiny import write_recipe

from synmt.corpora.resolve import Corpus
from synmt.recipe.load import load_recipe
from synmt.recipe.schema import Recipe

PAIRS = [("the boy sleeps", "der Junge schläft"), ("he eats", "er isst"), ("a b c d e f", "x")]
TREES = """\
1\tthe\t_\t_\t_\t_\t2\tdet\t_\t_
2\tboy\t_\t_\t_\t_\t3\tnsubj\t_\t_
3\tsleeps\t_\t_\t_\t_\t0\troot\t_\t_

1\the\t_\t_\t_\t_\t2\tnsubj\t_\t_
2\teats\t_\t_\t_\t_\t0\troot\t_\t_

1\ta\t_\t_\t_\t_\t0\troot\t_\t_
2\tb\t_\t_\t_\t_\t1\tdep\t_\t_
3\tc\t_\t_\t_\t_\t2\tdep\t_\t_
4\td\t_\t_\t_\t_\t3\tdep\t_\t_
5\te\t_\t_\t_\t_\t4\tdep\t_\t_
6\tf\t_\t_\t_\t_\t5\tdep\t_\t_

"""


def corpus_of(folder: Path) -> Corpus:
    """Write the text, and its trees as `trees.conllu`."""
    (folder / "trees.conllu").write_text(TREES, encoding="utf-8")
    return preparing.corpus_of(folder, PAIRS, PAIRS[:1])


def recipe_of(folder: Path, **sections: Any) -> Recipe:
    """Write and read the recipe of a multi-task system."""
    (folder / "data").mkdir(exist_ok=True)
    sections = {"tasks": {"parsing": "dependencies"}, "syntax": {"variants": []}, **sections}
    return load_recipe(write_recipe(folder / "multi.yaml", folder, **sections))


def lines(path: Path) -> list[str]:
    """Read a text."""
    return path.read_text(encoding="utf-8").splitlines()
