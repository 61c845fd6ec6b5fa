"""The recipes of the PASCAL paper: its rates, sizes, figures and ablations, typed from the
paper."""

import pytest
from shipped import ABLATIONS, comment, differences, recipe, variants

pytestmark = pytest.mark.journey

FIRST = ("nc11", "nc11-deen", "wmt18-entr", "wmt16-ende", "wmt17-ende", "wat-enja")
RATES = {  # learning rate and Adam's second beta, in the order of FIRST
    "base": [(1e-3, 0.997)] * 6,
    "pascal": [
        (7e-4, 0.997),
        (7e-4, 0.997),
        (7e-4, 0.98),
        (7e-4, 0.98),
        (7e-4, 0.997),
        (7e-4, 0.997),
    ],
    "lisa": [
        (7e-4, 0.997),
        (7e-4, 0.98),
        (7e-4, 0.98),
        (7e-4, 0.997),
        (7e-4, 0.997),
        (1e-3, 0.997),
    ],
    "multitask": [
        (7e-4, 0.997),
        (7e-4, 0.98),
        (7e-4, 0.997),
        (1e-3, 0.997),
        (1e-3, 0.997),
        (7e-4, 0.98),
    ],
    "tags": [
        (7e-4, 0.997),
        (7e-4, 0.997),
        (7e-4, 0.997),
        (1e-3, 0.997),
        (1e-3, 0.997),
        (1e-3, 0.997),
    ],
}
REPORTED = {
    "base": (25.0, 26.6, 13.1, 33.0, 25.5, 43.1),
    "pascal": (25.9, 27.4, 14.0, 33.9, 26.1, 44.0),
    "lisa": (25.3, 27.1, 13.6, 33.6, 25.7, 43.2),
    "multitask": (24.8, 26.7, 14.0, 32.4, 24.6, 42.7),
    "tags": (25.5, 26.8, 13.0, 31.9, 25.1, 42.8),
}
HEADS_AND_IGNORING = dict(
    zip(FIRST, [(2, 0.4), (8, 0), (7, 0.3), (5, 0), (7, 0.3), (7, 0)], strict=True)
)
OWN_KEYS = {
    "pascal": {"syntax.variants", "filters.language"},
    "lisa": {"syntax.variants"},
    "tags": {"syntax.variants"},
    "multitask": {"tasks.parsing"},
}


@pytest.mark.parametrize("system", RATES)
@pytest.mark.parametrize("corpus", FIRST)
def test_the_systems_of_the_pascal_paper_have_its_rates_and_report_its_figures(corpus, system):
    place = FIRST.index(corpus)
    name = f"{corpus}-{system}"
    settings = recipe(name).training
    assert (settings.learning_rate, *settings.betas) == (
        RATES[system][place][0],
        0.9,
        RATES[system][place][1],
    )
    assert f"reported {REPORTED[system][place]:.1f} BLEU" in comment(name)
    filtered = system == "pascal" and corpus in ("nc11", "nc11-deen", "wmt16-ende")
    assert recipe(name).filters.language is filtered
    if system != "base":
        free = {"training.learning_rate", "training.betas"} | OWN_KEYS[system]
        assert differences(name, f"{corpus}-base") <= free


@pytest.mark.parametrize("corpus", FIRST)
def test_the_corpora_of_the_pascal_paper_have_its_sizes(corpus):
    base = recipe(f"{corpus}-base")
    small = corpus in FIRST[:3]
    assert base.training.max_steps == (20_000 if small else 100_000)
    assert base.model.dropout == (0.3 if small else 0.1)
    assert base.vocabulary.size == (16_384 if small else 32_768)
    assert base.vocabulary.joint
    assert base.model.embeddings == "shared"
    assert base.training.batch_tokens * base.training.accumulate == 2048 * 16
    assert (base.training.warmup, base.training.schedule) == (8000, "inverse_sqrt")
    assert (base.training.epsilon, base.training.label_smoothing, base.training.clip_norm) == (
        1e-9,
        0.1,
        0,
    )
    assert (base.decoding.beam_size, base.decoding.length_penalty, base.training.use) == (
        4,
        0.6,
        "last",
    )
    model = base.model
    assert (model.encoder_layers, model.decoder_layers, model.model_dim, model.feedforward_dim) == (
        6,
        6,
        512,
        2048,
    )
    assert (model.heads, model.norm) == (8, "post")


