"""The numbers that are worked out on the pages of docs/systems, each from its equation or its
signal."""

import re
from dataclasses import replace

import numpy as np
import pytest
import torch
from places import ROOT
from small import MONKEY, MONKEY_WORD_OF

from synmt.data.task_corpus import PARSING, tagged
from synmt.model.blocks.matrix_tree import tree_marginals
from synmt.model.variants.distance_transformer import log_locality
from synmt.model.variants.gcn import graph
from synmt.model.variants.latent_graph import LABELS
from synmt.model.variants.pascal import gaussian
from synmt.model.variants.tree_regularization import residues, split_scores
from synmt.syntax.arc_signals import arcs
from synmt.syntax.controls import Control
from synmt.syntax.feature_signals import PLACES as PLACES_IN_WORD
from synmt.syntax.feature_signals import SUBWORD, case_of, same_scene
from synmt.syntax.kinship import (
    KINDS,
    arcs_of_pairs,
    depth,
    kinship,
    label_paths,
    read_paths,
    signed_steps,
)
from synmt.syntax.parse import Arcs
from synmt.syntax.relations import KNOWN, UNIVERSAL_GROUPS
from synmt.syntax.signals import distance, parent_chain, parent_first, parent_middle
from synmt.syntax.trees import linearise, linearise_with_words

pytestmark = pytest.mark.journey

PAGES = {
    path.stem: path.read_text(encoding="utf-8") for path in (ROOT / "docs/systems").glob("*.md")
}
PIECES = ["▁The", "▁mon", "key", "▁eats", "▁a", "▁ban", "ana", "</s>"]
WITH_EOS = np.append(MONKEY_WORD_OF, -1)


def worked_rows():
    """Yield what the rows on the pages must say: page, first cell, values and their form."""
    steps = distance(MONKEY, WITH_EOS)
    middles, first = parent_middle(MONKEY, WITH_EOS), parent_first(MONKEY, WITH_EOS)[:7].tolist()
    densities = gaussian(torch.from_numpy(middles)[None], variance=1.0)[0]
    yield "pascal", "p_t", middles, "{:.1f}"
    yield "pascal", "D ▁The", densities[0], "{:.3f}"
    yield "pascal", "D ▁mon", densities[1], "{:.3f}"
    yield "lisa", "parent", [*first, "–"], "{}"
    yield "dbsa", "parent", [*parent_chain(MONKEY, WITH_EOS)[:7], "–"], "{}"
    for place, piece in ((0, "▁The"), (3, "▁eats"), (7, "</s>")):
        yield "deps-san", piece, steps[place], "{}"
    yield "deps-san", "D", gaussian(torch.zeros(1, 6), variance=1.0)[0, 0], "{:.3f}"
    factors = log_locality(torch.tensor([[2.0, 4, 3, 2, 0]]), 10.0).exp()[0]
    for word, place in (("The", 0), ("eats", 2), ("banana", 4)):
        yield "distance-transformer", word, factors[place].tolist(), "{:.3f}"
    yield "tree-regularization", "score", split_scores_of_five(), "{:.3f}"
    for place in (0, 3):
        shares = np.where(steps[place] <= 2, 1 / np.maximum(steps[place], 1), 0)
        yield "distance-mask", PIECES[place], shares / shares.sum(), "{:.3f}"
    kinds = kinship(MONKEY, WITH_EOS)
    for place in (5, 7):
        kin = sum(kinds[place] == KINDS.index(kind) for kind in ("self", "parent", "child"))
        yield "kinship-mask", PIECES[place], (1 + kin + (kinds[place] == SIBLING)) / 5, "{:.1f}"
    upward, downward = graph(MONKEY, WITH_EOS)
    yield "gcn", "▁The up", upward[0], "{:.2f}"
    yield "gcn", "▁eats down", downward[3], "{:.2f}"
    for kind in ("none", "left", "right"):
        tree, label = Control(kind).apply(MONKEY, b""), "parser" if kind == "none" else kind
        parents = enumerate(tree.parents.tolist())
        words = ["root" if word == up else MONKEY.words[up] for word, up in parents]
        yield "supervised-head", label, words, "{}"
        yield "supervised-head", label, [*parent_first(tree, WITH_EOS)[:7], "–"], "{}"
        yield "controls", label, words, "{}"
        yield "controls", label, parent_middle(tree, WITH_EOS), "{:.1f}"
    depths = depth(MONKEY, WITH_EOS)[:7]
    yield "depth-relative", "depth", [*depths, "–"], "{}"
    yield "depth-relative", "row", [*np.clip(depths - depths[0], -2, 2) + 2, 5], "{}"
    signed = signed_steps(MONKEY, WITH_EOS)[0, :7]
    yield "structural-positions", "s", [*signed, "–"], "{}"
    yield "structural-positions", "row", [*np.clip(signed, -2, 2) + 2, 5], "{}"
    yield "structural-depth", "depth", [*depths, "–"], "{}"
    numbers = arcs_of_pairs(MONKEY, WITH_EOS, names=None)
    for place in (1, 3, 7):
        yield "graph-relations", PIECES[place], numbers[place], "{}"
    paths = label_paths(MONKEY, np.arange(5), longest=8)
    for word in (0, 2, 4):
        read = read_paths(paths[word]).tolist()
        labels = [" ".join(arc_on_page(arc) for arc in path if arc) for path in read]
        yield "path-relations", MONKEY.words[word], labels, "{}"
    seen = same_scene(replace(MONKEY, features={"scenes": [*"1111_"]}), WITH_EOS)
    for place in (0, 5, 7):
        yield "scene-mask", PIECES[place], seen[place] / seen[place].sum(), "{:.3f}"
    parts = [PLACES_IN_WORD[part - 1] for part in SUBWORD.compute(MONKEY, WITH_EOS)[:-1]]
    relations = [MONKEY.relations[word] for word in MONKEY_WORD_OF]
    for page in ("tag-embedding", "syntax-infused"):
        yield page, "subword", [*parts, "EOS"], "{}"
        yield page, "relation", [*relations, "EOS"], "{}"
    cases = [case_of(MONKEY.words[word]) for word in MONKEY_WORD_OF]
    yield "syntax-infused", "case", [*cases, "EOS"], "{}"
    doubts = np.array([0.75, 0.25], np.float32)
    likely = Arcs(np.array([0, 0]), np.array([1, 2]), np.array([0, 0]), doubts, ("det",))
    for label, split in (("ldd", False), ("split", True)):
        table = arcs(UNIVERSAL_GROUPS, split=split).compute(replace(MONKEY, arcs=likely), WITH_EOS)
        yield "dependency-distribution", label, table[12, 0], "{:.2f}"
    two = torch.tensor([[0.0, 2.0], [0.0, 0.0]])
    for row, word in zip(marginals_of(two), ("monkey", "eats"), strict=True):
        yield "latent-tree", word, row, "{:.3f}"
    even = marginals_of(torch.zeros(8, 8), words=7)
    yield "tree-attention", "▁mon", even[1], "{:.3f}"
    yield "tree-attention", "</s>", [0.0] * 7 + [1.0], "{:.3f}"


