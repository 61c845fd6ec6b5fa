"""The pages of docs/systems: options, recipe lines, links, figures, and the numbers that are worked
out on them."""

import inspect
import math
import re
from dataclasses import replace
from itertools import product
from typing import Any, get_args, get_origin, get_type_hints

import numpy as np
import pytest
import torch
import typer
from enumerating import all_trees
from places import ROOT
from small import MONKEY, MONKEY_WORD_OF

import synmt.model.variants
from synmt import cli
from synmt.data.tasks import PARSING, tagged
from synmt.model.blocks.matrix_tree import tree_marginals
from synmt.model.build import build, variant_class, variant_names
from synmt.model.positions import alibi_slopes
from synmt.model.variants.distance_transformer import log_locality
from synmt.model.variants.gcn import GraphLayer, graph
from synmt.model.variants.latent_graph import LABELS
from synmt.model.variants.tree_regularization import residues, split_scores
from synmt.recipe.data import ParserRecipe, TasksRecipe
from synmt.recipe.load import check_recipe, load_recipe
from synmt.recipe.model import ModelRecipe
from synmt.recipe.schema import Recipe
from synmt.recipe.yaml_text import load_yaml, parse_yaml_value
from synmt.syntax.arc_signals import arcs, tree_arcs, uniform_arcs
from synmt.syntax.constituent_signals import merges
from synmt.syntax.controls import Control
from synmt.syntax.feature_signals import PLACES as PLACES_IN_WORD
from synmt.syntax.feature_signals import SUBWORD, case_of
from synmt.syntax.kinship import edge_kinds
from synmt.syntax.parse import Arcs
from synmt.syntax.paths import label_paths, read_paths
from synmt.syntax.relations import KNOWN, UNIVERSAL_GROUPS
from synmt.syntax.scenes import same_scene
from synmt.syntax.signals import distance, parent_chain, parent_first, parent_middle
from synmt.syntax.trees import linearise, linearise_with_words
from synmt.training.tree_sources.requirements import tree_requirements

pytestmark = pytest.mark.journey

TEXTS = {
    path: path.read_text(encoding="utf-8")
    for path in [*(ROOT / "docs").rglob("*.md"), ROOT / "README.md"]
}
SYSTEMS = ROOT / "docs" / "systems"
PAGES = {
    path.stem: text
    for path, text in TEXTS.items()
    if path.parent == SYSTEMS and path.stem != "README"
}
RECIPES = sorted((ROOT / "recipes").rglob("*.yaml"))
LEAST = {"name": "page", "source": "en", "target": "de", "corpus": {"name": "controlled"}}
SECTIONS = [
    "The equation",
    "Words and pieces",
    "What it needs",
    "Paper",
    "Recipe",
    "What the paper reports",
    "Released code, and what was left open",
    "What we measured",
    "Look inside",
]
PIECES = ["▁The", "▁mon", "key", "▁eats", "▁a", "▁ban", "ana", "</s>"]
PLACES = list(range(8))
NEWER_PARTS = {"positions": "sinusoid", "norm_kind": "layer", "feed_forward": "relu"}
"""Keys of a model, with the values of the published Transformer."""
WITH_EOS = np.append(MONKEY_WORD_OF, -1)


def page_name(variant):
    return variant.rpartition(".")[2].replace("_", "-")


NO_FIGURES = {
    "controls",
    "depth-relative",
    "distance-mask",
    "distance-transformer",
    "graph-relations",
    "kinship-mask",
    "scene-mask",
    "se-sd",
    "structural-depth",
    "structural-positions",
    "supervised-head",
    "syntax-infused",
    "transformer",
    "tree-attention",
    "tree-lstm",
    "tree-planting",
    "tree-regularization",
}
"""Pages of what no paper reports a score of translation for."""

DOCUMENTED = [name for name in variant_names() if page_name(name) in PAGES]
"""Variants with a page; a new one needs none."""


