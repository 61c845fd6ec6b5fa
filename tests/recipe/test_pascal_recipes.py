"""The recipes of the PASCAL paper: its rates, sizes, figures and ablations, typed from the
paper."""

import pytest
from each import of_each
from shipped import ABLATIONS, assert_has, assert_reports, differences, recipe, rows, variants

from synmt.recipe.yaml_text import parse_yaml_value

pytestmark = pytest.mark.journey

FIRST, *ROWS = rows("""
    nc11          nc11-deen     wmt18-entr    wmt16-ende    wmt17-ende    wat-enja
    base
    1e-3:.997     1e-3:.997     1e-3:.997     1e-3:.997     1e-3:.997     1e-3:.997
    25.0          26.6          13.1          33.0          25.5          43.1
    pascal
    7e-4:.997     7e-4:.997     7e-4:.98      7e-4:.98      7e-4:.997     7e-4:.997
    25.9          27.4          14.0          33.9          26.1          44.0
    lisa
    7e-4:.997     7e-4:.98      7e-4:.98      7e-4:.997     7e-4:.997     1e-3:.997
    25.3          27.1          13.6          33.6          25.7          43.2
    multitask
    7e-4:.997     7e-4:.98      7e-4:.997     1e-3:.997     1e-3:.997     7e-4:.98
    24.8          26.7          14.0          32.4          24.6          42.7
    tags
    7e-4:.997     7e-4:.997     7e-4:.997     1e-3:.997     1e-3:.997     1e-3:.997
    25.5          26.8          13.0          31.9          25.1          42.8
""")
SYSTEMS = {
    system: dict(zip(FIRST, zip(rates, figures, strict=True), strict=True))
    for [system], rates, figures in zip(ROWS[::3], ROWS[1::3], ROWS[2::3], strict=True)
}
"""For each system and corpus: learning rate and Adam's second beta, and the reported BLEU."""
FILTERED = ("nc11", "nc11-deen", "wmt16-ende")
HEADS_AND_IGNORING = dict(
    zip(FIRST, [(2, 0.4), (8, 0), (7, 0.3), (5, 0), (7, 0.3), (7, 0)], strict=True)
)
OF_SYSTEMS = {
    "pascal": {"syntax.variants", "filters.language"},
    "lisa": {"syntax.variants"},
    "tags": {"syntax.variants"},
    "multitask": {"tasks.parsing"},
}


@of_each([(corpus, system) for corpus in FIRST for system in SYSTEMS])
def test_the_systems_of_the_pascal_paper_have_its_rates_and_report_its_figures(pair):
    corpus, system = pair
    name = "-".join(pair)
    settings, figure = SYSTEMS[system][corpus]
    rate, beta = settings.split(":")
    assert_has(name, f"training.learning_rate={rate} training.betas=[0.9,{beta}]")
    assert_reports(name, figure)
    # the paper itself tokenises some texts, and limits them to 80 words
    assert recipe(name).filters.max_words == (80 if corpus in FILTERED else 0)
    assert recipe(name).filters.language is (system == "pascal" and corpus in FILTERED)
    if system != "base":
        free = {"training.learning_rate", "training.betas"} | OF_SYSTEMS[system]
        assert differences(name, f"{corpus}-base") <= free


@of_each(FIRST)
def test_the_corpora_of_the_pascal_paper_have_its_sizes(corpus):
    base = recipe(f"{corpus}-base")
    size = "training.max_steps=100000 model.dropout=0.1 vocabulary.size=32768"
    if corpus in FIRST[:3]:
        size = "training.max_steps=20000 model.dropout=0.3 vocabulary.size=16384"
    assert base.training.batch_tokens * base.training.accumulate == 2048 * 16
    settings = """
        vocabulary.joint=true model.embeddings=shared training.warmup=8000
        training.schedule=inverse_sqrt training.epsilon=1e-9 training.label_smoothing=0.1
        training.clip_norm=0 training.use=last decoding.beam_size=4 decoding.length_penalty=0.6
        model.encoder_layers=6 model.decoder_layers=6 model.model_dim=512 model.heads=8
        model.feedforward_dim=2048 model.norm=post
    """
    assert_has(f"{corpus}-base", f"{size} {settings}")


@of_each(FIRST)
def test_the_syntactic_systems_of_the_pascal_paper_stand_in_layer_1(corpus):
    heads, ignore = HEADS_AND_IGNORING[corpus]
    (pascal,) = variants(f"{corpus}-pascal")
    assert pascal.pop("ignore", 0) == ignore
    assert pascal == {"name": "pascal", "layers": [1], "heads": heads, "variance": 1}
    assert variants(f"{corpus}-lisa") == [{"name": "lisa", "layers": [1], "heads": 1}]
    assert variants(f"{corpus}-tags") == [{"name": "tag_embedding", "size": 10}]
    assert_has(f"{corpus}-multitask", "syntax.variants=[] tasks.parsing=dependencies")


OTHERS = "add combine: add   parent-only shape: parent_only   no-ignoring ignore: 0"
PASCAL_ABLATIONS = {
    **{f"layer{number}": f"layers: [{number}]" for number in range(2, 7)},
    **{f"variance{value}": f"variance: {value}" for value in (4, 9, 16, 25)},
    **{f"heads{number}": f"heads: {number}" for number in range(1, 9)},
    **dict(each.split(maxsplit=1) for each in OTHERS.split("   ")),
    "ignore0.3": "ignore: 0.3",
    "as-ende": "heads: 2, ignore: 0.4",
}
VALIDATION_BLEU = rows("""
    nc11-pascal layer2 22.5 layer3 22.5 layer4 22.6 layer5 22.9 layer6 22.4 parent-only 22.5
    nc11-pascal variance4 22.7 variance9 22.8 variance16 22.7 variance25 22.8 no-ignoring 23.0
    nc11-deen-pascal layer2 20.1 layer3 23.8 layer4 23.8 layer5 23.8 layer6 23.9 parent-only 22.4
    nc11-deen-pascal variance4 24.3 variance9 24.3 variance16 24.4 variance25 24.1
    wmt18-entr-pascal no-ignoring 13.6
    wmt17-ende-pascal no-ignoring 31.6
    nc11-base filtered 22.8
    nc11-deen-base filtered 24.0
    wmt16-ende-base filtered 28.7
""")


@of_each(name for name in ABLATIONS if "-pascal-" in name)
def test_an_ablation_of_pascal_changes_its_option_and_nothing_else(name):
    corpus, suffix = name.split("-pascal-")
    assert differences(name, f"{corpus}-pascal") == {"syntax.variants"}
    before, after = ({"ignore": 0, **variants(which)[0]} for which in (f"{corpus}-pascal", name))
    assert after == before | parse_yaml_value(f"{{{PASCAL_ABLATIONS[suffix]}}}")


def test_every_ablation_of_the_pascal_paper_is_there():
    for system, *cells in VALIDATION_BLEU:
        for suffix, figure in zip(cells[::2], cells[1::2], strict=True):
            assert_reports(f"{system}-{suffix}", f"{figure} validation")
    for corpus in ("nc11", "nc11-deen"):
        assert f"{corpus}-pascal-add" in ABLATIONS
        names = [name for name in ABLATIONS if name.startswith(f"{corpus}-pascal-h")]
        heads = {recipe(name).syntax.variants[0].heads for name in names}
        assert heads | {HEADS_AND_IGNORING[corpus][0]} == set(range(1, 9))
