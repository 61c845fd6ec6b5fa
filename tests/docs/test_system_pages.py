"""The pages of docs/systems: options, recipe lines and figures."""

import inspect
import re
from itertools import product
from typing import get_args, get_origin, get_type_hints

import pytest
import torch
from places import ROOT

import synmt.model.variants
from synmt.model.build import build, variant_class, variant_names
from synmt.recipe.data import ParserRecipe, TasksRecipe
from synmt.recipe.load import check_recipe, load_recipe
from synmt.recipe.model import ModelRecipe
from synmt.recipe.schema import Recipe
from synmt.recipe.yaml_text import load_yaml, parse_yaml_value
from synmt.training.tree_sources import tree_requirements

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
NEWER_PARTS = {"positions": "sinusoid", "norm_kind": "layer", "feed_forward": "relu"}
"""Keys of a model, with the values of the published Transformer."""


def page_name(variant):
    return variant.rpartition(".")[2].replace("_", "-")


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


def test_every_page_is_in_the_index_and_every_variant_of_a_paper_has_one():
    linked = set(re.findall(r"\]\(([a-z-]+)\.md[)#]", TEXTS[SYSTEMS / "README.md"]))
    assert linked == PAGES.keys()
    listed = re.findall(r"^(\w+)  +\S", synmt.model.variants.__doc__, flags=re.MULTILINE)[1:]
    assert set(listed) == set(DOCUMENTED)


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


@pytest.mark.parametrize("page", sorted(PAGES.keys() - {"se-sd"}))
def test_what_we_measured_stands_in_the_results(page):
    names = ("results", "controlled", "speed")
    sources = " ".join(TEXTS[ROOT / "docs" / f"{name}.md"] for name in names)
    measured = re.findall(r"[\d.]+", (ROOT / "docs/results.csv").read_text())
    for form in (",.2f", ",.3f", ",.0f"):
        sources += " ".join(format(float(number), form) for number in measured)
    numbers = re.findall(
        r"\d[\d,]*\.\d+|\d+,\d{3}(?:,\d{3})*", section(PAGES[page], "What we measured")
    )
    assert numbers
    assert not [
        number
        for number in numbers
        if not re.search(rf"(?<![\d.]){re.escape(number)}(?!\d)", sources)
    ]
