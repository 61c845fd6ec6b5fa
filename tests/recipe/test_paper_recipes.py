"""The recipes of the papers: each holds what its paper prints, says where it comes from, and
differs from its base in nothing but the experiment. The tables here are typed from the papers, not
from the recipes.
"""

import re
from math import ceil

import pytest
import torch
from each import of_each
from shipped import ABLATIONS, PATHS, ROOT, comment, differences, recipe, variants

from synmt.corpora.known import KNOWN_CORPORA
from synmt.model.build import build, place_variants
from synmt.recipe.data import FilterRecipe
from synmt.recipe.yaml_text import load_yaml
from synmt.training.optimizer import learning_rate

pytestmark = pytest.mark.journey

WITHOUT_PAPER = {
    "quickstart",
    "controlled-base",
    "controlled-pascal",
    "multi30k-tiny",
    "tanaka-enja-base",
}
LDD_KINDS = ("ldd", "lda", "ldp", "udp", "uldd", "uudd")


def test_the_names_of_recipes_differ_in_all_folders():
    assert len(PATHS) == len(list((ROOT / "recipes").rglob("*.yaml")))


@of_each(PATHS)
def test_a_recipe_loads_and_its_variants_fit_its_model(name):
    place_variants(recipe(name).model, recipe(name).syntax)
    corpus = KNOWN_CORPORA[str(recipe(name).corpus.name)]
    assert {recipe(name).source, recipe(name).target} <= set(corpus.languages)


@of_each(PATHS)
def test_a_recipe_begins_with_its_purpose_and_names_its_paper(name):
    assert len(comment(name).split()) >= 8
    assert name in WITHOUT_PAPER or re.search(r"\(.*(19|20)\d\d.*\)", comment(name))


@of_each(PATHS)
def test_a_recipe_that_extends_another_says_little_of_its_own(name):
    lines = PATHS[name].read_text(encoding="utf-8").splitlines()
    own = [line for line in lines if not line.lstrip().startswith("#")]
    assert len(own) <= 12 or "extends" not in load_yaml(PATHS[name])
    assert all(len(line) <= 125 for line in lines)


def test_the_table_of_recipes_has_every_recipe_of_the_papers_once_with_the_figure_of_its_comment():
    text = (ROOT / "docs" / "recipes.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| \[`(.+?)`\]\((.+?)\) \|.*\| (.*?) \|$", text, flags=re.MULTILINE)
    pages = {path.stem for path in (ROOT / "docs" / "systems").glob("*.md")}
    # a variant without a page is new, and its recipes need no row
    listed = [
        name for name in PATHS if {v["name"].replace("_", "-") for v in variants(name)} <= pages
    ]
    assert sorted(name for name, _, _ in rows) == sorted(listed)
    for name, link, reported in rows:
        assert (ROOT / "docs" / link).resolve() == PATHS[name]
        for figure in re.findall(r"\d+\.\d+", reported):
            assert figure in comment(name), name


@pytest.mark.parametrize("name", [name for name in PATHS if name.startswith("wat-enja-")])
def test_the_wat_corpus_is_not_cleaned_as_in_the_released_script(name):
    assert recipe(name).filters == FilterRecipe(max_words=0)


@pytest.mark.parametrize("system", ["tree-lstm", "latent-graph"])
def test_a_system_over_an_lstm_on_wat_differs_from_the_plain_lstm_in_syntax_alone(system):
    training = {"training.pretraining"} if system == "latent-graph" else set()
    assert differences(f"wat-enja-{system}", "wat-enja-lstm") == {"syntax.variants"} | training


