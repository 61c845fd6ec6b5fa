"""Group sentences by their dependency trees: by depth, by distances to parents, by relations.

    depth      = max_i (arcs from the root down to i)
    distance_i = | place(i) - place(parent(i)) |

Punctuation does not count: place numbers the other words, because a comma between two words does
not make them harder to join. The distances are those of Liu (2008), whose mean over a sentence also
leaves out the root. A word whose parent is punctuation, which is always a parser error, has no
distance.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from synmt.analysis.groups.grouping import (
    SIDE_NAMES,
    Edges,
    Grouping,
    by_value,
    quarters,
)
from synmt.analysis.groups.results import FEW_SENTENCES, NAMED_GROUPS
from synmt.analysis.inputs import (
    file_language,
    find_parser,
    name_language,
    name_parser,
    parse_lines,
)
from synmt.analysis.options import GroupOptions, WordOptions
from synmt.analysis.trees.attachment import not_punctuation
from synmt.arrays import IntArray, Side
from synmt.errors import SynmtError, UsageError, listed
from synmt.recipe.data import TextRecipe
from synmt.syntax.parse import Parse
from synmt.syntax.relations import base_name
from synmt.syntax.trees import ancestors

if TYPE_CHECKING:
    from synmt.parsing.parser import StanzaParser
    from synmt.run_folder import Run

_logger = logging.getLogger(__name__)


def group_by_trees(
    options: GroupOptions, parses: Sequence[Parse], *, side: Side, edges: Edges | None
) -> list[Grouping]:
    """Make the groupings by trees that the options choose."""
    chosen = [DEPTH] * options.by_depth + [MEAN_DISTANCE, LONGEST_DISTANCE] * options.by_distance
    groupings = [by_measure(measure, parses, side=side, edges=edges) for measure in chosen]
    if options.by_relation:
        groupings.append(without_rare(by_relation(parses, side=side)))
    return groupings


@dataclass(frozen=True)
class TreeMeasure:
    """A number that a tree has: its name, its unit, what it is, and the decimals of quarters of the
    data."""

    name: str
    unit: str
    measure: Callable[[Parse], float]
    about: str
    decimals: int = 0


def by_measure(
    measure: TreeMeasure,
    parses: Sequence[Parse],
    *,
    side: Side = "source",
    edges: Edges | None = None,
) -> Grouping:
    """Group sentences by a number of their trees, by default in quarters of the data."""
    values = np.array([measure.measure(parse) for parse in parses])  # (N,)
    edges = edges or quarters(values, decimals=measure.decimals)
    name = f"{SIDE_NAMES[side]} {measure.name}"
    return by_value(name, measure.unit, values, edges, sizes=_lengths(parses), about=measure.about)


def by_relation(parses: Sequence[Parse], *, side: Side = "source") -> Grouping:
    """Group sentences by the relations in their trees, the most frequent first; the groups overlap.

    A relation includes its subtypes. `root` is left out because every sentence has it.
    """
    members = {}
    for number, parse in enumerate(parses):
        for relation in {*parse.relations, *map(base_name, parse.relations)}:
            members.setdefault(relation, np.zeros(len(parses), dtype=np.bool_))[number] = (
                True  # (N,)
            )
    members.pop("root", None)
    names = sorted(members, key=lambda name: (-int(members[name].sum()), name))
    matrix = np.array([members[name] for name in names]).reshape(len(names), len(parses))  # (G, N)
    about = (
        "relation: sentences that contain it or one of its subtypes (nsubj:pass is also nsubj); "
        "groups overlap; one "
        "that most sentences have says little about the relation: --words relation counts its words"
    )
    return Grouping(
        f"{SIDE_NAMES[side]} relation", "", names, matrix, _lengths(parses), about=about
    )


def depth(parse: Parse) -> int:
    """Count the arcs from the root to the deepest word; 0 for at most one word."""
    return int(word_depths(parse)[not_punctuation(parse)].max(initial=0))


def word_depths(parse: Parse) -> IntArray:
    """Count the arcs from the root to each word: (W,)."""
    return ancestors(parse.parents).sum(1) - 1


def longest_distance(parse: Parse) -> int:
    """Return the longest distance in a sentence; 0 if it has no arc."""
    return int(distances(parse).max(initial=0))


def mean_distance(parse: Parse) -> float:
    """Return the mean distance in a sentence; 0 if it has no arc."""
    lengths = distances(parse)
    return float(lengths.mean()) if len(lengths) else 0.0


def distances(parse: Parse) -> IntArray:
    """Measure the arcs between words other than punctuation: A arcs, (A,)."""
    lengths = word_distances(parse)
    return lengths[lengths > 0]


def word_distances(parse: Parse) -> IntArray:
    """Measure the distance of each word to its parent: (W,), 0 for the root, punctuation and words
    below it."""
    words = not_punctuation(parse)  # (W,)
    places = np.cumsum(words)  # (W,)
    arcs = words & words[parse.parents]  # (W,)
    return np.where(arcs, np.abs(places - places[parse.parents]), 0)


_DISTANCE = "distance: words from a word to its parent, without the root and without punctuation"
DEPTH = TreeMeasure(
    "tree depth",
    "arcs",
    depth,
    "depth: number of arcs from the root to the deepest word, without punctuation",
)
MEAN_DISTANCE = TreeMeasure(
    "mean distance to the parent", "words", mean_distance, _DISTANCE, decimals=1
)
LONGEST_DISTANCE = TreeMeasure(
    "longest distance to the parent", "words", longest_distance, _DISTANCE
)


def without_rare(grouping: Grouping, fewest: int = FEW_SENTENCES) -> Grouping:
    """Leave out groups of fewer sentences and log their names; if all groups are that rare, keep
    all."""
    frequent = grouping.members.sum(1) >= fewest  # (G,)
    if frequent.all() or not frequent.any():
        return grouping
    names = [name for name, keep in zip(grouping.names, frequent, strict=True) if keep]
    rare = [name for name in grouping.names if name not in names]
    _logger.info(
        "relations in fewer than %d sentences are left out: %s", fewest, listed(rare, NAMED_GROUPS)
    )
    return replace(grouping, names=names, members=grouping.members[frequent])


def _lengths(parses: Sequence[Parse]) -> IntArray:
    return np.array([len(parse) for parse in parses], dtype=np.int64)


def parse_side(
    options: GroupOptions | WordOptions,
    run: Run | None,
    lines: Sequence[str],
    *,
    side: Side,
    numbers: Sequence[int] = (),
) -> tuple[list[Parse], str]:
    """Parse lines of one side of a run's test set, or of files, and describe the trees.

    numbers: of the lines, for warnings; by default from 1.
    """
    file = options.source if side == "source" else options.references
    parser = find_side_parser(options.parser, run, side, file)
    trees = name_parser(parser)
    if run and side == "source":
        trees += _describe_reading(run, other_model=options.parser is not None)
    _logger.info("trees of the %s: %s", side, trees)
    return parse_lines(parser, lines, numbers), trees


def find_side_parser(
    model: str | None,
    run: Run | None,
    side: Side,
    file: Path | None,
    *,
    instead: str = "give the trees by `--parses FILE.conllu`",
    raw: bool = False,
) -> StanzaParser:
    """Find the parser with the model that the user named, else that of the run, of its recipe, or
    of a file's language.

    file: of the side; its name tells the language if there is no run.
    instead: what users may do without a parser.
    raw: whether it parses raw text although the run tokenizes it.
    """
    from synmt.decode.tree_provider import recorded_parser
    from synmt.parsing.parser import StanzaParser

    identity = run.info().get("parser") if run and not raw else None
    if model is None and side == "source" and identity is not None:
        return recorded_parser(identity, "auto", arcs=False)
    try:
        if run:
            recipe = run.recipe()
            if raw:
                recipe = recipe.model_copy(update={"text": TextRecipe()})
            return find_parser(recipe, side, model, to="parse")
        language = file_language(file) if side == "source" else name_language(file)
        if language is None:
            do = "End the name of the references in it, such as `test.de`"
            raise UsageError("the language of the target is unknown", do=do)
        return StanzaParser(language, model=model or "auto", download=True)
    except SynmtError as error:
        is_known = run or isinstance(error, UsageError)
        do = error.do if is_known else "Name a model with `--parser`"
        raise error.with_(do=f"{do}, or {instead}") from None


def _describe_reading(run: Run, *, other_model: bool) -> str:
    """Note where the model reads other source trees than those of the parser."""
    from synmt.syntax.reading import reading_of
    from synmt.training.tree_sources import tree_requirements

    recipe = run.recipe()
    if not tree_requirements(recipe, run.folder / "code")["source"].to_run:
        return ""
    if run.info().get("parser") is None:
        what = "gold trees" if recipe.parser.control == "gold" else "trees from files"
        _logger.info(
            "the model was trained on %s, but these trees are the parser's; to use the model's, "
            "give them by "
            "`--parses FILE.conllu`",
            what,
        )
        return ""
    control = reading_of((), recipe.parser).control
    return "" if other_model or control.idle else f"; {run.name} reads {control.name} trees instead"
