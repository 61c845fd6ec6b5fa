"""The recipes of the papers: each holds what its paper prints, says where it comes from, and
differs from its base in nothing but the experiment. The tables here are typed from the papers, not
from the recipes.
"""

import re
from math import ceil

import pytest
import torch
from each import of_each
from shipped import (
    ABLATIONS,
    PATHS,
    ROOT,
    assert_has,
    assert_reports,
    comment,
    differences,
    recipe,
    rows,
    variants,
)

from synmt.model.build import build
from synmt.recipe.yaml_text import parse_yaml_value
from synmt.training.optimizer import learning_rate

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


# a recipe, the one that it changes, and all that it changes; of some keys the value is the
# experiment
CHANGES = rows(
    """
    wat-enja-tree-lstm        wat-enja-lstm         syntax.variants
    wat-enja-latent-graph     wat-enja-lstm         syntax.variants training.pretraining
    multi30k-pascal-random    multi30k-pascal       parser.control=random
    multi30k-pascal-left      multi30k-pascal       parser.control=left
    multi30k-pascal-right     multi30k-pascal       parser.control=right
    multi30k-pascal-shuffled  multi30k-pascal       parser.control=shuffled
    multi30k-pascal-rewired50 multi30k-pascal       parser.rewire=0.5
    tanaka-enja-pascal        tanaka-enja-base      syntax.variants
    multi30k-modern-pascal    multi30k-modern-base  syntax.variants
    controlled-modern-pascal  controlled-modern-base syntax.variants
    multi30k-tree-attention   multi30k-tiny         syntax.variants
    nc11-base-filtered        nc11-base             filters.language=true
    nc11-deen-base-filtered   nc11-deen-base        filters.language=true
    wmt16-ende-base-filtered  wmt16-ende-base       filters.language=true
    controlled-mixed          controlled-base       tasks.mixed
    controlled-parse2seq      controlled-base       tasks.mixed tasks.mixed_only=true
    multi30k-mixed            multi30k-tiny         tasks.mixed
    multi30k-parse2seq        multi30k-tiny         tasks.mixed tasks.mixed_only=true
    wmt16-ende-mixed          wmt16-ende-base       tasks.mixed
    wmt17-ende-mixed          wmt17-ende-base       tasks.mixed
    wmt18-entr-mixed          wmt18-entr-base       tasks.mixed
    multi30k-modern-base multi30k-tiny MODERN
    controlled-modern-base controlled-base MODERN
    wmt17-deen-lstm wmt17-ende-lstm source target target_parser.model
    wmt17-enru-lstm wmt17-ende-lstm OTHER target
    wmt17-ruen-lstm wmt17-ende-lstm OTHER source target target_parser.model
    un-ruar-lstm wmt17-ende-lstm source target corpus.name text.already_cut=false \
    text.split_hyphens text.escape text.truecase training.batch_sentences training.batch_tokens
""".replace(
        "MODERN", "model.positions model.norm_kind model.feed_forward model.feedforward_dim"
    ).replace(
        "OTHER", "corpus.name text.already_cut=false training.validate_every training.save_every"
    )
)


@of_each(CHANGES)
def test_a_recipe_differs_from_its_base_in_the_experiment_alone(row):
    name, base, *changed = row
    assert differences(name, base) == {change.partition("=")[0] for change in changed}
    assert_has(name, " ".join(change for change in changed if "=" in change))


# reported on both corpora, and millions of weights, which the paper truncates after the second
# decimal; the variants
DEPS_SAN = rows(
    """
    base                 29.88  27.48  74.85
    pascal               29.75  27.55  74.85  {name: pascal, layers: [1], heads: 8}
    pascal-ignore        29.95  27.73  74.85  {name: pascal, layers: [1], heads: 8, ignore: 0.3}
    localness-fixed      28.72  27.21  74.87  {name: localness, LOWER, window: fixed, size: 10}
    localness-layer      29.89  27.23  74.88  {name: localness, LOWER, window: layer}
    localness-query      29.63  27.46  74.87  {name: localness, LOWER, window: query}
    context-global       29.92  27.45  74.90  {name: context, layers: all, kind: global}
    context-deep         30.03  27.63  74.98  {name: context, layers: all, kind: deep}
    context-deep-global  30.07  27.55  75.03  {name: context, layers: all, kind: deep_global}
    relative             30.34  27.71  74.88  {RELATIVE}, {RELATIVE, side: target}
    deps-san             30.44  27.94  74.85  {STEPS}
    deps-san-rs          30.75  28.21  74.85  {STEPS, resample: 0.1, fill: 6}
    deps-san-wink        30.64  28.13  74.85  {STEPS, window: 6}
    """.replace("STEPS", "name: deps_san, LOWER, variance: 1")
    .replace("LOWER", "layers: [1, 2, 3]")
    .replace("RELATIVE", "name: relative, layers: all, reach: 16, shared: true"),
    cells=5,
)