WORDS = {"iwslt14-deen": 0, "wmt16-deen": 1}
PASCAL = {"name": "pascal", "layers": (1,), "heads": 8}
LOCALNESS = {"name": "localness", "layers": (1, 2, 3)}
CONTEXT = {"name": "context", "layers": "all"}
RELATIVE = {"name": "relative", "layers": "all", "reach": 16, "shared": True}
STEPS = {"name": "deps_san", "layers": (1, 2, 3), "variance": 1}
# reported on both corpora, and millions of weights, which the paper truncates after the second
# decimal; options of each variant
DEPS_SAN = {
    "base": ((29.88, 27.48, 74.85), []),
    "pascal": ((29.75, 27.55, 74.85), [PASCAL]),
    "pascal-ignore": ((29.95, 27.73, 74.85), [PASCAL | {"ignore": 0.3}]),
    "localness-fixed": ((28.72, 27.21, 74.87), [LOCALNESS | {"window": "fixed", "size": 10}]),
    "localness-layer": ((29.89, 27.23, 74.88), [LOCALNESS | {"window": "layer"}]),
    "localness-query": ((29.63, 27.46, 74.87), [LOCALNESS | {"window": "query"}]),
    "context-global": ((29.92, 27.45, 74.90), [CONTEXT | {"kind": "global"}]),
    "context-deep": ((30.03, 27.63, 74.98), [CONTEXT | {"kind": "deep"}]),
    "context-deep-global": ((30.07, 27.55, 75.03), [CONTEXT | {"kind": "deep_global"}]),
    "relative": ((30.34, 27.71, 74.88), [RELATIVE, RELATIVE | {"side": "target"}]),
    "deps-san": ((30.44, 27.94, 74.85), [STEPS]),
    "deps-san-rs": ((30.75, 28.21, 74.85), [STEPS | {"resample": 0.1, "fill": 6}]),
    "deps-san-wink": ((30.64, 28.13, 74.85), [STEPS | {"window": 6}]),
}


@pytest.mark.parametrize("system", DEPS_SAN)
@pytest.mark.parametrize("corpus", WORDS)
def test_the_systems_of_the_deps_san_paper_have_its_options_and_report_its_figures(corpus, system):
    figures, expected = DEPS_SAN[system]
    name = f"{corpus}-{system}"
    assert f"reported {figures[WORDS[corpus]]:.2f} BLEU" in comment(name)
    assert variants(name) == expected
    assert differences(name, f"{corpus}-base") <= {"syntax.variants"}


def test_the_bases_of_the_deps_san_paper_have_its_settings():
    for corpus, steps in {"iwslt14-deen": 80_000, "wmt16-deen": 200_000}.items():
        base = recipe(f"{corpus}-base")
        settings = base.training
        assert (base.source, base.target, base.filters.max_words, settings.max_steps) == (
            "de",
            "en",
            80,
            steps,
        )
        assert (base.vocabulary.kind, base.vocabulary.size, base.model.dropout) == (
            "word",
            60_000,
            0.1,
        )
        assert (settings.learning_rate, settings.warmup, settings.betas) == (
            7e-4,
            8000,
            (0.9, 0.98),
        )
        assert (settings.epsilon, settings.label_smoothing, settings.batch_tokens) == (
            1e-8,
            0.1,
            4096,
        )
        assert (settings.schedule, settings.use, settings.best) == ("inverse_sqrt", "best", "loss")
        assert (base.decoding.beam_size, base.decoding.length_penalty) == (5, 0.6)


WEIGHTS = {f"iwslt14-deen-{system}": figures[2] for system, (figures, _) in DEPS_SAN.items()}


@pytest.mark.parametrize(("name", "millions"), [*WEIGHTS.items(), ("wmt16-deen-base", 105.57)])
def test_the_systems_of_the_deps_san_paper_have_its_number_of_weights(name, millions):
    size = recipe(name).vocabulary.size
    with torch.device("meta"):
        model = build(
            recipe(name).model, recipe(name).syntax, source_pieces=size, target_pieces=size
        )
    assert sum(parameter.numel() for parameter in model.parameters()) // 10_000 == round(
        100 * millions
    )


LAYERS_AND_VARIANCES = {
    "layers1": ({"layers": (1,)}, 29.83),
    "layers1-2": ({"layers": (1, 2)}, 30.00),
    "layers1-4": ({"layers": (1, 2, 3, 4)}, 29.89),
    "layers4-6": ({"layers": (4, 5, 6)}, 29.46),
    "layers1-6": ({"layers": "all"}, 28.79),
    "variance2": ({"variance": 2}, 29.84),
    "variance4": ({"variance": 4}, 29.82),
    "variance8": ({"variance": 8}, 30.03),
    "variance16": ({"variance": 16}, 30.08),
    "variance32": ({"variance": 32}, 29.64),
}


