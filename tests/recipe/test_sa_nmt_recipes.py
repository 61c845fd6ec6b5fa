"""The recipes of the SA-NMT paper: its figures, sizes and training, typed from the paper and its
released code."""

import pytest
from each import of_each
from shipped import PATHS, assert_has, assert_reports, comment, differences, recipe, rows, variants

from synmt.corpora.known import KNOWN_CORPORA
from synmt.training.optimizer import learning_rate

pytestmark = pytest.mark.journey

# table 2: De-En on newstest2016 and newstest2017, Ru-En, En-De on both, En-Ru, Ru-Ar
FIGURES = rows("""
    lstm         33.16  28.94  30.17  29.92  23.44  26.41  37.04
    fa           33.55  29.43  30.22  30.09  24.03  26.91  37.41
    fa-separate  33.24  29.00  30.34  29.98  23.97  26.75  37.20
    sa-1set      33.51  29.15  30.34  30.29  24.12  26.96  37.34
    sa-hard      33.38  28.96  29.98  29.93  23.84  26.71  37.33
    sa           33.73  29.45  30.41  30.22  24.26  27.05  37.49
    sa-separate  33.18  29.19  30.15  30.17  23.94  27.01  37.22
""")
OPTIONS = {
    "fa": {"normalize": "flat"},
    "fa-separate": {"normalize": "flat", "attention": "separate"},
    "sa-1set": {"sets": 1},
    "sa-hard": {"hard": True},
    "sa": {},
    "sa-separate": {"attention": "separate"},
}
# columns of the table, sentences of a batch, updates between validations
DIRECTIONS = rows("""
    wmt17-deen  de en  1 2  32  10000
    wmt17-ruen  ru en  3 3  32   5000
    wmt17-ende  en de  4 5  32  10000
    wmt17-enru  en ru  6 6  32   5000
    un-ruar     ru ar  7 7  64  10000
""")
# validation text and test sets with their sentences
SPLITS = rows("""
    wmt17-ende-2015  newstest2015 2169  newstest2016 2999  newstest2017 3004
    wmt17-enru       newstest2016 2998  newstest2017 3001
    un-ruar          dev 4000  test 4000
""")


def system_of(name):
    """Return the variants that the system of a name has."""
    return [{"name": "latent_tree", **OPTIONS[name]}] if name in OPTIONS else []


@of_each([(direction, figures) for direction in DIRECTIONS for figures in FIGURES])
def test_the_systems_of_the_sa_nmt_paper_report_its_figures(pair):
    (direction, _, _, first, last, _, _), figures = pair
    name = f"{direction}-{figures[0]}"
    one, other = (figures[int(column)] for column in (first, last))
    assert_reports(name, one)
    assert first == last or f"{one} BLEU on newstest2016 and {other} on n" in comment(name)
    assert variants(name) == system_of(figures[0])
    assert differences(name, f"{direction}-lstm") == {"syntax.variants" for _ in variants(name)}


@of_each(DIRECTIONS)
def test_the_plain_lstms_are_trained_as_in_the_paper(row):
    direction, source, target, _, _, sentences, validate_every = row
    name = f"{direction}-lstm"
    settings = recipe(name).training
    assert settings.batch_tokens == int(sentences) * (recipe(name).filters.max_pieces + 1)
    assert learning_rate(1, settings, 1024) == 1e-3
    assert learning_rate(1_000_000, settings, 1024, decays=2) == 2.5e-4
    values = f"""
        source={source} target={target} training.batch_sentences={sentences}
        training.validate_every={validate_every} training.betas=[0.9,0.999] training.epsilon=1e-8
        training.clip_norm=5 training.label_smoothing=0 training.best=loss training.patience=0
        training.max_decays=5 filters.max_words=100 filters.max_ratio=2
        filters.max_punctuation=0.25 model.architecture=lstm model.encoder_layers=2
        model.decoder_layers=2 model.model_dim=1024 model.dropout=0.3 model.initial_range=0.04
        model.embeddings=tied vocabulary.kind=bpe vocabulary.size=32000 vocabulary.joint=false
        decoding.beam_size=5 decoding.max_length_ratio=1.5 decoding.max_length_extra=0
        evaluation.tokenize=none
    """
    assert_has(name, values)
    assert recipe(name).model.embedding_dim in (0, 1024)


@of_each(SPLITS)
def test_the_corpora_of_the_sa_nmt_paper_have_its_splits(row):
    corpus, *cells = row
    known = KNOWN_CORPORA[corpus]
    assert [known.valid, *known.test] == cells[::2]
    assert [str(known.counts[split]) for split in cells[::2]] == cells[1::2]


def test_the_systems_on_multi30k_differ_in_their_trees_and_share_the_text_of_the_transformers():
    for system, *_ in FIGURES:
        assert variants(f"multi30k-{system}") == system_of(system)
        assert differences(f"multi30k-{system}", "multi30k-lstm") <= {"syntax.variants"}
    names = [name for name in PATHS if name.startswith("multi30k-")]
    free = {"syntax.variants", "training.max_steps", "training.pretraining"}
    for name in names:
        if recipe(name).model.architecture == "lstm":
            assert differences(name, "multi30k-lstm") <= free
    lstm, transformer = recipe("multi30k-lstm"), recipe("multi30k-tiny")
    for section in ("source", "target", "corpus", "filters", "vocabulary"):
        assert getattr(lstm, section) == getattr(transformer, section)