def parameters_of(name):
    """Count the parameters of a recipe's model, in hundredths of a million."""
    size = recipe(name).vocabulary.size
    with torch.device("meta"):
        model = build(
            recipe(name).model, recipe(name).syntax, source_pieces=size, target_pieces=size
        )
    return sum(parameter.numel() for parameter in model.parameters()) // 10_000


@of_each(DEPS_SAN)
def test_the_systems_of_the_deps_san_paper_have_its_options_size_and_figures(row):
    system, *figures, millions = row[:4]
    assert parameters_of(f"iwslt14-deen-{system}") == int(millions.replace(".", ""))
    for corpus, figure in zip(("iwslt14-deen", "wmt16-deen"), figures, strict=True):
        name = f"{corpus}-{system}"
        assert_reports(name, figure)
        assert variants(name) == parse_yaml_value(f"[{''.join(row[4:])}]")
        assert differences(name, f"{corpus}-base") <= {"syntax.variants"}


def test_the_bases_of_the_deps_san_paper_have_its_settings():
    assert parameters_of("wmt16-deen-base") == 10557
    settings = """
        source=de target=en filters.max_words=80 vocabulary.kind=word vocabulary.size=60000
        model.dropout=0.1 training.learning_rate=7e-4 training.warmup=8000
        training.betas=[0.9,0.98] training.epsilon=1e-8 training.label_smoothing=0.1
        training.batch_tokens=4096 training.schedule=inverse_sqrt training.use=best
        training.best=loss decoding.beam_size=5 decoding.length_penalty=0.6
    """
    assert_has("iwslt14-deen-base", f"{settings} training.max_steps=80000")
    assert_has("wmt16-deen-base", f"{settings} training.max_steps=200000")


LAYERS_AND_VARIANCES = rows(
    """
    layers1     29.83  layers: [1]
    layers1-2   30.00  layers: [1, 2]
    layers1-4   29.89  layers: [1, 2, 3, 4]
    layers4-6   29.46  layers: [4, 5, 6]
    layers1-6   28.79  layers: all
    variance2   29.84  variance: 2
    variance4   29.82  variance: 4
    variance8   30.03  variance: 8
    variance16  30.08  variance: 16
    variance32  29.64  variance: 32
    """,
    cells=3,
)


def test_the_ablations_of_deps_san_change_one_option_each():
    plain = "iwslt14-deen-deps-san"
    names = [f"{plain}-{suffix}" for suffix, _, _ in LAYERS_AND_VARIANCES]
    assert {name for name in ABLATIONS if name.startswith("iwslt14")} == set(names)
    for name, (_, figure, change) in zip(names, LAYERS_AND_VARIANCES, strict=True):
        assert variants(name) == [variants(plain)[0] | parse_yaml_value(f"{{{change}}}")]
        assert differences(name, plain) == {"syntax.variants"}
        assert_reports(name, figure)


DBSA = rows("""
    base             27.29
    dbsa-encoder     28.05  encoder
    dbsa-decoder     27.86  decoder
    dbsa-both        28.29  encoder  decoder
    words-base       26.39
    words-dbsa-both  26.62  encoder  decoder
""")


@of_each(DBSA)
def test_dependency_based_self_attention_stands_in_layer_4_of_each_side(row):
    suffix, reported, *places = row
    name, encoder = f"aspec-jaen-{suffix}", {"name": "dbsa", "layers": [4], "heads": 1}
    sides = {"encoder": encoder, "decoder": encoder | {"side": "target"}}
    assert variants(name) == [sides[place] for place in places]
    assert_reports(name, reported)
    changed = {key.partition(".")[0] for key in differences(name, "aspec-jaen-base")}
    assert changed <= ({"syntax", "vocabulary"} if "words" in suffix else {"syntax"})


def test_aspec_is_trained_as_in_the_paper():
    base = recipe("aspec-jaen-base")
    settings = base.training
    assert settings.max_steps == round(20 * ceil(1_198_149 / 224), -3)
    assert settings.max_steps == 20 * settings.validate_every
    assert settings.batch_tokens >= settings.batch_sentences * (base.filters.max_pieces + 1)
    assert learning_rate(4000, settings, 512) == pytest.approx(512**-0.5 * 4000**-0.5)
    settings = """
        source=ja target=en vocabulary.size=100000 vocabulary.joint=true filters.max_pieces=250
        training.label_smoothing=0.1 training.betas=[0.9,0.98] training.epsilon=1e-9
        training.best=bleu training.use=best decoding.beam_size=4 decoding.length_penalty=0.6
    """
    assert_has("aspec-jaen-base", settings)
    words = recipe("aspec-jaen-words-base").vocabulary
    # every line is counted: a word seen 5 times may be in any of them
    assert words.min_frequency == 5
    assert words.training_lines >= 2 * 1_198_149


