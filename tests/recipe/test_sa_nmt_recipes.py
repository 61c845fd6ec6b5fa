"""The recipes of the SA-NMT paper: its figures, sizes and training, typed from the paper and its
released code."""

import pytest
from shipped import PATHS, comment, differences, recipe, variants

from synmt.corpora.known import KNOWN_CORPORA
from synmt.training.optimizer import learning_rate

pytestmark = pytest.mark.journey

SYSTEMS = {  # table 2: De-En on newstest2016 and newstest2017, Ru-En, En-De on both, En-Ru, Ru-Ar
    "lstm": (None, ("33.16", "28.94", "30.17", "29.92", "23.44", "26.41", "37.04")),
    "fa": ({"normalize": "flat"}, ("33.55", "29.43", "30.22", "30.09", "24.03", "26.91", "37.41")),
    "fa-separate": (
        {"normalize": "flat", "attention": "separate"},
        ("33.24", "29.00", "30.34", "29.98", "23.97", "26.75", "37.20"),
    ),
    "sa-1set": ({"sets": 1}, ("33.51", "29.15", "30.34", "30.29", "24.12", "26.96", "37.34")),
    "sa-hard": ({"hard": True}, ("33.38", "28.96", "29.98", "29.93", "23.84", "26.71", "37.33")),
    "sa": ({}, ("33.73", "29.45", "30.41", "30.22", "24.26", "27.05", "37.49")),
    "sa-separate": (
        {"attention": "separate"},
        ("33.18", "29.19", "30.15", "30.17", "23.94", "27.01", "37.22"),
    ),
}
DIRECTIONS = {  # languages, columns of the table, sentences of a batch, updates between validations
    "wmt17-deen": (("de", "en"), (0, 1), 32, 10_000),
    "wmt17-ruen": (("ru", "en"), (2,), 32, 5_000),
    "wmt17-ende": (("en", "de"), (3, 4), 32, 10_000),
    "wmt17-enru": (("en", "ru"), (5,), 32, 5_000),
    "un-ruar": (("ru", "ar"), (6,), 64, 10_000),
}
SPLITS = {  # validation text and test sets with their sentences
    "wmt17-ende-2015": (
        "newstest2015",
        ("newstest2016", "newstest2017"),
        ("2,169", "2,999", "3,004"),
    ),
    "wmt17-enru": ("newstest2016", ("newstest2017",), ("2,998", "3,001")),
    "un-ruar": ("dev", ("test",), ("4,000", "4,000")),
}


@pytest.mark.parametrize("system", SYSTEMS)
@pytest.mark.parametrize("direction", DIRECTIONS)
def test_the_systems_of_the_sa_nmt_paper_report_its_figures(direction, system):
    options, figures = SYSTEMS[system]
    name = f"{direction}-{system}"
    first, *more = (figures[column] for column in DIRECTIONS[direction][1])
    assert f"reported {first} BLEU" in comment(name)
    assert not more or f"{first} BLEU on newstest2016 and {more[0]} on newstest2017" in comment(
        name
    )
    assert ("newstest2017" in comment(name)) is (direction != "un-ruar")
    assert variants(name) == ([] if options is None else [{"name": "latent_tree", **options}])
    assert differences(name, f"{direction}-lstm") == (
        set() if options is None else {"syntax.variants"}
    )


@pytest.mark.parametrize("direction", DIRECTIONS)
def test_the_plain_lstms_are_trained_as_in_the_paper(direction):
    languages, _, sentences, validate_every = DIRECTIONS[direction]
    base, settings = recipe(f"{direction}-lstm"), recipe(f"{direction}-lstm").training
    assert (base.source, base.target) == languages
    assert (settings.batch_sentences, settings.validate_every) == (sentences, validate_every)
    assert settings.batch_tokens == sentences * (base.filters.max_pieces + 1)
    assert (settings.betas, settings.epsilon, settings.clip_norm) == ((0.9, 0.999), 1e-8, 5)
    assert (settings.label_smoothing, settings.best, settings.patience) == (0, "loss", 0)
    rates = [learning_rate(1_000_000, settings, 1024, decays=decays) for decays in range(3)]
    assert rates == [1e-3, 5e-4, 2.5e-4]
    assert learning_rate(1, settings, 1024) == 1e-3
    assert settings.max_decays == 5
    assert (base.filters.max_words, base.filters.max_ratio, base.filters.max_punctuation) == (
        100,
        2,
        0.25,
    )