@pytest.mark.parametrize("corpus", FIRST)
def test_only_the_text_that_the_pascal_paper_tokenises_itself_is_limited_to_80_words(corpus):
    limit = 80 if corpus in ("nc11", "nc11-deen", "wmt16-ende") else 0
    for system in RATES:
        assert recipe(f"{corpus}-{system}").filters.max_words == limit


@pytest.mark.parametrize("corpus", FIRST)
def test_the_syntactic_systems_of_the_pascal_paper_stand_in_layer_1(corpus):
    heads, ignore = HEADS_AND_IGNORING[corpus]
    (pascal,) = variants(f"{corpus}-pascal")
    assert pascal.pop("ignore", 0) == ignore
    assert pascal == {"name": "pascal", "layers": (1,), "heads": heads, "variance": 1}
    assert variants(f"{corpus}-lisa") == [{"name": "lisa", "layers": (1,), "heads": 1}]
    assert recipe(f"{corpus}-lisa").syntax.variants[0].loss_weight == 1
    assert variants(f"{corpus}-tags") == [{"name": "tag_embedding", "size": 10}]
    assert variants(f"{corpus}-multitask") == []
    assert recipe(f"{corpus}-multitask").tasks.parsing == "dependencies"


PASCAL_ABLATIONS = {
    **{f"layer{number}": {"layers": (number,)} for number in range(2, 7)},
    **{f"variance{value}": {"variance": value} for value in (4, 9, 16, 25)},
    **{f"heads{number}": {"heads": number} for number in range(1, 9)},
    "parent-only": {"shape": "parent_only"},
    "add": {"combine": "add"},
    "no-ignoring": {"ignore": 0},
    "ignore0.3": {"ignore": 0.3},
    "as-ende": {"heads": 2, "ignore": 0.4},
}
VALIDATION_BLEU = {
    "nc11": {
        "layer2": 22.5,
        "layer3": 22.5,
        "layer4": 22.6,
        "layer5": 22.9,
        "layer6": 22.4,
        "parent-only": 22.5,
    }
    | {
        "variance4": 22.7,
        "variance9": 22.8,
        "variance16": 22.7,
        "variance25": 22.8,
        "no-ignoring": 23.0,
    },
    "nc11-deen": {
        "layer2": 20.1,
        "layer3": 23.8,
        "layer4": 23.8,
        "layer5": 23.8,
        "layer6": 23.9,
        "parent-only": 22.4,
    }
    | {"variance4": 24.3, "variance9": 24.3, "variance16": 24.4, "variance25": 24.1},
    "wmt18-entr": {"no-ignoring": 13.6},
    "wmt17-ende": {"no-ignoring": 31.6},
}


@pytest.mark.parametrize("name", [name for name in ABLATIONS if "-pascal-" in name])
def test_an_ablation_of_pascal_changes_its_option_and_nothing_else(name):
    corpus, suffix = name.split("-pascal-")
    assert differences(name, f"{corpus}-pascal") == {"syntax.variants"}
    before, after = ({"ignore": 0, **variants(which)[0]} for which in (f"{corpus}-pascal", name))
    assert after == before | PASCAL_ABLATIONS[suffix]


def test_every_ablation_of_the_pascal_paper_is_there():
    for corpus, figures in VALIDATION_BLEU.items():
        for suffix, figure in figures.items():
            assert f"reported {figure:.1f} validation BLEU" in comment(f"{corpus}-pascal-{suffix}")
    for corpus in ("nc11", "nc11-deen"):
        assert f"{corpus}-pascal-add" in ABLATIONS
        heads = {
            recipe(name).syntax.variants[0].heads
            for name in ABLATIONS
            if name.startswith(f"{corpus}-pascal-h")
        }
        assert heads | {HEADS_AND_IGNORING[corpus][0]} == set(range(1, 9))
    for corpus, figure in {"nc11": 22.8, "nc11-deen": 24.0, "wmt16-ende": 28.7}.items():
        assert differences(f"{corpus}-base-filtered", f"{corpus}-base") == {"filters.language"}
        assert f"reported {figure:.1f} validation BLEU" in comment(f"{corpus}-base-filtered")
