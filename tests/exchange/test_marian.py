"""A model of Hugging Face is a run that computes what transformers computes."""

import json
import os
import re
from itertools import chain
from types import SimpleNamespace

import pytest
import sentencepiece
import torch
from refusing import assert_fails, assert_refused
from safetensors.torch import load_file
from small_run import TEXT
from tiny import succeed, write_corpus, write_recipe

from synmt.arrays import SIDES
from synmt.data.batch import collate_source
from synmt.data.vocabulary import BOS, EOS, PAD, UNK, Vocabulary
from synmt.decode.translator import Translator
from synmt.exchange.hub import model_folder
from synmt.run_folder import Run, find_run

transformers = pytest.importorskip("transformers")

SHAPES = {
    "tiny": {"encoder_layers": 2, "decoder_layers": 1},
    "unlike heads": {"encoder_attention_heads": 2, "activation_function": "relu"},
    "separate vocabularies": {"share_encoder_decoder_embeddings": False},
    "untied": {"share_encoder_decoder_embeddings": False, "tie_word_embeddings": False},
}
HARD = [
    *TEXT,
    "„Quotes“ & entities &amp; “x” … — a\u00a0b",
    "日本語 😀😀 emoji ▁ bar ß ÄÖ",
    "  double  space \t",
    "x" * 60,
    ">>deu<< The monkey.",
    ">>xxx<< The monkey.",
    "",
]


def segmenter(lines, path):
    """Train a real SentencePiece model."""
    with open(path, "wb") as out:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(lines),
            model_writer=out,
            vocab_size=60,
            hard_vocab_limit=False,
            character_coverage=1.0,
            minloglevel=2,
        )
    return sentencepiece.SentencePieceProcessor(model_file=str(path))


