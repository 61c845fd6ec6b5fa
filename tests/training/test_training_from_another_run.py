"""`model.init` takes the weights and the vocabulary of another run, `model.freeze` leaves parts
untrained."""

import re
import shutil
from pathlib import Path

import pytest
import torch
from refusing import assert_fails, assert_refused
from safetensors.torch import load_file
from small import LSTM_SIZE, SIZE, small_recipe
from small_run import make_run
from tiny import MODEL, fail, succeed, write_corpus, write_recipe

from synmt.data.vocabulary import Vocabulary
from synmt.model.build import build_for
from synmt.model.weights import named_weights
from synmt.recipe.yaml_text import parse_yaml_value
from synmt.run_folder import Run
from synmt.training.initial import adopt_vocabulary, check_parts, freeze, take_weights

pytestmark = pytest.mark.journey

LISA = {"name": "lisa", "layers": [2], "heads": 1}
TAGS = {"name": "tag_embedding", "layers": [1]}
RELATIVE = {"name": "relative", "layers": [2], "heads": 1}
WIDE = {**SIZE, "model_dim": 32, "feedforward_dim": 32}
LSTM = {"architecture": "lstm", **LSTM_SIZE}


def adopted(recipe):
    """Take what the run of `model.init` gives, and check that its weights fit."""
    recipe, vocabularies, _ = adopt_vocabulary(recipe)
    check_parts(recipe, vocabularies, continued=False)
    return recipe, vocabularies


def sized(sections):
    """Complete the model of a recipe's sections."""
    model = sections.get("model", {})
    return {**sections, "model": {**(LSTM if "architecture" in model else WIDE), **model}}


def start(folder, variants=(), run_variants=(), **model):
    """Build the model that starts from a run; gives its weights, those of a usual start, and those
    of the run."""
    kind = {"architecture": model["architecture"]} if "architecture" in model else {}
    run = make_run(folder / "first", *run_variants, parser=False, **sized({"model": kind}))
    sections = sized({"model": {"init": str(run.folder), **model}})
    recipe, vocabularies = adopted(small_recipe(**sections, syntax={"variants": list(variants)}))
    models = []
    for _ in range(2):
        torch.manual_seed(recipe.training.seed)
        models.append(build_for(recipe, vocabularies["source"], vocabularies["target"]))
    take_weights(models[0], recipe)
    freeze(models[0], recipe)
    return *map(named_weights, models), load_file(run.weights)


def test_a_model_with_a_variant_starts_from_a_plain_one_and_what_is_new_is_initialised(
    tmp_path, caplog
):
    caplog.set_level("INFO", logger="synmt")
    weights, usual, stored = start(tmp_path, [LISA])
    new = [name for name in weights if "lisa" in name]
    assert new
    assert all(torch.equal(weights[name], usual[name]) for name in new)
    project = "self_attention.project.weight"
    assert torch.equal(weights[f"encoder.2.{project}"], stored[f"encoder.1.{project}"])
    assert torch.equal(weights["output.weight"], stored["source_embedding.table.weight"])
    assert not torch.equal(weights["output.weight"], usual["output.weight"])
    assert (
        f"model.init: {len(weights) - len(new)} of {len(weights)} parameter tensors come"
        in caplog.text
    )


def test_a_variant_finds_its_weights_whatever_else_the_other_run_has(tmp_path):
    weights, _, stored = start(tmp_path, [LISA], [RELATIVE, LISA])
    theirs = stored["encoder.1.self_attention.variants.1.project.weight"]
    assert torch.equal(weights["encoder.2.self_attention.variants.lisa.project.weight"], theirs)


def test_embeddings_that_were_shared_may_be_separate_afterwards(tmp_path):
    weights, _, stored = start(tmp_path, embeddings="separate")
    names = ("source_embedding.table.weight", "target_embedding.table.weight", "output.weight")
    assert len({id(weights[name]) for name in names}) == 3
    assert all(torch.equal(weights[name], stored[names[0]]) for name in names)


def test_excluded_parts_are_initialised_as_usual(tmp_path):
    weights, usual, stored = start(tmp_path, init_except=["decoder", "encoder.1.feed_forward"])
    for name in weights:
        excluded = name.startswith(("decoder.", "encoder.1.feed_forward"))
        assert torch.equal(weights[name], usual[name]) or not excluded, name
    project = "self_attention.project.weight"
    assert torch.equal(weights[f"encoder.1.{project}"], stored[f"encoder.0.{project}"])