def test_the_ablations_of_deps_san_change_one_option_each():
    found = {
        name.removeprefix("iwslt14-deen-deps-san-")
        for name in ABLATIONS
        if name.startswith("iwslt14")
    }
    assert found == LAYERS_AND_VARIANCES.keys()
    for suffix, (change, figure) in LAYERS_AND_VARIANCES.items():
        name = f"iwslt14-deen-deps-san-{suffix}"
        assert variants(name) == [variants("iwslt14-deen-deps-san")[0] | change]
        assert differences(name, "iwslt14-deen-deps-san") == {"syntax.variants"}
        assert f"reported {figure:.2f} BLEU" in comment(name)


ENCODER = {"name": "dbsa", "layers": (4,), "heads": 1}
DECODER = ENCODER | {"side": "target"}


@pytest.mark.parametrize(
    ("suffix", "expected", "reported"),
    [
        ("base", [], "27.29"),
        ("dbsa-encoder", [ENCODER], "28.05"),
        ("dbsa-decoder", [DECODER], "27.86"),
        ("dbsa-both", [ENCODER, DECODER], "28.29"),
        ("words-base", [], "26.39"),
        ("words-dbsa-both", [ENCODER, DECODER], "26.62"),
    ],
)
def test_dependency_based_self_attention_stands_in_layer_4_of_each_side(suffix, expected, reported):
    name = f"aspec-jaen-{suffix}"
    assert variants(name) == expected
    assert all(variant.loss_weight == 1 for variant in recipe(name).syntax.variants)
    assert f"reported {reported} BLEU" in comment(name)
    changed = {key.partition(".")[0] for key in differences(name, "aspec-jaen-base")}
    assert changed <= ({"syntax", "vocabulary"} if "words" in suffix else {"syntax"})


def test_aspec_is_trained_as_in_the_paper():
    base = recipe("aspec-jaen-base")
    settings = base.training
    assert (base.source, base.target, base.vocabulary.size, base.vocabulary.joint) == (
        "ja",
        "en",
        100_000,
        True,
    )
    assert (base.filters.max_pieces, settings.label_smoothing) == (250, 0.1)
    assert settings.max_steps == round(20 * ceil(1_198_149 / 224), -3)
    assert settings.max_steps == 20 * settings.validate_every
    assert settings.batch_tokens >= settings.batch_sentences * (base.filters.max_pieces + 1)
    assert learning_rate(4000, settings, 512) == pytest.approx(512**-0.5 * 4000**-0.5)
    assert (settings.betas, settings.epsilon, settings.best, settings.use) == (
        (0.9, 0.98),
        1e-9,
        "bleu",
        "best",
    )
    assert (base.decoding.beam_size, base.decoding.length_penalty) == (4, 0.6)
    words = recipe("aspec-jaen-words-base").vocabulary
    # every line is counted: a word seen 5 times may be in any of them
    assert words.min_frequency == 5
    assert words.training_lines >= 2 * 1_198_149


LDD = {  # pairs to train on, sentences of a batch, warm-up, layers; BL, then LDD_KINDS
    "multi30k-words": (
        (29_000, 256, 400, 4),
        ("30.14", "31.29", "30.49", "30.71", "31.05", "27.80", "29.09"),
    ),
    "iwslt17-ende": (
        (206_112, 512, 4000, 6),
        ("26.13", "27.78", "26.16", "26.38", "26.39", "25.10", "25.41"),
    ),
    "iwslt17-enit": (
        (231_619, 512, 4000, 6),
        ("27.11", "29.34", "26.13", "25.65", "28.13", "25.23", "25.23"),
    ),
    "iwslt15-enzh": (
        (107_860, 512, 4000, 6),
        ("18.31", "20.25", "18.25", "18.85", "19.71", "17.89", "18.05"),
    ),
}