def write_marian(folder, seed=1, **options):
    """Write a Marian Transformer with random weights as transformers does."""
    folder.mkdir(parents=True)
    models = [
        segmenter(TEXT[:3], folder / "source.spm"),
        segmenter(TEXT[3:], folder / "target.spm"),
    ]
    pieces = [list(chain(*model.encode(TEXT, out_type=str))) for model in models]
    shared = options.get("share_encoder_decoder_embeddings", True)
    tables = {"vocab.json": pieces[0] + pieces[1] * shared}
    if not shared:
        tables["target_vocab.json"] = pieces[1]
    for name, table in tables.items():
        # a piece that a segmenter makes may be missing
        known = dict.fromkeys(["</s>", "<unk>", *table[3:], ">>deu<<", ">>nld<<", "<pad>"])
        (folder / name).write_text(json.dumps({piece: n for n, piece in enumerate(known)}))
        tables[name] = list(known)
    sizes = [len(table) for table in tables.values()]
    # with two vocabularies, padding is where both have it
    padding = min(sizes) - 1
    languages = {"source_lang": "en", "target_lang": "de", "separate_vocabs": not shared}
    (folder / "tokenizer_config.json").write_text(json.dumps(languages))
    shape = {"d_model": 32, "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 4}
    shape |= {"decoder_attention_heads": 4, "encoder_ffn_dim": 48, "decoder_ffn_dim": 48}
    shape |= {"activation_function": "swish", "scale_embedding": True, "eos_token_id": 0}
    special = {"pad_token_id": padding, "decoder_start_token_id": padding}
    special |= {"forced_eos_token_id": 0, "vocab_size": sizes[0], "decoder_vocab_size": sizes[-1]}
    torch.manual_seed(seed)
    config = transformers.MarianConfig(**{**shape, **special, **options})
    model = transformers.MarianMTModel(config).eval()
    with torch.no_grad():
        # not the positions
        for parameter in filter(lambda one: one.requires_grad, model.parameters()):
            parameter.add_(torch.randn_like(parameter) * 0.3)
        model.final_logits_bias.normal_()
        model.final_logits_bias[0, 0] = 6
    model.save_pretrained(folder)
    return model


@pytest.fixture
def pretrained(tmp_path, monkeypatch):
    """Make a function that writes a model, and opens it in both programs."""
    monkeypatch.setenv("SYNMT_CACHE", str(tmp_path / "cache"))

    def write(**options):
        folder = tmp_path / "opus-mt-en-de"
        model = write_marian(folder, **options)
        tokenizer = transformers.MarianTokenizer.from_pretrained(folder)
        search = {"beam_size": 4, "length_penalty": 0.0, "max_length_ratio": 1e-9}
        translator = Translator.load(
            find_run(folder), device="cpu", max_length_extra=29, target_language="deu", **search
        )
        return SimpleNamespace(
            folder=folder, model=model, tokenizer=tokenizer, translator=translator
        )

    return write


@pytest.mark.parametrize("shape", ["tiny", "unlike heads"])
def test_logits_are_those_of_transformers(shape, pretrained):
    there = pretrained(**SHAPES[shape])
    ours, numbers = there.translator, there.tokenizer.get_vocab()
    order = [numbers[piece] for piece in ours.target.pieces(range(EOS + 1, len(ours.target)))]
    for source, target in zip(TEXT[:3], TEXT[3:], strict=True):
        batch = there.tokenizer(source, text_target=target, return_tensors="pt")
        theirs = there.model(**batch).logits.log_softmax(-1)[0]  # (T, V)
        memory, _ = ours.model.remember(collate_source([ours.source.encode(source).ids]), {})
        inputs = torch.tensor([[BOS, *ours.target.encode_ids(target)]])
        mine = ours.model.logits(ours.model.decode(memory, inputs)).log_softmax(-1)[0]
        close = {"rtol": 0, "atol": 1e-5}
        torch.testing.assert_close(mine[:, EOS + 1 :], theirs[:, order], **close)
        special = [numbers["<unk>"], numbers["<pad>"], numbers["</s>"]]
        torch.testing.assert_close(mine[:, [UNK, BOS, EOS]], theirs[:, special], **close)
        assert mine[:, PAD].max() < -90


def test_pieces_are_those_of_its_tokenizer(pretrained):
    there = pretrained()
    vocabulary = there.translator.source
    for line, ids in zip(HARD, vocabulary.encode_batch(HARD), strict=True):
        theirs = there.tokenizer.convert_ids_to_tokens(there.tokenizer(line)["input_ids"])
        assert vocabulary.pieces(ids) == theirs[:-1]
        pieces = vocabulary.encode(line)
        assert pieces.ids.tolist() == ids
        assert all(0 <= first <= last <= len(line) for first, last in pieces.spans)
    spans = vocabulary.encode(">>deu<< The monkey.").spans
    assert spans[0].tolist() == [0, 7]
    assert spans[-1].tolist()[1] == 19


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("shape", SHAPES)
def test_translations_are_those_of_generate(shape, seed, pretrained):
    there = pretrained(seed=seed, **SHAPES[shape])
    lines = [f">>deu<< {line}" for line in TEXT]
    batch = there.tokenizer(lines, return_tensors="pt", padding=True)
    forbidden = [[there.model.config.pad_token_id], [1]]
    found = there.model.generate(
        **batch,
        **{"num_beams": 4, "length_penalty": 0.0, "early_stopping": True},
        **{"min_new_tokens": 1, "max_length": 30, "bad_words_ids": forbidden},
    )
    texts = there.tokenizer.batch_decode(found, skip_special_tokens=True)
    mine = [one.text for one in there.translator.translate(TEXT)]
    # at the limit, each program ends in its own way
    ends = [bool((ids == 0).any()) and int((ids == 0).nonzero()[-1]) < 28 for ids in found]
    assert sum(ends) >= 2
    assert [text for text, ended in zip(mine, ends, strict=True) if ended] == [
        text for text, ended in zip(texts, ends, strict=True) if ended
    ]


def test_a_language_has_to_exist_and_is_asked_for(pretrained, caplog):
    there = pretrained()
    assert_refused("no target language 'fra'", Translator.load, there.folder, target_language="fra")
    Translator.load(there.folder)
    assert "the model translates into deu and nld: choose one" in caplog.text


def test_it_is_a_run_once_and_again_if_a_file_changes(pretrained):
    there = pretrained()
    first = find_run(there.folder)
    assert first.folder == find_run(there.folder).folder
    assert first.recipe().name == "opus-mt-en-de"
    (there.folder / "tokenizer_config.json").write_text(
        '{"source_lang": "fr", "target_lang": "de"}'
    )
    assert find_run(there.folder).recipe().source == "fr"
    assert find_run(first.folder).recipe().source == "en"


def test_old_files_of_weights_are_read_without_running_code(pretrained):
    there = pretrained()
    before = [one.text for one in there.translator.translate(TEXT)]
    torch.save(there.model.state_dict(), there.folder / "pytorch_model.bin")
    (there.folder / "model.safetensors").unlink()
    again = Translator.load(
        there.folder, target_language="deu", **vars(there.translator.options) | {"sampling": None}
    )
    assert [one.text for one in again.translate(TEXT)] == before

    class Harmful:
        def __reduce__(self):
            return os.system, ("true",)

    torch.save({"model.shared.weight": Harmful()}, there.folder / "pytorch_model.bin")
    assert_fails("pytorch_model.bin: holds more than weights", find_run, there.folder)


def change(path, **values):
    """Change keys of a JSON file; None removes one."""
    content = {**json.loads(path.read_text()), **values}
    path.write_text(json.dumps({key: one for key, one in content.items() if one is not None}))


def test_what_cannot_be_read_is_named(pretrained):
    folder = pretrained().folder
    for values, message in {
        ("model_type", "mbart"): "a model of the kind 'mbart' .learned positions",
        ("model_type", "m2m_100"): "a model of the kind 'm2m_100'",
        ("model_type", "bert"): "a model of the kind 'bert' cannot be read. Models of the kind",
        ("encoder_ffn_dim", 3): "cannot be read: encoder_ffn_dim is not decoder_ffn_dim",
        ("activation_function", "tanh"): "cannot be read: activation_function",
        ("d_model", 16): "does not fit config.json",
    }.items():
        before = (folder / "config.json").read_text()
        change(folder / "config.json", **dict([values]))
        assert_fails(message, find_run, folder)
        (folder / "config.json").write_text(before)
    for name, message in {
        "tokenizer_config.json": None,
        "vocab.json": "vocab.json: is missing",
        "target.spm": "target.spm: missing, or not a SentencePiece model",
        "model.safetensors": "the weights are missing .model.safetensors or pytorch_model.bin",
    }.items():
        content = (folder / name).read_bytes()
        (folder / name).unlink()
        if message:
            assert_fails(message, find_run, folder)
        else:
            # the languages stand in the name, too
            assert find_run(folder).recipe().target == "de"
        (folder / name).write_bytes(content)
    (folder / "model.safetensors").write_bytes(b"broken")
    assert_fails("model.safetensors: cannot be read", find_run, folder)


def write_tuning(path, **sections):
    """Write a recipe whose vocabulary is that of a pretrained model, and its corpus."""
    write_corpus(path.parent / "text")
    return write_recipe(path, path.parent / "text", vocabulary={}, **sections)


def test_it_is_fine_tuned_with_syntax_that_is_blended_in(pretrained, tmp_path):
    there = pretrained()
    recipe = write_tuning(
        tmp_path / "fine.yaml",
        model={"init": str(there.folder)},
        syntax={"variants": [{"name": "pascal", "layers": [1], "warm": 4}]},
        training={
            **{"max_steps": 2, "validate_every": 2, "save_every": 1, "device": "cpu"},
            **{"batch_tokens": 400, "learning_rate": 1e-3, "warmup": 0, "pretrained_rate": 0.5},
            **{"schedule": "constant", "validation_beam_size": 0},
        },
        parser={"control": "gold"},
    )
    folders = "--runs", tmp_path / "runs", "--data", tmp_path / "data"
    succeed("train", recipe, *folders)
    run = Run(tmp_path / "runs" / "fine")
    stored = run.recipe().model
    assert (stored.model_dim, stored.feed_forward, stored.output_bias) == (32, "swish", True)
    for side in SIDES:
        before = Vocabulary.load(find_run(there.folder).folder, side)
        assert Vocabulary.load(run.folder, side).to_bytes() == before.to_bytes()
    share = Translator.load(run).model.variants["source"][0].share
    # step 1 has a share of 0, step 2 of a quarter
    assert float(share) == 0.25
    before, after = (load_file(one.weights) for one in (find_run(there.folder), run))
    furthest = max(float((after[name] - old).abs().max()) for name, old in before.items())
    # Adam goes about as far as the rate in each of two steps
    assert 5e-4 < furthest < 1.1e-3
    # the same in two trainings, of which the second needs the pretrained model no more
    succeed("train", recipe, "name=two", "training.max_steps=1", *folders)
    resumed = Run(tmp_path / "runs" / "two")
    succeed("train", recipe, "name=two", *folders)
    assert resumed.weights.read_bytes() == run.weights.read_bytes()
    card = (run.folder / "README.md").read_text(encoding="utf-8")
    assert re.search(r"base_model: .*opus-mt-en-de", card)
    assert "Licence of the text: not known to synmt." in card
    assert "- `pascal`: Parent-scaled self-attention (Bugliarello & Okazaki, 2020" in card


def test_no_step_of_training_tests_the_pretrained_model(pretrained, tmp_path):
    there = pretrained()
    recipe = write_tuning(
        tmp_path / "test.yaml",
        # an edit that is blended in has not begun
        syntax={"variants": [{"name": "pascal", "warm": 5}]},
        model={"init": str(there.folder), "encoder_layers": 2},
        training={"max_steps": 0, "use": "last", "device": "cpu"},
    )
    succeed("train", recipe, "--runs", tmp_path / "runs", "--data", tmp_path / "data")
    run = Run(tmp_path / "runs" / "test")
    weights, before = load_file(run.weights), load_file(find_run(there.folder).weights)
    assert all(torch.equal(weights[name], weight) for name, weight in before.items())
    assert float(weights["encoder.0.self_attention.variants.0.share"]) == 0.0
    assert (run.test_folder("test") / "hypothesis.txt").exists()


def test_a_name_of_the_hub_has_two_parts():
    assert_refused("'hf:opus' does not name a model", model_folder, "hf:opus")