def test_an_lstm_starts_from_an_lstm(tmp_path):
    parts = {"freeze": ["encoder"], "init_except": ["decoder.output"]}
    weights, _, stored = start(tmp_path, [{"name": "latent_tree"}], architecture="lstm", **parts)
    assert torch.equal(weights["encoder.weight_ih_l0"], stored["encoder.weight_ih_l0"])
    for name, weight in weights.items():
        assert weight.requires_grad != name.startswith("encoder."), name


# the run, the recipe, and the message; in the second line, the gate of the annotations makes the
# output layer wider
UNFIT = r"""
{} | {model: {feedforward_dim: 48}} | different shapes in this run.*inner.weight
{LSTM} | {LSTM, syntax: GATED} | different shapes in this run, or.*: decoder.output.weight
{model: {embeddings: separate}} | {SHARED} | or are shared in one model only: .*weight
{LSTM} | {model: {init_except: [embeddings]}} | feedforward_dim, heads: not for architecture: lstm
{} | {vocabulary: {size: 500}} | differ in vocabulary.size. Leave out
{TIED, vocabulary: {joint: false}} | {SHARED} | with the vocabulary of .*other.*needs
{} | {tasks: {parsing: dependencies}} | has no tag <TR>.*same tags and `tasks`
{} | {tasks: {mixed: dependencies}} | has no piece for brackets
{} | {corpus: TAGGED} | has no tag <BT>
{vocabulary: {kind: word, size: 340}} | {corpus: TAGGED} | has no tag <BT>
"""
TERMS = {
    "LSTM": "model: {architecture: lstm}",
    "SHARED": "model: {embeddings: shared}",
    "TIED": "model: {embeddings: tied}",
    "GATED": "{variants: [{name: latent_tree}]}",
    "TAGGED": "{train: [{FILES}, {FILES, tag: <BT>}], valid: {FILES}}",
    "FILES": "source: a.en, target: a.de",
}


@pytest.mark.parametrize("line", UNFIT.strip().splitlines())
def test_a_run_whose_weights_or_vocabulary_do_not_fit_is_refused(tmp_path, line):
    for name, term in TERMS.items():
        line = line.replace(name, term)
    run, recipe, message = line.split(" | ")
    make_run(tmp_path / "other", parser=False, **sized(parse_yaml_value(run)))
    recipe = sized(parse_yaml_value(recipe))
    recipe["model"]["init"] = str(tmp_path / "other")
    assert_fails(message, adopted, small_recipe(**recipe))


def test_without_the_embeddings_a_run_gives_no_vocabulary(tmp_path):
    run = make_run(tmp_path / "plain", parser=False)
    model = {**WIDE, "init": str(run.folder), "init_except": ["embeddings"]}
    recipe = small_recipe(model=model, vocabulary={"size": 500})
    assert adopt_vocabulary(recipe) == (recipe, None, {})


def test_a_run_that_is_missing_or_unfinished_or_the_run_itself_is_refused(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run = make_run(tmp_path / "runs" / "plain", parser=False)
    recipe = small_recipe(model={**WIDE, "init": "runs/plain"})
    missing = r"model.init, plain: not a run folder"
    assert_refused(missing, adopt_vocabulary, small_recipe(model={"init": "plain"}))
    assert_refused("cannot start from its own weights", adopt_vocabulary, recipe, run)
    run.weights.unlink()
    run.write_info(status="training")
    assert_fails("the run has no final weights", adopted, recipe)


PARTS = "Parts: decoder, encoder, output, source_embedding, target_embedding, embeddings, and those"


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ("encodr", f"model.freeze: the model has no part 'encodr'.*{PARTS}.* mean 'encoder'?"),
        ("encoder.3", "the model has no part 'encoder.3'"),
        ("encoder.0", "the model has no part 'encoder.0'"),
        ("decoder.2.cross", "the model has no part 'decoder.2.cross'"),
        ("encoder decoder embeddings", "every part of the model is frozen"),
    ],
)
def test_parts_that_cannot_be_frozen_are_refused(parts, message):
    recipe = small_recipe(model={**SIZE, "freeze": parts.split()})
    assert_refused(message, check_parts, recipe, None, continued=False)


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """Train a plain model on the tiny corpus."""
    folder = tmp_path_factory.mktemp("place")
    write_corpus(folder / "corpus")
    write_recipe(folder / "plain.yaml", Path("corpus"), syntax={}, parser={"device": "cpu"})
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SYNMT_CACHE", str(folder / "cache"))
        patch.setenv("SYNMT_OFFLINE", "1")
        succeed("train", "plain.yaml", cwd=folder)
        yield folder


