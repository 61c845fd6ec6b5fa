"""What is exported gives the translations of synmt in the other program."""

from functools import cache

import numpy as np
import pytest
import sentencepiece
import torch
from cases import cases
from refusing import assert_refused
from small_run import LSTM, PASCAL, SIZE, TEXT, make_run

from synmt.data.batch import collate
from synmt.data.corpus import Example
from synmt.decode.loaded_model import load_model
from synmt.decode.translator import Translator
from synmt.exchange.card import write_card
from synmt.exchange.export import export
from synmt.model.weights import save_weights
from synmt.recipe.load import load_recipe
from synmt.training.loss import Objective

MARIAN = {"positions": "vaswani", "feed_forward": "swish", "output_bias": True}
MODELS = {
    "post": ({}, ()),
    "tied": ({**MARIAN, "embeddings": "tied", "encoder_layers": 1}, ()),
    "learns": ({"feed_forward": "gelu"}, ({"name": "tree_planting", "layers": [1]},)),
    "pre": ({"norm": "pre", "embeddings": "separate", "encoder_heads": [8, 8]}, ()),
}


LINES = TEXT[:3]


@pytest.fixture(scope="module")
def run_of(tmp_path_factory):
    """Make a function from the name of a model to a run that has learned three sentences."""

    @cache
    def make(name):
        model, variants = MODELS[name]
        folder = tmp_path_factory.mktemp(name) / "run"
        run = make_run(folder, *variants, model={**SIZE, **model})
        loaded = load_model(run, run.recipe(), device="cpu", checkpoint="final")
        learn(loaded.model, loaded.source, LINES, TEXT[3:])
        save_weights(loaded.model, run.weights)
        return run

    return make


def exported(run, folder, to, **options):
    """Export a run."""
    loaded = load_model(run, run.recipe(), device="cpu", checkpoint="final")
    export(loaded.model, loaded.recipe, loaded.source, loaded.target, folder, to, **options)
    return folder


def learn(model, vocabulary, sources, targets):
    """Train a model for a moment, so that its translations end."""
    pairs = zip(vocabulary.encode_batch(sources), vocabulary.encode_batch(targets), strict=True)
    batch = collate([Example(n, np.array(s), np.array(t)) for n, (s, t) in enumerate(pairs)])
    objective = Objective(model.train(), 0.1)
    optimizer = torch.optim.Adam(model.parameters(), 5e-3)
    for _ in range(100):
        optimizer.zero_grad()
        (objective(batch)["loss"] / len(batch.target_positions)).backward()
        optimizer.step()
    model.eval()


@cache
def translations(run):
    """Translate without a length penalty; whitespace of pieces that are bytes counts once."""
    options = {"beam_size": 4, "length_penalty": 0.0, "max_length_ratio": 1e-9}
    translator = Translator.load(run, device="cpu", max_length_extra=100, **options)
    texts = [bare(one.text) for one in translator.translate(LINES)]
    # at the limit, each program ends in its own way
    assert max(len(translator.target.encode_ids(text)) for text in texts) < 90
    assert len(set(texts)) > 1
    return texts


def bare(text):
    """Join the words of a text by single spaces."""
    return " ".join(text.split())


@pytest.mark.parametrize("name", MODELS)
def test_ctranslate2_translates_as_synmt_does_and_in_int8_nearly(name, run_of, tmp_path):
    ctranslate2 = pytest.importorskip("ctranslate2")
    run = run_of(name)
    folder = exported(run, tmp_path / "out", "ctranslate2")
    source, target = (
        sentencepiece.SentencePieceProcessor(model_file=str(folder / f"{side}.spm"))
        for side in ("source", "target")
    )
    pieces = [[*source.encode(line, out_type=str), "</s>"] for line in LINES]
    translator, in_int8 = (
        ctranslate2.Translator(str(folder), compute_type=precision)
        for precision in ("float32", "int8")
    )
    found = translator.translate_batch(
        pieces,
        beam_size=4,
        length_penalty=0,
        max_decoding_length=99,
        disable_unk=True,
        suppress_sequences=[["<pad>"], ["<s>"]],
    )
    texts = [bare(target.decode(one.hypotheses[0])) for one in found]
    assert texts == translations(run)
    # small models that have learned little hang on rounding, so their probabilities are compared
    exact, near = (
        np.concatenate(
            [
                one.log_probs
                for one in scorer.score_batch(pieces, [one.hypotheses[0] for one in found])
            ]
        )
        for scorer in (translator, in_int8)
    )
    # without VNNI, sums of two of its products in int8 are cut off
    assert abs(exact - near).mean() < (0.03 if torch.cpu._is_vnni_supported() else 0.5)
    assert (exact != near).any()


@pytest.mark.parametrize("name", ["post", "tied", "learns"])
def test_transformers_translates_as_synmt_does_also_what_it_exported(name, run_of, tmp_path):
    transformers = pytest.importorskip("transformers")
    run = run_of(name)
    folder = exported(run, tmp_path / "out", "transformers")
    tokenizer = transformers.MarianTokenizer.from_pretrained(folder)
    model = transformers.MarianMTModel.from_pretrained(folder).eval()
    batch = tokenizer(LINES, return_tensors="pt", padding=True)
    found = model.generate(**batch, num_beams=4, length_penalty=0.0, max_length=100)
    texts = tokenizer.batch_decode(found, skip_special_tokens=True)
    assert list(map(bare, texts)) == translations(run) == translations(folder)
    loaded = load_model(run, run.recipe(), device="cpu", checkpoint="final")
    assert [ids[:-1] for ids in tokenizer(LINES)["input_ids"]] == loaded.source.encode_batch(LINES)


REFUSED = """
pascal | ctranslate2 | ctranslate2 cannot compute this model: its attention is changed by `pascal`
lstm | transformers | it is an LSTM
rotary | ctranslate2 | its positions are rotary; it has SwiGLU or RMSNorm
pre | transformers | its norms are before the sub-layers .`norm: pre`.
separate | transformers | its output layer has its own weights
"""
KINDS = {
    "pascal": (SIZE, (PASCAL,)),
    "lstm": (LSTM, ()),
    "rotary": ({**SIZE, "positions": "rotary", "feed_forward": "swiglu"}, ()),
    "pre": ({**SIZE, "norm": "pre"}, ()),
    "separate": ({**SIZE, "embeddings": "separate"}, ()),
}


@pytest.mark.parametrize(("kind", "to", "message"), cases(REFUSED, "|"))
def test_a_model_that_the_other_program_cannot_compute_is_refused(kind, to, message, tmp_path):
    model, variants = KINDS[kind]
    run = make_run(tmp_path / "run", *variants, model=model)
    assert_refused(message, exported, run, tmp_path / "out", to)
    assert not (tmp_path / "out").exists()


def test_a_folder_with_other_files_is_not_replaced(tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine.txt").write_text("mine")
    run = make_run(tmp_path / "run")
    assert_refused("has other files", exported, run, tmp_path / "out", "transformers")
    assert (tmp_path / "out" / "mine.txt").exists()


def test_the_card_goes_along_and_names_the_library(tmp_path):
    run, card = make_run(tmp_path / "run"), tmp_path / "README.md"
    write_card(card, load_recipe("multi30k-tiny"), 29_000, [], None, None)
    assert "29,000 sentence pairs. Licence of the text: for research" in card.read_text("utf-8")
    folder = exported(run, tmp_path / "out", "transformers", card=card)
    assert "library_name: transformers" in (folder / card.name).read_text(encoding="utf-8")