@pytest.mark.parametrize("corpus", LDD)
def test_labelled_distributions_have_16_heads_in_layer_1_and_8_in_the_others(corpus):
    (_, _, _, layers), (plain, *reported) = LDD[corpus]
    assert f"reported {plain} BLEU" in comment(f"{corpus}-base")
    assert recipe(f"{corpus}-base").model.heads_of("source") == (8,) * layers
    for kind, figure in zip(LDD_KINDS, reported, strict=True):
        name = f"{corpus}-{kind}"
        assert variants(name) == [
            {"name": "dependency_distribution", "kind": kind, "layers": (1,), "heads": 16}
        ]
        assert recipe(name).model.heads_of("source") == (16, *[8] * (layers - 1))
        assert recipe(name).model.heads_of("target") == (8,) * layers
        assert differences(name, f"{corpus}-base") == {"syntax.variants", "model.encoder_heads"}
        assert f"reported {figure} BLEU" in comment(name)


@pytest.mark.parametrize("corpus", LDD)
def test_labelled_distributions_are_trained_for_50_epochs_of_the_papers_batches(corpus):
    (pairs, sentences, warmup, layers), _ = LDD[corpus]
    base, settings = recipe(f"{corpus}-base"), recipe(f"{corpus}-base").training
    epoch = ceil(pairs / sentences)
    assert (settings.batch_sentences, settings.max_steps, settings.validate_every) == (
        sentences,
        50 * epoch,
        epoch,
    )
    assert settings.batch_tokens >= sentences * (base.filters.max_pieces + 1)
    assert (base.model.encoder_layers, base.model.decoder_layers, base.model.dropout) == (
        layers,
        layers,
        0.1,
    )
    assert (base.vocabulary.kind, base.vocabulary.min_frequency, base.filters.max_words) == (
        "word",
        2,
        256,
    )
    assert (settings.schedule, settings.warmup, settings.best) == ("noam", warmup, "bleu")
    peak = learning_rate(warmup, settings, base.model.model_dim)
    assert peak == pytest.approx(2.2e-3 if warmup == 400 else 7e-4, rel=0.02)


# all systems on Multi30k, and the others


def test_the_systems_on_multi30k_differ_from_the_plain_model_in_syntax_alone():
    lstms = {name for name in PATHS if recipe(name).model.architecture == "lstm"}
    names = [name for name in PATHS.keys() - lstms if re.match(r"multi30k-(?!words|modern)", name)]
    # PASCAL and 5 controls; LISA, tags, multi-task; 3 Deps-SAN, 6 of Yang et al., relative; 3 DBSA;
    # 7 LDD; structured attention; a mixture; distance and kinship masks, and other positions in the
    # tree; a graph network; 3 that read constituents; UDISCAL; the mixed encoder and parse2seq; 2
    # with planted trees; 2 diagonals; 3 with features of words; paths of relations
    assert len(names) == 1 + 6 + 3 + 10 + 3 + 7 + 1 + 1 + 6 + 1 + 3 + 1 + 2 + 2 + 2 + 3 + 1
    for name in names:
        free = {
            "syntax.variants",
            "tasks.parsing",
            "tasks.mixed",
            "tasks.mixed_only",
            "target_parser.model",
        }
        if name.startswith(("multi30k-pascal-", "multi30k-lisa-")):
            free |= {"parser.control", "parser.rewire"}
        if name.rpartition("-")[2] in (*LDD_KINDS, "udd"):
            free |= {"model.encoder_heads"}
            assert recipe(name).model.heads_of("source") == (16, 4, 4, 4)
        if name == "multi30k-features-full":
            # the compact parser gives no lemmas
            free |= {"parser.model"}
        assert differences(name, "multi30k-tiny") <= free


def test_a_recipe_with_a_supervised_decoder_names_a_parser_of_the_target():
    supervised = [
        name
        for name in PATHS
        if any((v.name, v.side) == ("dbsa", "target") for v in recipe(name).syntax.variants)
    ]
    assert len(supervised) == 3 + 3
    assert all(recipe(name).target_parser.model == "official" for name in supervised)