@pytest.fixture
def here(place, tmp_path):
    """Copy the folder of the plain run, with the recipe of a PASCAL system that starts from it."""
    folder = shutil.copytree(place, tmp_path / "here")
    model = {**MODEL, "init": "runs/plain", "freeze": ["encoder.1.feed_forward", "embeddings"]}
    write_recipe(folder / "tuned.yaml", Path("corpus"), model=model)
    return folder


def test_a_run_that_starts_from_another_needs_it_no_more_and_resumes_bit_for_bit(here):
    def train(*overrides):
        done = succeed("train", "tuned.yaml", "training.accumulate=2", *overrides, cwd=here)
        return done.stderr.decode()

    errors = train()
    plain, tuned, parts = (Run(here / "runs" / name) for name in ("plain", "tuned", "parts"))
    stored, trained = load_file(plain.weights), load_file(tuned.weights)
    frozen = re.compile(r"encoder\..*feed_forward|.*embedding")
    names = [name for name in stored if frozen.match(name)]
    count = sum(stored[name].numel() for name in names)
    assert f"parameters, {count:,} of them frozen, on cpu" in errors
    assert [name for name in stored if torch.equal(stored[name], trained[name])] == names
    state = load_file(tuned.checkpoint(8) / "optimizer.safetensors")
    assert {name.rpartition("/")[0] for name in state} == stored.keys() - set(names)

    train("name=parts", "training.max_steps=4")
    shutil.rmtree(plain.folder)
    assert "continuing from step 4" in train("name=parts")
    for name in ("model", "optimizer"):
        whole, resumed = (
            load_file(run.checkpoint(8) / f"{name}.safetensors") for run in (tuned, parts)
        )
        torch.testing.assert_close(whole, resumed, rtol=0, atol=0)
    train()
    assert "not a run folder" in fail(2, "train", "tuned.yaml", "name=new", cwd=here)


def test_the_text_is_prepared_with_the_vocabulary_of_the_other_run(here):
    text = write_corpus(here / "other") / "train.en"
    text.write_text(text.read_text(encoding="utf-8").replace("the", "unseen"), encoding="utf-8")
    plain_model = ("vocabulary={}", "syntax={}", "parser={}")
    succeed("train", "tuned.yaml", "corpus.folder=other", *plain_model, cwd=here)
    plain, tuned = Run(here / "runs" / "plain"), Run(here / "runs" / "tuned")
    for side in ("source", "target"):
        ours, theirs = (Vocabulary.load(run.folder, side).to_bytes() for run in (tuned, plain))
        assert ours == theirs
    assert Vocabulary.load(tuned.folder, "source").encode_ids("unseen") == [1]
    # the run describes the vocabulary that it has, not the defaults of the recipe
    assert tuned.recipe().vocabulary == plain.recipe().vocabulary


def test_prepare_alone_makes_what_training_reads(here):
    prepared = succeed("prepare", "tuned.yaml", cwd=here).stdout.decode().strip()
    errors = succeed("train", "tuned.yaml", cwd=here).stderr.decode()
    assert prepared in succeed("prepare", "tuned.yaml", cwd=here).stdout.decode()
    assert "prepare:" not in errors


def test_a_wrong_start_is_reported_before_the_text_is_prepared(here):
    shutil.rmtree(here / "data")
    errors = fail(2, "train", "tuned.yaml", "model.feedforward_dim=24", cwd=here)
    assert "these weights have different shapes in this run" in errors
    assert not (here / "data").exists()


def test_a_run_with_new_embeddings_learns_its_own_vocabulary(here):
    new = ("model.init_except=[embeddings]", "vocabulary.size=30", "training.max_steps=2")
    succeed("train", "tuned.yaml", *new, cwd=here)
    assert len(Vocabulary.load(here / "runs" / "tuned", "source")) == 30
