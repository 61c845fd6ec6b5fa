"""The example of docs/variant.md: its code runs, its recipe trains and translates, and one file is
all it takes."""

import math
import re

import numpy as np
import pytest
import torch
from copied import IN_TWO, copy_project, count_passed, path_of
from places import ROOT
from small import batch_for, random_example, small_model
from tiny import synmt, write_corpus, write_recipe

from synmt.files.own_code import allowing_code
from synmt.recipe.yaml_text import load_yaml
from synmt.syntax.trees import tree_distances

pytestmark = pytest.mark.journey

PAGE = (ROOT / "docs" / "variant.md").read_text(encoding="utf-8")


def blocks(language):
    return re.findall(rf"```{language}\n(.*?)```", PAGE, flags=re.DOTALL)


@pytest.fixture
def lab(tmp_path, monkeypatch):
    """Put the page's variant where the page says, and work in the folder next to it."""
    folder = tmp_path / "mylab"
    folder.mkdir()
    (folder / "__init__.py").write_text("")
    (folder / "tree_relative.py").write_text(blocks("python")[0], encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_example_computes_what_its_equation_says(lab):
    with allowing_code():
        model = small_model({"name": "mylab.tree_relative", "layers": [1], "heads": 2, "reach": 2})
    [variant] = model.variants["source"]
    example = random_example(5, np.random.default_rng(3))
    batch = batch_for(model, [example])
    layer = model.encoder[0].self_attention
    x = torch.randn(1, batch.source.ids.size(1), layer.project.in_features)
    syntax = model.syntax("source", batch.source_signals, batch.source.ids)
    terms = layer.terms(x, batch.source.mask[:, None, None], syntax)[0]
    tree = example.trees["source"]
    steps = tree_distances(tree.parse.parents)  # (W, W)
    for head in range(2):
        for i, one in enumerate(tree.word_of):
            for j, other in enumerate(tree.word_of):
                vector = variant.key.weight[min(int(steps[one, other]), 2)]
                expected = (terms.q[0, head, i] @ vector).item() / math.sqrt(terms.q.size(-1))
                assert terms.bias[0, head, i, j].item() == pytest.approx(expected, abs=1e-5)


def test_the_recipe_trains_and_its_run_translates(lab):
    (lab / "page.yaml").write_text(blocks("yaml")[0], encoding="utf-8")
    page = load_yaml(lab / "page.yaml")
    assert page["extends"] == "controlled-base"
    recipe = write_recipe(lab / "own.yaml", write_corpus(lab / "corpus"), syntax=page["syntax"])
    assert synmt("train", recipe, "--allow-code").returncode == 0
    trees = lab / "corpus" / "test.en.conllu"
    done = synmt(
        "translate", lab / "corpus" / "test.en", "--run", lab / "runs" / "own", "--parses", trees
    )
    assert done.returncode == 0
    assert done.stdout.count(b"\n") == (lab / "corpus" / "test.en").read_bytes().count(b"\n")


def test_the_signal_of_the_page_counts_the_steps_to_the_root():
    space = {}
    exec(blocks("python")[1], space)
    parse = random_example(6, np.random.default_rng(0)).trees["source"].parse
    found = space["depth"](parse, np.array([0, 0, 1, 2, 3, 4, 5, -1]))
    roots = np.flatnonzero(parse.parents == np.arange(6))
    steps = tree_distances(parse.parents)[:, roots[0]]
    assert found.tolist() == [*steps[[0, 0, 1, 2, 3, 4, 5]], 0]
    assert space["DEPTH"].needs == "parents"


@pytest.fixture
def with_the_example(tmp_path):
    """Copy the project, and add the page's variant and recipe."""
    place = copy_project(tmp_path / "project")
    variant = place / "synmt" / "model" / "variants" / "tree_relative.py"
    variant.write_text(blocks("python")[0], encoding="utf-8")
    recipe = blocks("yaml")[0].replace("recipes/", "").replace("mylab.", "")
    (place / "recipes" / "tree-relative.yaml").write_text(recipe, encoding="utf-8")
    return place


def test_the_file_and_a_recipe_are_all_that_the_package_needs(with_the_example):
    # these files list variants and recipes: in parameters, which have the new names, or in the
    # loops of four tests
    loops = "index or table_of_recipes or every_shipped_recipe_is_named"
    names = ("variants", "system_pages", "paper_recipes")
    # compiling alone takes 8 s
    chosen = f"(tree_relative or tree-relative or {loops}) and not compiles"
    assert count_passed(with_the_example, "-k", chosen, *map(path_of, names)) > 10


@pytest.mark.whole_suite
def test_the_whole_suite_passes_with_the_example(with_the_example):
    assert count_passed(with_the_example, *IN_TWO) > 5900