@pytest.mark.parametrize(
    ("control", "key", "value"),
    [
        *((control, "control", control) for control in ("random", "left", "right", "shuffled")),
        ("rewired50", "rewire", 0.5),
    ],
)
def test_a_control_of_pascal_differs_in_its_trees_alone(control, key, value):
    assert differences(f"multi30k-pascal-{control}", "multi30k-pascal") == {f"parser.{key}"}
    assert getattr(recipe(f"multi30k-pascal-{control}").parser, key) == value


def test_a_corpus_without_a_test_set_is_judged_by_the_bleu_of_its_validations():
    for name in ("tanaka-enja-base", "tanaka-enja-pascal"):
        settings = recipe(name).training
        assert (settings.best, settings.use, recipe(name).evaluation.tokenize) == (
            "bleu",
            "best",
            "none",
        )
    assert differences("tanaka-enja-pascal", "tanaka-enja-base") == {"syntax.variants"}


# words


CUT = {  # tokenizers of source and target, case, and whether the corpus comes as words
    "multi30k-words-base": ("spacy", "spacy", "", False),
    "iwslt17-ende-base": ("spacy", "spacy", "", False),
    "iwslt17-enit-base": ("spacy", "spacy", "", False),
    "iwslt15-enzh-base": ("spacy", "spacy", "", False),
    "iwslt14-deen-base": ("moses", "moses", "lowercase", False),
    "wmt16-deen-base": ("moses", "moses", "", False),
    "aspec-jaen-base": ("kytea", "moses", "", False),
    "aspec-jaen-words-base": ("kytea", "moses", "", False),
    "wat-enja-base": ("none", "kytea", "", False),
    "tanaka-enja-base": ("none", "none", "", False),
    "wmt17-ende-lstm": ("moses", "moses", "truecase", True),
    "wmt17-enru-lstm": ("moses", "moses", "truecase", False),
    "un-ruar-lstm": ("moses", "moses", "", False),
}


@pytest.mark.parametrize("name", CUT)
def test_a_paper_that_trained_on_words_is_tokenized_from_raw_text_and_scored_on_tokens(name):
    found = recipe(name)
    source, target = found.text_of("source"), found.text_of("target")
    case = next((key for key in ("truecase", "lowercase") if getattr(source, key)), "")
    assert (source.tokenizer, target.tokenizer, case, source.already_cut) == CUT[name]
    assert (found.evaluation.on, found.evaluation.tokenize) == ("tokens", "none")


def test_a_recipe_that_scores_without_a_tokenizer_says_that_it_scores_tokens():
    for name in PATHS:
        assert (recipe(name).evaluation.tokenize == "none") == (
            recipe(name).evaluation.on == "tokens"
        ), name
    # statmt's preprocessed text: trained on as it comes, scored as text
    for name in ("wmt17-ende-base", "wmt18-entr-base"):
        found = recipe(name)
        assert (found.text.already_cut, found.text.escape, found.evaluation.on) == (
            True,
            True,
            "text",
        )


@pytest.mark.parametrize("corpus", ["multi30k", "controlled"])
def test_the_modern_transformers_differ_in_the_parts_of_the_network_alone(corpus):
    plain = {"multi30k": "multi30k-tiny", "controlled": "controlled-base"}[corpus]
    base, pascal = f"{corpus}-modern-base", f"{corpus}-modern-pascal"
    parts = {"model.positions", "model.norm_kind", "model.feed_forward", "model.feedforward_dim"}
    assert differences(base, plain) == parts
    assert differences(pascal, base) == {"syntax.variants"}
    assert variants(pascal) == variants(f"{corpus}-pascal")
    # the products of both sub-layers have nearly as many weights
    assert 3 * recipe(base).model.feedforward_dim == pytest.approx(
        2 * recipe(plain).model.feedforward_dim, rel=0.02
    )


def test_the_mixed_encoder_differs_from_its_base_in_its_text_alone():
    for name in (name for name in PATHS if name.endswith(("-mixed", "-parse2seq"))):
        corpus = name.rpartition("-")[0]
        base = f"{corpus}-tiny" if corpus == "multi30k" else f"{corpus}-base"
        assert differences(name, base) == {"tasks.mixed"} | (
            {"tasks.mixed_only"} if "parse2seq" in name else set()
        )