# pairs to train on, sentences of a batch, warm-up, layers; BL and the kinds of distributions
CORPORA = rows("""
    multi30k-words   29000  256   400  4
    iwslt17-ende    206112  512  4000  6
    iwslt17-enit    231619  512  4000  6
    iwslt15-enzh    107860  512  4000  6
""")
KINDS, *LDD = rows("""
    corpus          base     ldd    lda    ldp    udp   uldd   uudd
    multi30k-words  30.14  31.29  30.49  30.71  31.05  27.80  29.09
    iwslt17-ende    26.13  27.78  26.16  26.38  26.39  25.10  25.41
    iwslt17-enit    27.11  29.34  26.13  25.65  28.13  25.23  25.23
    iwslt15-enzh    18.31  20.25  18.25  18.85  19.71  17.89  18.05
""")
LDD_KINDS = KINDS[2:]


@of_each(LDD)
def test_labelled_distributions_have_16_heads_in_layer_1_and_8_in_the_others(row):
    corpus, plain, *reported = row
    base = recipe(f"{corpus}-base").model
    assert_reports(f"{corpus}-base", plain)
    assert base.heads_of("source") == base.heads_of("target") == (8,) * base.encoder_layers
    for kind, figure in zip(LDD_KINDS, reported, strict=True):
        name = f"{corpus}-{kind}"
        [system] = variants(name)
        expected = {"name": "dependency_distribution", "kind": kind, "layers": [1], "heads": 16}
        assert system == expected
        assert recipe(name).model.heads_of("source") == (16, *base.heads_of("source")[1:])
        assert differences(name, f"{corpus}-base") == {"syntax.variants", "model.encoder_heads"}
        assert_reports(name, figure)


@of_each(CORPORA)
def test_labelled_distributions_are_trained_for_50_epochs_of_the_papers_batches(row):
    corpus, (pairs, sentences, warmup, layers) = row[0], map(int, row[1:])
    base, settings = recipe(f"{corpus}-base"), recipe(f"{corpus}-base").training
    epoch = ceil(pairs / sentences)
    assert settings.batch_tokens >= sentences * (base.filters.max_pieces + 1)
    peak = learning_rate(warmup, settings, base.model.model_dim)
    assert peak == pytest.approx(2.2e-3 if warmup == 400 else 7e-4, rel=0.02)
    values = f"""
        training.batch_sentences={sentences} training.max_steps={50 * epoch}
        training.validate_every={epoch} training.schedule=noam training.warmup={warmup}
        training.best=bleu model.encoder_layers={layers} model.decoder_layers={layers}
        model.dropout=0.1 vocabulary.kind=word vocabulary.min_frequency=2 filters.max_words=256
    """
    assert_has(f"{corpus}-base", values)


# all systems on Multi30k, and the others


def test_the_systems_on_multi30k_differ_from_the_plain_model_in_syntax_alone():
    names = [name for name in PATHS if re.match(r"multi30k-(?!words|modern)", name)]
    names = [name for name in names if recipe(name).model.architecture != "lstm"]
    assert len(names) == 53
    for name in names:
        free = "syntax.variants target_parser.model tasks.parsing tasks.mixed tasks.mixed_only"
        if name.startswith(("multi30k-pascal-", "multi30k-lisa-")):
            free += " parser.control parser.rewire"
        if name.rpartition("-")[2] in (*LDD_KINDS, "udd"):
            free += " model.encoder_heads"
        if name == "multi30k-features-full":
            # the compact parser gives no lemmas
            free += " parser.model"
        assert differences(name, "multi30k-tiny") <= set(free.split())


def test_a_recipe_with_a_supervised_decoder_names_a_parser_of_the_target():
    found = [(v.name, v.side, name) for name in PATHS for v in recipe(name).syntax.variants]
    supervised = [name for *place, name in found if place == ["dbsa", "target"]]
    assert len(supervised) == 6
    assert all(recipe(name).target_parser.model == "official" for name in supervised)


# words


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
    cases = [f"text.{key}={str(key == case).lower()}" for key in ("truecase", "lowercase")]
    assert_has(name, f"text.tokenizer={tokenizer} text.already_cut={already_cut}")
    assert_has(name, " ".join([*cases, "evaluation.on=tokens", "evaluation.tokenize=none"]))


def test_a_recipe_that_scores_without_a_tokenizer_says_that_it_scores_tokens():
    for name in PATHS:
        evaluation = recipe(name).evaluation
        assert (evaluation.tokenize == "none") == (evaluation.on == "tokens"), name
    # statmt's preprocessed text: trained on as it comes, scored as text
    for name in ("wmt17-ende-base", "wmt18-entr-base"):
        assert_has(name, "text.already_cut=true text.escape=true evaluation.on=text")
