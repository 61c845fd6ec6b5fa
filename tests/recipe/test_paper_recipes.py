"""The recipes of the papers: each holds what its paper prints, says where it comes from, and
differs from its base in nothing but the experiment."""

import re

import pytest
import torch
from each import of_each
from places import TESTS
from shipped import PATHS, ROOT, assert_has, comment, differences, recipe, rows, variants

from synmt.corpora.known import KNOWN_CORPORA
from synmt.model.build import build

pytestmark = pytest.mark.journey

WITHOUT_PAPER = "quickstart controlled-base controlled-pascal multi30k-tiny tanaka-enja-base"


@of_each(PATHS)
def test_a_recipe_begins_with_its_purpose_and_names_its_paper(name):
    assert len(comment(name).split()) >= 8
    assert name in WITHOUT_PAPER.split() or re.search(r"\(.*(19|20)\d\d.*\)", comment(name))


def test_the_table_of_recipes_has_every_recipe_of_the_papers_once():
    text = (ROOT / "docs" / "recipes.md").read_text(encoding="utf-8")
    table = re.findall(r"^\| \[`(.+?)`\]\((.+?)\) \|", text, flags=re.MULTILINE)
    pages = {path.stem for path in (ROOT / "docs" / "systems").glob("*.md")}
    # a variant without a page is new, and its recipes need no row
    listed = {
        name: path
        for name, path in PATHS.items()
        if {v["name"].replace("_", "-") for v in variants(name)} <= pages
    }
    assert {name: (ROOT / "docs" / link).resolve() for name, link in table} == listed
    assert len(table) == len(listed)


@of_each((TESTS / "recipe" / "papers.tsv").read_text(encoding="utf-8").splitlines()[2:])
def test_a_recipe_has_what_its_paper_prints_and_changes_nothing_else(line):
    name, base, figure, *values = line.split("\t")
    assert figure == "-" or f"reported {figure}" in comment(name)
    assert_has(name, *(value for value in values if "=" in value))
    assert base == "-" or differences(name, base) == {value.partition("=")[0] for value in values}


# millions of weights, which the paper (Peng et al., 2022, table 1) truncates after the second
# decimal. They follow from these assumptions: size `base`; 60,000 joint pieces; one table for
# source, target and output; localness in layers 1 to 3 of the encoder, its vectors of head size
# with biases, shared by the heads; context in all layers of the encoder, without biases; relative
# positions on both sides with reach 16 and one table for scores and values, shared by the heads
WEIGHTS = """
    base 74.85 pascal 74.85 pascal-ignore 74.85 localness-fixed 74.87 localness-layer 74.88
    localness-query 74.87 context-global 74.90 context-deep 74.98 context-deep-global 75.03
    relative 74.88 deps-san 74.85 deps-san-rs 74.85 deps-san-wink 74.85
"""


@of_each(re.findall(r"(\S+) (\d\S+)", f"{WEIGHTS} wmt16 105.57"))
def test_the_systems_of_the_deps_san_paper_have_its_sizes(row):
    system, millions = row
    name = "wmt16-deen-base" if system == "wmt16" else f"iwslt14-deen-{system}"
    size = recipe(name).vocabulary.size
    pieces = {"source_pieces": size, "target_pieces": size}
    with torch.device("meta"):
        model = build(recipe(name).model, recipe(name).syntax, **pieces)
    weights = sum(parameter.numel() for parameter in model.parameters())
    assert f"{weights // 10_000 / 100:.2f}" == millions


def test_a_recipe_with_a_supervised_decoder_names_a_parser_of_the_target():
    found = [(v.name, v.side, name) for name in PATHS for v in recipe(name).syntax.variants]
    supervised = [name for *place, name in found if place == ["dbsa", "target"]]
    assert len(supervised) == 6
    assert all(recipe(name).target_parser.model == "official" for name in supervised)


# tokenizers of source and target, case, and whether the corpus comes as words
CUT = rows("""
    multi30k-words-base    spacy  spacy  -          false
    iwslt17-ende-base      spacy  spacy  -          false
    iwslt17-enit-base      spacy  spacy  -          false
    iwslt15-enzh-base      spacy  spacy  -          false
    iwslt14-deen-base      moses  moses  lowercase  false
    wmt16-deen-base        moses  moses  -          false
    aspec-jaen-base        kytea  moses  -          false
    aspec-jaen-words-base  kytea  moses  -          false
    wat-enja-base          none   kytea  -          false
    tanaka-enja-base       none   none   -          false
    tanaka-enja-pascal     none   none   -          false
    wmt17-ende-lstm        moses  moses  truecase   true
    wmt17-enru-lstm        moses  moses  truecase   false
    un-ruar-lstm           moses  moses  -          false
""")


@of_each(CUT)
def test_a_paper_that_trained_on_words_is_tokenized_from_raw_text_and_scored_on_tokens(row):
    name, tokenizer, of_target, case, already_cut = row
    assert recipe(name).text_of("target").tokenizer == of_target
    assert_has(name, f"text.tokenizer={tokenizer}", f"text.already_cut={already_cut}")
    assert_has(name, "evaluation.on=tokens", "evaluation.tokenize=none")
    for key in ("truecase", "lowercase"):
        assert_has(name, f"text.{key}={str(key == case).lower()}")


def test_a_recipe_that_scores_without_a_tokenizer_says_that_it_scores_tokens():
    for name in PATHS:
        evaluation = recipe(name).evaluation
        assert (evaluation.tokenize == "none") == (evaluation.on == "tokens"), name
    # statmt's preprocessed text: trained on as it comes, scored as text
    for name in ("wmt17-ende-base", "wmt18-entr-base"):
        assert_has(name, "text.already_cut=true", "text.escape=true", "evaluation.on=text")


# validation text and test sets with their sentences
SPLITS = rows("""
    wmt17-ende-2015  newstest2015 2169  newstest2016 2999  newstest2017 3004
    wmt17-enru       newstest2016 2998  newstest2017 3001
    un-ruar          dev 4000  test 4000
""")


@of_each(SPLITS)
def test_the_corpora_of_the_sa_nmt_paper_have_its_splits(row):
    corpus, *cells = row
    known = KNOWN_CORPORA[corpus]
    assert [known.valid, *known.test] == cells[::2]
    assert [str(known.counts[split]) for split in cells[::2]] == cells[1::2]