@pytest.mark.parametrize("direction", DIRECTIONS)
def test_the_plain_lstms_have_the_papers_sizes(direction):
    base = recipe(f"{direction}-lstm")
    model, vocabulary = base.model, base.vocabulary
    assert (model.architecture, model.encoder_layers, model.decoder_layers) == ("lstm", 2, 2)
    assert (model.model_dim, model.embedding_dim or model.model_dim) == (1024, 1024)
    assert (model.dropout, model.initial_range, model.embeddings) == (0.3, 0.04, "tied")
    assert (vocabulary.kind, vocabulary.size, vocabulary.joint) == ("bpe", 32_000, False)
    assert (
        base.decoding.beam_size,
        base.decoding.max_length_ratio,
        base.decoding.max_length_extra,
    ) == (5, 1.5, 0)
    assert base.evaluation.tokenize == "none"


def test_the_other_directions_differ_from_english_to_german_in_what_the_paper_says():
    of_corpus = {"source", "target", "corpus.name"}
    base = "wmt17-ende-lstm"
    validation = {"training.validate_every", "training.save_every"}
    assert differences("wmt17-deen-lstm", base) == {"source", "target", "target_parser.model"}
    # statmt's German text comes as words, the others are cut here
    cut = {"text.already_cut"}
    assert differences("wmt17-enru-lstm", base) == {"target", "corpus.name"} | cut | validation
    assert differences("wmt17-ruen-lstm", base) == of_corpus | cut | validation | {
        "target_parser.model"
    }
    cut |= {"text.split_hyphens", "text.escape", "text.truecase"}
    assert differences("un-ruar-lstm", base) == of_corpus | cut | {
        "training.batch_sentences",
        "training.batch_tokens",
    }


@pytest.mark.parametrize("corpus", SPLITS)
def test_the_corpora_of_the_sa_nmt_paper_have_its_splits(corpus):
    valid, tests, sentences = SPLITS[corpus]
    known = KNOWN_CORPORA[corpus]
    assert (known.valid, known.test) == (valid, tests)
    assert tuple(f"{known.counts[split]:,}" for split in (known.valid, *known.test)) == sentences


def test_the_systems_on_multi30k_differ_in_their_trees_alone_and_share_the_text_of_the_transformers():
    lstms = {
        name
        for name in PATHS
        if name.startswith("multi30k-") and recipe(name).model.architecture == "lstm"
    }
    others = {"gcn", "tree_lstm", "latent_graph"}
    assert {
        name for name in lstms if not others & {variant["name"] for variant in variants(name)}
    } == {f"multi30k-{system}" for system in SYSTEMS}
    for name in lstms:
        assert differences(name, "multi30k-lstm") <= {
            "syntax.variants",
            "training.max_steps",
            "training.pretraining",
        }
    for system, (options, _) in SYSTEMS.items():
        name = f"multi30k-{system}"
        assert variants(name) == ([] if options is None else [{"name": "latent_tree", **options}])
        assert differences(name, "multi30k-lstm") <= {"syntax.variants"}
    lstm, transformer = recipe("multi30k-lstm"), recipe("multi30k-tiny")
    for section in ("source", "target", "corpus", "filters", "vocabulary"):
        assert getattr(lstm, section) == getattr(transformer, section)


def test_structured_attention_on_multi30k_owns_two_heads_of_the_first_layer():
    assert variants("multi30k-tree-attention") == [
        {"name": "tree_attention", "layers": (1,), "heads": 2}
    ]
    assert differences("multi30k-tree-attention", "multi30k-tiny") == {"syntax.variants"}