def page_of(variant):
    return PAGES[page_name(variant)]


def section(text, title):
    return re.split(rf"^## {title}$", text, flags=re.MULTILINE)[1].split("\n## ")[0]


def table_rows(text):
    """Cells of the rows of all tables; a bar inside a cell is escaped."""
    lines = [line.strip() for line in text.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines]


def defaults_on(text):
    return {row[0].strip("`"): row[2].strip("`") for row in table_rows(section(text, "Recipe"))}


@pytest.mark.parametrize("name", DOCUMENTED)
def test_the_page_of_a_variant_names_every_option_with_its_default(name):
    text, kind = page_of(name), variant_class(name)
    found = defaults_on(text)
    options = [
        p
        for p in inspect.signature(kind).parameters.values()
        if p.kind is inspect.Parameter.KEYWORD_ONLY
    ]
    expected = {option.name: option.default for option in options} | {"layers": kind.default_layers}
    if kind.edits_attention():
        expected["heads"] = kind.default_heads
    if kind.learns:
        expected["loss_weight"] = kind.loss_weight
    given = {option: parse_yaml_value(cell) for option, cell in found.items() if option in expected}
    assert given == {
        option: list(value) if isinstance(value, tuple) else value
        for option, value in expected.items()
    }
    assert found.keys() - expected.keys() <= {"option", "---", "side", "loss_steps"}


@pytest.mark.parametrize("name", DOCUMENTED)
def test_the_page_of_a_variant_names_every_choice_of_an_option(name):
    hints = get_type_hints(variant_class(name).__init__)
    rows = {
        row[0].strip("`"): " ".join(row) for row in table_rows(section(page_of(name), "Recipe"))
    }
    for option, hint in hints.items():
        for kind in (hint, *get_args(hint)):
            choices = get_args(kind) if str(get_origin(kind)).endswith("Literal") else ()
            for choice in choices:
                assert f"`{choice}`" in rows[option]


def test_the_pages_of_what_is_no_variant_give_the_recipes_own_defaults():
    sections = {
        "lstm": ModelRecipe.model_validate({"architecture": "lstm"}),
        "transformer": ModelRecipe.model_validate({}),
        "controls": ParserRecipe(),
        "multi-task": TasksRecipe(),
        "mixed": TasksRecipe(),
    }
    for page, values in sections.items():
        found = {key.removeprefix("tasks."): cell for key, cell in defaults_on(PAGES[page]).items()}
        found = {
            key: parse_yaml_value(cell)
            for key, cell in found.items()
            if key in type(values).model_fields
        }
        assert found
        assert found == {key: getattr(values, key) for key in found}


@pytest.mark.parametrize("page", sorted(PAGES.keys() - {"controls"}))
def test_every_page_answers_the_same_questions_in_the_same_order(page):
    assert re.findall(r"^## (.*)$", PAGES[page], flags=re.MULTILINE) == SECTIONS


def test_every_page_is_in_the_index_and_every_variant_of_a_paper_has_one():
    linked = set(re.findall(r"\]\(([a-z-]+)\.md[)#]", TEXTS[SYSTEMS / "README.md"]))
    assert linked == PAGES.keys()
    listed = re.findall(r"^(\w+)  +\S", synmt.model.variants.__doc__, flags=re.MULTILINE)[1:]
    assert set(listed) == set(DOCUMENTED)


def slug(heading):
    """As GitHub makes the anchor of a heading."""
    return re.sub(r"[^\w\- ]", "", heading.replace("`", "").lower()).replace(" ", "-")