SIBLING = KINDS.index("sibling")


def split_scores_of_five():
    states = torch.tensor([[[1.0, 0], [1, 1], [0, 1], [1, 0], [1, 1]]])
    return split_scores(residues(states), torch.tensor([[[2, 3, 2, 2, 1]]]))[0, 0, :4].tolist()


def arc_on_page(symbol):
    if symbol == 2 * (len(KNOWN) + 1) + 1:
        return "itself"
    direction, relation = divmod(symbol - 1, len(KNOWN) + 1)
    return KNOWN[relation] + direction * ".r"


def marginals_of(scores, words=None):
    real = torch.arange(len(scores)) < (words or len(scores))
    return tree_marginals(scores, torch.zeros(len(scores)), real).tolist()


@pytest.mark.parametrize(
    ("page", "label", "values", "form"), [pytest.param(*row, id=row[0]) for row in worked_rows()]
)
def test_a_row_of_numbers_on_a_page_is_that_of_its_equation(page, label, values, form):
    row = " ".join([label, *(form.format(value) for value in values)])
    assert row in re.sub(r"[ \n]+", " ", PAGES[page])


def worked_sentences():
    """Yield what sentences on the pages must say: page and words."""
    chain = parent_chain(MONKEY, WITH_EOS)[:7]
    teaching = [PIECES[place] for place in range(7) if chain[place] <= place]
    yield "dbsa", "Only {} and {} would".format(*(f"`{piece}`" for piece in teaching))
    yield "latent-graph", f"2D to {LABELS} labels"
    yield "tag-embedding", f"({len(KNOWN)}: those"
    tree = f"{tagged('The monkey eats a banana', PARSING)}    {linearise(MONKEY)}"
    yield "multi-task", " ".join(tree.split())
    yield "mixed", f"{linearise_with_words(MONKEY).text} Der Affe"


@pytest.mark.parametrize(("page", "words"), list(worked_sentences()))
def test_a_sentence_on_a_page_has_the_number_of_its_equation(page, words):
    assert words in " ".join(PAGES[page].split())