@pytest.mark.parametrize("path", TEXTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_relative_link_leads_somewhere(path):
    for target in re.findall(r"\]\((?!https?:)([^)\s]+)\)", TEXTS[path]):
        file, _, anchor = target.partition("#")
        there = (path.parent / file).resolve() if file else path
        assert there.exists(), target
        if anchor:
            headings = re.findall(r"^#+ (.*)$", TEXTS[there], flags=re.MULTILINE)
            assert anchor in [slug(heading) for heading in headings], target


@pytest.mark.parametrize(
    "path", [path for path in TEXTS if path.parent == SYSTEMS], ids=lambda path: path.stem
)
def test_every_option_of_a_command_on_a_page_is_one(path):
    commands: Any = vars(typer.main.get_command(cli.app))["commands"].values()
    options = {
        name for command in commands for parameter in command.params for name in parameter.opts
    }
    assert set(re.findall(r"(?<=[ `])--[a-z][a-z-]*", TEXTS[path])) <= options


def expanded(pattern):
    """All spellings of a name with {one,or,another} in it."""
    parts = [part.split(",") for part in re.split(r"[{}]", pattern)]
    return ["".join(parts) for parts in product(*parts)]


def named_recipes(text):
    """The shipped recipes that a text names, each name with the recipes that it means."""
    names = re.findall(r"recipes/[\w./*{},!\[\]-]+?\.yaml", text)
    return {name: set(ROOT.glob(name)) for pattern in names for name in expanded(pattern)}


@pytest.mark.parametrize("path", TEXTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_recipe_that_is_named_is_shipped(path):
    missing = [name for name, found in named_recipes(TEXTS[path]).items() if not found]
    assert not missing


def pages_about(recipe: Recipe):
    """The pages of the systems that a recipe puts together."""
    yield from (page_name(variant.name) for variant in recipe.syntax.variants)
    if recipe.tasks.parsing != "none":
        yield "multi-task"
    if recipe.tasks.mixed != "none":
        yield "mixed"
    if recipe.parser.control != "none" or recipe.parser.rewire:
        yield "controls"
    if recipe.model.architecture == "lstm" and not recipe.syntax.variants:
        yield "lstm"
    if (
        recipe.model.architecture == "transformer"
        and recipe.model.model_dump(include={*NEWER_PARTS}) != NEWER_PARTS
    ):
        yield "transformer"


def test_every_shipped_recipe_is_named_on_the_pages_of_its_systems():
    named = {page: set().union(*named_recipes(text).values()) for page, text in PAGES.items()}
    named["pascal"] |= named["controls"]
    wanted = {page: set() for page in PAGES}
    for path in RECIPES:
        for page in wanted.keys() & pages_about(load_recipe(path)):
            wanted[page].add(path)
    for page, paths in wanted.items():
        assert paths <= named[page], page


def recipe_blocks():
    """Yield page and text of every recipe on a page of the systems."""
    for path, text in TEXTS.items():
        if path.parent == SYSTEMS:
            yield from (
                (path.stem, block)
                for block in re.findall(r"```yaml\n(.*?)```", text, flags=re.DOTALL)
            )


def builds(values):
    recipe = check_recipe({**LEAST, **values}, where="page")
    tree_requirements(recipe)
    # no memory is filled: the parameters have shapes only
    with torch.device("meta"):
        build(recipe.model, recipe.syntax, source_pieces=40, target_pieces=40)
    return recipe


@pytest.mark.parametrize(
    ("page", "block"), list(recipe_blocks()), ids=lambda value: value.split("\n")[0]
)
def test_every_recipe_on_a_page_is_accepted_and_builds(page, block, tmp_path):
    path = tmp_path / "page.yaml"
    path.write_text(block, encoding="utf-8")
    recipe = builds(load_yaml(path))
    assert page in {"README", "controls", "supervised-head", *pages_about(recipe)}


def test_the_index_says_rightly_which_systems_translate_with_a_parser():
    checked = 0
    for _, variants, parser in (
        row for row in table_rows(TEXTS[SYSTEMS / "README.md"]) if "{name:" in row[1]
    ):
        for line in re.findall(r"\{name: [^}]*\}", variants):
            variant = parse_yaml_value(line)
            lstm = variant["name"] in ("latent_tree", "latent_graph")
            model = {"architecture": "lstm"} if lstm else {"encoder_heads": [16, 8, 8, 8, 8, 8]}
            recipe = builds({"model": model, "syntax": {"variants": [variant]}})
            assert tree_requirements(recipe)["source"].to_run == (parser == "yes"), line
            checked += 1
    assert checked > len(DOCUMENTED)


def reported():
    """What docs/recipes.md gives as reported, by recipe."""
    rows = table_rows(TEXTS[ROOT / "docs" / "recipes.md"])
    return {match[1]: row[3] for row in rows if (match := re.match(r"\[`([^`]+)`\]", row[0]))}


@pytest.mark.parametrize("page", sorted(PAGES.keys() - NO_FIGURES))
def test_the_figures_of_a_page_are_those_of_the_list_of_recipes(page):
    known, (head, _, *rows) = reported(), table_rows(section(PAGES[page], "What the paper reports"))
    for first, *cells in rows:
        name = first.strip("`")
        if name in known:
            base = re.sub(r"-(gcn|latent-graph)$", "-lstm", name)
            base = re.sub(
                r"-(pascal|lisa|tags|multitask|deps-san|localness|context|relative|dbsa)\b.*",
                "-base",
                base,
            )
            # the plain model of another paper is not a baseline
            plain = "–" if page == "path-relations" else known[base]
            assert cells[-2:] == [plain, known[name]], name
        else:
            assert cells == [known[f"{corpus}-{name}".replace("`", "")] for corpus in head[1:]], (
                name
            )
    assert rows


@pytest.mark.parametrize("page", sorted(PAGES.keys() - {"se-sd"}))
def test_what_we_measured_stands_in_the_results(page):
    sources = TEXTS[ROOT / "docs" / "results.md"] + TEXTS[ROOT / "docs" / "controlled.md"]
    numbers = re.findall(
        r"\d[\d,]*\.\d+|\d+,\d{3}(?:,\d{3})*", section(PAGES[page], "What we measured")
    )
    assert numbers
    assert not [
        number
        for number in numbers
        if not re.search(rf"(?<![\d.]){re.escape(number)}(?!\d)", sources)
    ]


# numbers worked out on the pages, each from its equation


def on_page(page, label, values, form="{}"):
    """Tell whether a page has a row with this label and these values."""
    written = " ".join([label, *(form.format(value) for value in values)])
    return written in re.sub(r"[ \n]+", " ", PAGES[page])


def density(steps):
    """A Gaussian of variance 1, some steps from its middle."""
    return math.exp(-(steps**2) / 2) / math.sqrt(2 * math.pi)


def test_pascal_s_rows_are_densities_around_the_parents_middles():
    assert on_page("pascal", "piece", PIECES)
    middles = [1.5, 3, 3, 3, 5.5, 3, 3, 7]
    assert on_page("pascal", "p_t", middles, "{:.1f}")
    assert parent_middle(MONKEY, WITH_EOS).tolist() == middles
    assert on_page("pascal", "D ▁The", [density(j - 1.5) for j in PLACES], "{:.3f}")
    assert on_page("pascal", "D ▁mon", [density(j - 3) for j in PLACES], "{:.3f}")


def test_lisa_s_parents_are_the_first_pieces_and_uniform_weights_cost_their_logarithm():
    first = {"monkey": 1, "eats": 3, "banana": 5}
    parents = [first[word] for word in ("monkey", "eats", "eats", "eats", "banana", "eats", "eats")]
    assert on_page("lisa", "parent", [*parents, "–"])
    assert parent_first(MONKEY, WITH_EOS).tolist() == [*parents, 7]
    assert f"{math.log(8):.3f} nats, {7 * math.log(8):.3f} in all" in PAGES["lisa"]


def test_dbsa_s_chain_goes_through_a_word_to_its_parent_and_two_pieces_look_back():
    parents = [1, 2, 3, 3, 5, 6, 3]
    assert on_page("dbsa", "parent", [*parents, "–"])
    assert parent_chain(MONKEY, WITH_EOS).tolist() == [*parents, 7]
    teaching = [PIECES[place] for place, parent in enumerate(parents) if parent <= place]
    assert "Only {} and {} would".format(*(f"`{piece}`" for piece in teaching)) in " ".join(
        PAGES["dbsa"].split()
    )


def test_deps_san_s_distances_are_shortest_paths_and_eos_is_farther():
    edges = [
        (word, parent) for word, parent in enumerate(MONKEY.parents.tolist()) if word != parent
    ]
    steps = np.full((5, 5), 9) - 9 * np.eye(5, dtype=int)
    for word, parent in edges:
        steps[word, parent] = steps[parent, word] = 1
    for between, one, other in product(range(5), repeat=3):
        steps[one, other] = min(steps[one, other], steps[one, between] + steps[between, other])
    beyond = steps.max() + 1
    assert on_page("deps-san", "▁The", [*steps[0, MONKEY_WORD_OF], beyond])
    assert on_page("deps-san", "▁eats", [*steps[2, MONKEY_WORD_OF], beyond])
    assert on_page("deps-san", "</s>", [beyond] * 7 + [0])
    np.testing.assert_array_equal(
        distance(MONKEY, WITH_EOS)[:7, :7], steps[np.ix_(MONKEY_WORD_OF, MONKEY_WORD_OF)]
    )
    assert on_page("deps-san", "D", [density(edges) for edges in range(6)], "{:.3f}")
    assert 5.5e-9 < density(6) < 6.5e-9


def test_the_distance_transformer_s_factors_come_from_heights():
    assert "is 2, 4, 3 and 2" in " ".join(PAGES["distance-transformer"].split())
    factors = log_locality(torch.tensor([[2.0, 4, 3, 2, 0]]), 10.0).exp()[0]
    for word, place in (("The", 0), ("eats", 2), ("banana", 4)):
        assert on_page("distance-transformer", word, factors[place].tolist(), "{:.3f}")


def test_tree_regularization_scores_the_splits_of_five_states():
    states = torch.tensor([[[1.0, 0], [1, 1], [0, 1], [1, 0], [1, 1]]])
    scores = split_scores(residues(states), torch.tensor([[[2, 3, 2, 2, 1]]]))[0, 0, :4]
    loss = scores.logsumexp(0) - scores[1]
    assert on_page("tree-regularization", "score", scores.tolist(), "{:.3f}"), scores
    assert f"loss {loss:.3f}" in PAGES["tree-regularization"]


def test_tree_lstm_joins_the_pieces_of_words_first():
    names = {place: piece for place, piece in enumerate(PIECES)}
    for height, level in enumerate(merges(MONKEY, WITH_EOS).tolist(), start=1):
        for left, right, number in level:
            if number >= 0:
                names[-2 - number] = f"{names[left]} {names[right]}"
        assert f"height {height}" in PAGES["tree-lstm"]
    assert names[-7] == " ".join(PIECES[:-1])
    assert len(names) == 8 + 6


def test_the_distance_mask_divides_equal_weights_by_their_distance():
    steps = {"▁The": [0, 1, 1, 2, 4, 3, 3], "▁eats": [2, 1, 1, 0, 2, 1, 1]}
    for piece, row in steps.items():
        shares = [1 / max(step, 1) if step <= 2 else 0 for step in row]
        assert on_page(
            "distance-mask", piece, [*(share / sum(shares) for share in shares), 0], "{:.3f}"
        )


def test_kinship_masks_of_equal_shares_add_a_fifth_for_a_relative():
    words = ["The", "monkey", "eats", "a", "banana"]
    kin = {"banana": ("monkey", "eats", "a", "banana"), "no word": ()}
    for piece, word in (("▁ban", "banana"), ("</s>", "no word")):
        shares = [(1 + (words[owner] in kin[word])) / 5 for owner in MONKEY_WORD_OF]
        assert on_page("kinship-mask", piece, [*shares, 1 / 5], "{:.1f}")


def test_messages_of_the_graph_network_and_its_weights():
    upward, downward = graph(MONKEY, WITH_EOS)
    assert on_page("gcn", "share", PIECES)
    assert on_page("gcn", "▁The up", upward[0], "{:.2f}")
    assert on_page("gcn", "▁eats down", downward[3], "{:.2f}")
    states = np.arange(1.0, 6)
    from_above = [
        states[up] if up != word else 0 for word, up in enumerate(MONKEY.parents.tolist())
    ]
    from_below = [
        states[(MONKEY.parents == word) & (np.arange(5) != word)].sum() for word in range(5)
    ]
    after = (states + from_above + from_below) / 2
    assert on_page(
        "gcn", "h", [f"{word} {value:.1f}" for word, value in zip(MONKEY.words, after, strict=True)]
    )
    layer = GraphLayer(16)
    assert sum(p.numel() for p in layer.parameters()) == 3 * 16**2 + 3 * 16 + 16 + 1 + 73 * (
        2 * 16 + 2
    )


def planted(distances):
    """Weigh by e to the minus distance."""
    weights = np.exp(-np.array(distances, dtype=float))
    return weights / weights.sum()


def test_planted_rows_fall_with_the_distance_in_the_tree():
    before = {
        "The": [3],
        "monkey": [2, 1],
        "eats": [1, 2, 1],
        "a": [3, 4, 3, 2],
        "banana": [2, 3, 2, 1, 1],
        "EOS": [2, 3, 2, 1, 3, 2],
    }
    for word, distances in before.items():
        assert on_page("tree-planting", word, planted(distances), "{:.3f}")
    assert on_page("tree-planting", "row of *banana* is", [*planted([3, 2, 1, 1]), 0], "{:.3f}")


def test_a_latent_graph_that_learns_trees_has_first_pieces_and_the_root():
    first: list[int | str] = parent_first(MONKEY, WITH_EOS)[:7].tolist()
    assert first[3] == 3
    first[3] = "root"
    assert on_page("latent-graph", "parent", first)
    assert "state above it is 0.7 · 2 + 0.2 · 3 + 0.1 · 5 = 2.5" in " ".join(
        PAGES["latent-graph"].split()
    )
    assert f"2D to {LABELS} labels" in PAGES["latent-graph"]


def test_the_controls_of_a_supervised_head_are_diagonals():
    for kind in ("none", "left", "right"):
        tree, label = Control(kind).apply(MONKEY, b""), "parser" if kind == "none" else kind
        parents = enumerate(tree.parents.tolist())
        assert on_page(
            "supervised-head",
            label,
            ["root" if word == up else MONKEY.words[up] for word, up in parents],
        )
        assert on_page("supervised-head", label, [*parent_first(tree, WITH_EOS)[:7], "–"])


def test_localness_favours_what_is_near_the_centre_of_eight_pieces():
    for window in (10, 4):
        bias = [-((j - 4) ** 2) / (2 * (window / 2) ** 2) + 0.0 for j in PLACES]
        assert on_page("localness", f"window {window}", bias, "{:.2f}")


def test_context_adds_as_many_weights_as_its_page_says():
    joined = {"global": [1] * 4, "deep": [0, 1, 2, 3], "deep_global": [1, 2, 3, 4]}
    counts = [sum(2 * (n * 32**2 + 2 * 32) for n in layers if n) for layers in joined.values()]
    assert "{:,}, {:,} and {:,}".format(*counts) in PAGES["context"]


def test_relative_rows_are_clipped_distances():
    assert on_page("relative", "j - i", [j - 3 for j in PLACES])
    assert on_page("relative", "row", [min(max(j - 3, -2), 2) + 2 for j in PLACES])


def test_alibi_s_first_head_of_four_loses_a_quarter_for_each_step():
    assert on_page("transformer", "penalty", [-abs(j - 3) / 4 + 0.0 for j in PLACES], "{:.2f}")
    torch.testing.assert_close(alibi_slopes(4), torch.tensor([1 / 4, 1 / 16, 1 / 64, 1 / 256]))


def test_depths_of_the_monkey_choose_the_rows_of_its_determiner():
    depths = [2, 1, 1, 0, 2, 1, 1]
    assert on_page("depth-relative", "depth", [*depths, "–"])
    assert on_page(
        "depth-relative", "row", [*(min(max(depth - depths[0], -2), 2) + 2 for depth in depths), 5]
    )


def test_structural_positions_count_steps_with_a_direction():
    # The is below monkey and eats, and comes before a and banana, at depths 2 and 1
    steps = [0, 1, 1, 2, -(2 + 2), -(2 + 1), -(2 + 1)]
    assert on_page("structural-positions", "s", [*steps, "–"])
    assert on_page(
        "structural-positions", "row", [*(min(max(step, -2), 2) + 2 for step in steps), 5]
    )
    assert on_page("structural-depth", "depth", [2, 1, 1, 0, 2, 1, 1, "–"])


def test_arcs_of_the_monkey_lead_to_its_parent_and_its_children():
    owners, parents = [*MONKEY_WORD_OF, -1], [*MONKEY.parents, -1]
    for piece, word in (("▁mon", 1), ("▁eats", 2), ("</s>", -1)):
        row = [
            0
            if -1 in (word, other) or word == other
            else 1
            if parents[word] == other
            else 2 * (parents[other] == word)
            for other in owners
        ]
        assert on_page("graph-relations", piece, [int(number) for number in row])
    assert edge_kinds(KNOWN) == 145


def test_paths_of_the_monkey_go_up_and_down():
    numbers = label_paths(MONKEY, np.arange(5), longest=8)
    for number, word in ((0, "The"), (2, "eats"), (4, "banana")):
        paths = [
            [symbol for symbol in path if symbol] for path in read_paths(numbers[number]).tolist()
        ]
        written = [" ".join(map(arc_on_page, path)) for path in paths]
        assert on_page("path-relations", word, written)


def arc_on_page(symbol):
    if symbol == 2 * (len(KNOWN) + 1) + 1:
        return "itself"
    direction, relation = divmod(symbol - 1, len(KNOWN) + 1)
    return KNOWN[relation] + direction * ".r"


def test_weights_inside_a_scene_are_uniform():
    scenes = replace(MONKEY, features={"scenes": ["1", "1", "1", "1", "_"]})
    seen = same_scene(scenes, WITH_EOS)
    for piece, row in (("▁The", 0), ("▁ban", 5), ("</s>", 7)):
        assert on_page("scene-mask", piece, seen[row] / seen[row].sum(), "{:.3f}")


def test_tag_embedding_has_a_row_for_every_relation_and_two_more():
    assert on_page(
        "tag-embedding", "relation", [*(MONKEY.relations[word] for word in MONKEY_WORD_OF), "EOS"]
    )
    assert "(71: those" in PAGES["tag-embedding"]
    assert len(KNOWN) == 71
    assert "73 rows of 10, 730 weights" in PAGES["tag-embedding"]


@pytest.mark.parametrize("page", ["tag-embedding", "syntax-infused"])
def test_features_of_the_monkey_s_pieces(page):
    places = SUBWORD.compute(MONKEY, WITH_EOS)[:-1]
    assert on_page(page, "subword", [*(PLACES_IN_WORD[place - 1] for place in places), "EOS"])
    assert on_page(page, "relation", [*(MONKEY.relations[word] for word in MONKEY_WORD_OF), "EOS"])


def test_the_cases_of_the_monkey_s_pieces():
    assert on_page(
        "syntax-infused", "case", [*(case_of(MONKEY.words[word]) for word in MONKEY_WORD_OF), "EOS"]
    )


def test_the_parse_to_be_learnt_is_the_tree_in_brackets():
    source = tagged("The monkey eats a banana", PARSING)
    assert f"{source}    {linearise(MONKEY)}\n" in PAGES["multi-task"]


def test_the_linearised_source_has_its_words_between_their_dependents():
    assert f"    {linearise_with_words(MONKEY).text}    Der Affe" in PAGES["mixed"]


def test_the_actions_of_se_sd_build_the_tree_of_the_monkey():
    line = re.search(r"^    (shift .*)$", PAGES["se-sd"], flags=re.MULTILINE)
    stack, parents, words = [], {}, iter(range(5))
    for action in line[1].split():
        if action == "shift":
            stack.append(next(words))
        else:
            below, top = stack[-2:]
            parent, child = (top, below) if action == "left" else (below, top)
            parents[child] = parent
            stack[-2:] = [parent]
    assert (stack, parents) == ([2], {0: 1, 1: 2, 3: 4, 4: 2})


def test_distributions_of_the_monkey():
    doubts = Arcs(
        np.array([0, 0]),
        np.array([1, 2]),
        np.array([0, 0]),
        np.array([0.75, 0.25], np.float32),
        ("det",),
    )
    parse = replace(MONKEY, arcs=doubts)
    for label, split in (("ldd", False), ("split", True)):
        table = arcs(UNIVERSAL_GROUPS, split=split).compute(parse, WITH_EOS)
        assert on_page("dependency-distribution", label, table[12, 0], "{:.2f}")
    best = tree_arcs(UNIVERSAL_GROUPS).compute(MONKEY, WITH_EOS)[:, :-1]
    assert (np.flatnonzero(best.any((1, 2))) + 1).tolist() == [1, 4, 6, 13]
    uniform = [
        uniform_arcs(groups).compute(MONKEY, WITH_EOS)[0, 0, 0]
        for groups in (UNIVERSAL_GROUPS, None)
    ]
    np.testing.assert_allclose(uniform, [1 / 80, 1 / 5], rtol=1e-6)


def test_marginals_of_two_pieces_and_of_equal_scores():
    likely = math.exp(2) / (math.exp(2) + 1)
    for word in ("monkey", "eats"):
        assert on_page("latent-tree", word, [1 - likely, likely], "{:.3f}")
    scores, real = torch.tensor([[0.0, 2.0], [0.0, 0.0]]), torch.ones(2, dtype=torch.bool)
    expected = torch.tensor([[1 - likely, likely]] * 2)
    torch.testing.assert_close(tree_marginals(scores, torch.zeros(2), real), expected)
    even = tree_marginals(torch.zeros(5, 5), torch.zeros(5), torch.ones(5, dtype=torch.bool))
    torch.testing.assert_close(even, torch.full((5, 5), 0.2))
    assert f"{len(all_trees(5))} trees of five pieces" in PAGES["latent-tree"]


def test_tree_attention_of_equal_scores_is_even_among_words():
    words = torch.tensor([True] * 7 + [False])
    even = tree_marginals(torch.zeros(8, 8), torch.zeros(8), words)
    assert on_page("tree-attention", "▁mon", even[1].tolist(), "{:.3f}")
    assert on_page("tree-attention", "</s>", [0.0] * 7 + [1.0], "{:.3f}")


def test_controls_of_the_monkey_and_what_pascal_reads():
    for kind in ("none", "left", "right"):
        tree = Control(kind).apply(MONKEY, b"")
        label = "parser" if kind == "none" else kind
        parents = enumerate(tree.parents.tolist())
        assert on_page(
            "controls", label, ["root" if word == up else MONKEY.words[up] for word, up in parents]
        )
        assert on_page("controls", label, parent_middle(tree, WITH_EOS), "{:.1f}")
