"""`model.init` takes the weights and the vocabulary of another run, `model.freeze` leaves parts
untrained."""

import json
import shutil

import pytest
import torch
from safetensors.torch import load_file
from small import LSTM_SIZE, SIZE, small_recipe
from small_run import make_run
from tiny import MODEL, fail, succeed, write_corpus, write_recipe

from synmt.data.vocabulary import Vocabulary
from synmt.errors import UsageError
from synmt.model.build import build_for
from synmt.model.parts import named_weights
from synmt.run_folder import Run
from synmt.training.initial import adopt_vocabulary, check_parts, freeze, take_weights

pytestmark = pytest.mark.journey

LISA = {"name": "lisa", "layers": [2], "heads": 1}
TAGS = {"name": "tag_embedding", "layers": [1]}


def fresh(recipe, vocabularies):
    torch.manual_seed(recipe.training.seed)
    return build_for(recipe, vocabularies["source"], vocabularies["target"])


def start(run, *variants, vocabulary=None, **model):
    """Build the model that starts from a run; gives its weights, those of a usual start, and those
    of the run."""
    sections = {"vocabulary": vocabulary} if vocabulary else {}
    recipe = small_recipe(
        model={**SIZE, "model_dim": 32, "feedforward_dim": 32, "init": str(run.folder), **model},
        syntax={"variants": list(variants)},
        **sections,
    )
    recipe, vocabularies, _ = adopt_vocabulary(recipe)
    assert vocabularies is not None
    check_parts(recipe, vocabularies, continued=False)
    made, usual = fresh(recipe, vocabularies), fresh(recipe, vocabularies)
    take_weights(made, recipe)
    return named_weights(made), named_weights(usual), load_file(run.weights)


def test_a_model_with_a_variant_starts_from_a_plain_one_and_what_is_new_is_initialised(
    tmp_path, caplog
):
    caplog.set_level("INFO", logger="synmt")
    run = make_run(tmp_path / "plain", parser=False)
    made, usual, stored = start(run, LISA)
    new = {name for name in made if "lisa" in name}
    assert new
    assert all(torch.equal(made[name], usual[name]) for name in new)
    assert torch.equal(
        made["encoder.2.self_attention.project.weight"],
        stored["encoder.1.self_attention.project.weight"],
    )
    assert torch.equal(made["output.weight"], stored["source_embedding.table.weight"])
    assert not torch.equal(made["output.weight"], usual["output.weight"])
    [remark] = [record.getMessage() for record in caplog.records]
    count = sum(
        {id(weight): weight.numel() for name, weight in made.items() if name not in new}.values()
    )
    assert f"model.init: {count:,} of " in remark
    assert "new: encoder.2.self_attention.variants.lisa." in remark


def test_what_only_the_other_run_has_is_named(tmp_path, caplog):
    caplog.set_level("INFO", logger="synmt")
    run = make_run(tmp_path / "tags", TAGS, parser=False)
    start(run)
    assert "only in" in caplog.text
    assert "encoder.1.self_attention.variants.tag_embedding.table.weight" in caplog.text


def test_a_variant_finds_its_weights_whatever_its_place_among_others(tmp_path):
    two = ({"name": "relative", "layers": [2], "heads": 1}, LISA)
    run = make_run(tmp_path / "two", *two, parser=False)
    made, _, stored = start(run, LISA)
    theirs = stored["encoder.1.self_attention.variants.1.project.weight"]
    assert torch.equal(made["encoder.2.self_attention.variants.lisa.project.weight"], theirs)


def test_embeddings_that_were_shared_may_be_separate_afterwards_but_not_the_other_way(tmp_path):
    shared = make_run(tmp_path / "shared", parser=False)
    made, _, stored = start(shared, embeddings="separate")
    tables = [
        made[name]
        for name in (
            "source_embedding.table.weight",
            "target_embedding.table.weight",
            "output.weight",
        )
    ]
    assert len({id(table) for table in tables}) == 3
    assert all(torch.equal(table, stored["source_embedding.table.weight"]) for table in tables)
    model = {**SIZE, "model_dim": 32, "feedforward_dim": 32, "embeddings": "separate"}
    separate = make_run(tmp_path / "separate", parser=False, model=model)
    with pytest.raises(UsageError, match="are one matrix in this model, and two in this run"):
        start(separate)


def test_excluded_parts_are_initialised_as_usual(tmp_path):
    run = make_run(tmp_path / "plain", parser=False)
    made, usual, stored = start(run, init_except=["decoder", "encoder.1.feed_forward"])
    for name in made:
        excluded = name.startswith(("decoder.", "encoder.1.feed_forward"))
        assert torch.equal(made[name], usual[name]) or not excluded, name
    assert torch.equal(
        made["encoder.1.self_attention.project.weight"],
        stored["encoder.0.self_attention.project.weight"],
    )


def test_an_lstm_starts_from_an_lstm(tmp_path):
    lstm = {"architecture": "lstm", **LSTM_SIZE}
    run = make_run(tmp_path / "lstm", parser=False, model=lstm)
    recipe = small_recipe(
        model={**lstm, "init": str(run.folder), "freeze": ["encoder"]},
        syntax={"variants": [{"name": "latent_tree"}]},
    )
    # the gate of the annotations makes the output layer wider
    with pytest.raises(
        UsageError,
        match=r"different shapes in this run: decoder.output.weight \(16, 32\), not \(16, 48\)",
    ):
        check_parts(*adopt_vocabulary(recipe)[:2], continued=False)
    recipe = recipe.model_copy(
        update={"model": recipe.model.model_copy(update={"init_except": ("decoder.output",)})}
    )
    recipe, vocabularies, _ = adopt_vocabulary(recipe)
    check_parts(recipe, vocabularies, continued=False)
    model = fresh(recipe, vocabularies)
    take_weights(model, recipe)
    freeze(model, recipe)
    stored = load_file(run.weights)
    weights = dict(model.named_parameters())
    assert torch.equal(weights["encoder.weight_ih_l0"], stored["encoder.weight_ih_l0"])
    assert not any(
        weight.requires_grad for name, weight in weights.items() if name.startswith("encoder.")
    )
    assert model.output_weight.requires_grad


def refused(tmp_path, *variants, match, vocabulary=None, **model):
    run = make_run(tmp_path / "plain", parser=False)
    with pytest.raises(UsageError, match=match) as caught:
        start(run, *variants, vocabulary=vocabulary, **model)
    return str(caught.value)


def test_other_shapes_are_named(tmp_path):
    said = refused(tmp_path, match="different shapes", feedforward_dim=48)
    assert "encoder.1.feed_forward.inner.weight (32, 32), not (48, 32)" in said
    assert "and " in said
    assert "init_except" in said


def test_a_model_of_the_other_architecture_has_nothing_in_common_but_the_embeddings(tmp_path):
    run = make_run(tmp_path / "lstm", parser=False, model={"architecture": "lstm", **LSTM_SIZE})
    recipe = small_recipe(model={**SIZE, "init": str(run.folder), "init_except": ["embeddings"]})
    with pytest.raises(UsageError, match="no weight of this run fits the model"):
        check_parts(recipe, None, continued=False)


def test_another_vocabulary_is_refused_unless_the_embeddings_are_excluded(tmp_path):
    said = refused(
        tmp_path, match="vocabulary differs from that of the run", vocabulary={"size": 500}
    )
    assert "vocabulary.size is 500 here and 340 there. Leave out" in said
    model = {**SIZE, "model_dim": 32, "feedforward_dim": 32, "init": str(tmp_path / "plain")}
    recipe = small_recipe(model={**model, "init_except": ["embeddings"]}, vocabulary={"size": 500})
    assert adopt_vocabulary(recipe) == (recipe, None, {})
    with pytest.raises(
        UsageError, match=r"target_embedding.table.weight would be new.*all of them"
    ):
        adopt_vocabulary(
            small_recipe(
                model={**model, "embeddings": "separate", "init_except": ["target_embedding"]}
            )
        )


def test_a_vocabulary_for_each_side_cannot_have_shared_embeddings(tmp_path):
    run = make_run(
        tmp_path / "sides",
        parser=False,
        model={**SIZE, "embeddings": "tied"},
        vocabulary={"joint": False},
    )
    with pytest.raises(
        UsageError, match=r"with the vocabulary of .*sides.*needs `vocabulary.joint: true`"
    ):
        adopt_vocabulary(small_recipe(model={**SIZE, "init": str(run.folder)}))


def test_a_vocabulary_without_task_tags_is_refused_for_the_parsing_task(tmp_path):
    run = make_run(tmp_path / "plain", parser=False)
    recipe = small_recipe(
        model={**SIZE, "init": str(run.folder)}, tasks={"parsing": "dependencies"}
    )
    with pytest.raises(UsageError, match="has no piece <TR>, <PA>"):
        adopt_vocabulary(recipe)


def test_a_vocabulary_without_brackets_is_refused_for_the_mixed_encoder(tmp_path):
    run = make_run(tmp_path / "plain", parser=False)
    recipe = small_recipe(model={**SIZE, "init": str(run.folder)}, tasks={"mixed": "dependencies"})
    with pytest.raises(UsageError, match="has no piece for brackets, which this recipe needs"):
        adopt_vocabulary(recipe)


@pytest.mark.parametrize("kind", ["bpe", "word"])
def test_a_vocabulary_without_the_tag_of_a_part_is_refused(tmp_path, kind):
    run = make_run(tmp_path / "plain", parser=False, vocabulary={"kind": kind, "size": 340})
    files = {"source": "a.en", "target": "a.de"}
    corpus = {"train": [files, {**files, "tag": "<BT>"}], "valid": files}
    with pytest.raises(UsageError, match="has no piece <BT>, which this recipe needs"):
        adopt_vocabulary(small_recipe(model={**SIZE, "init": str(run.folder)}, corpus=corpus))


def test_a_run_that_is_missing_or_unfinished_or_the_run_itself_is_refused(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run = make_run(tmp_path / "runs" / "plain", parser=False)
    with pytest.raises(
        UsageError, match=r"model.init, plain: no such folder.*Did you mean 'runs/plain'\?"
    ):
        adopt_vocabulary(small_recipe(model={"init": "plain"}))
    with pytest.raises(UsageError, match="cannot start from its own weights"):
        adopt_vocabulary(small_recipe(model={"init": "runs/plain"}), run)
    run.weights.unlink()
    run.write_info(status="training")
    recipe, vocabularies, _ = adopt_vocabulary(small_recipe(model={**SIZE, "init": "runs/plain"}))
    with pytest.raises(Exception, match="the run has not finished"):
        check_parts(recipe, vocabularies, continued=False)


def test_exceptions_need_a_run():
    with pytest.raises(UsageError, match="`init_except` needs `init`"):
        small_recipe(model={"init_except": ["encoder"]})


@pytest.mark.parametrize(
    ("part", "said"),
    [
        (
            "encodr",
            "Parts: decoder, encoder, output, source_embedding, target_embedding, embeddings. Did "
            "you mean 'encoder'?",
        ),
        ("encoder.3", "Parts of encoder: encoder.1, encoder.2."),
        ("encoder.0", "Parts of encoder: encoder.1, encoder.2."),
        ("decoder.2.cross", "decoder.2.cross_attention, decoder.2.feed_forward"),
    ],
)
def test_an_unknown_part_lists_those_that_there_are(part, said):
    recipe = small_recipe(model={**SIZE, "freeze": [part]})
    with pytest.raises(UsageError, match=f"model.freeze: the model has no part '{part}'") as caught:
        check_parts(recipe, None, continued=False)
    assert said in str(caught.value)


def test_freezing_everything_is_refused():
    recipe = small_recipe(model={**SIZE, "freeze": ["encoder", "decoder", "embeddings"]})
    with pytest.raises(UsageError, match="every part of the model is frozen"):
        check_parts(recipe, None, continued=False)


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """Train a plain model on the tiny corpus."""
    folder = tmp_path_factory.mktemp("place")
    write_corpus(folder / "corpus")
    shared = {"corpus": {"folder": "corpus"}, "syntax": {"variants": []}}
    write_recipe(folder / "plain.yaml", folder, **shared, parser={"device": "cpu"})
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
    corpus = {"folder": "corpus"}
    write_recipe(
        folder / "tuned.yaml",
        folder,
        corpus=corpus,
        model=model,
        vocabulary={"kind": "word", "size": 200},
    )
    return folder


def checkpoint(folder, step, name="model"):
    return load_file(folder / "checkpoints" / f"step-{step:08d}" / f"{name}.safetensors")


def test_a_run_that_starts_from_another_needs_it_no_more_and_resumes_bit_for_bit(here):
    done = succeed("train", "tuned.yaml", "training.weight_decay=0.1", cwd=here)
    said = done.stderr.decode()
    assert "weights come from runs/plain" in said
    plain, tuned = Run(here / "runs" / "plain"), Run(here / "runs" / "tuned")
    for side in ("source", "target"):
        assert (
            Vocabulary.load(tuned.folder, side).to_bytes()
            == Vocabulary.load(plain.folder, side).to_bytes()
        )
    assert set(tuned.info()["init"]) == {"run", "weights"}
    stored, trained = load_file(plain.weights), load_file(tuned.weights)
    frozen = [
        name
        for name in stored
        if ("feed_forward" in name and name.startswith("encoder.")) or "embedding" in name
    ]
    count = sum(stored[name].numel() for name in frozen)
    assert f"weights, {count:,} of them frozen, on cpu" in said
    assert [name for name in stored if torch.equal(stored[name], trained[name])] == frozen
    state = {name.rpartition("/")[0] for name in checkpoint(tuned.folder, 8, "optimizer")}
    assert state == stored.keys() - set(frozen)

    succeed(
        "train",
        "tuned.yaml",
        "training.weight_decay=0.1",
        "name=parts",
        "training.max_steps=4",
        cwd=here,
    )
    shutil.rmtree(plain.folder)
    done = succeed("train", "tuned.yaml", "training.weight_decay=0.1", "name=parts", cwd=here)
    assert "continuing from step 4" in done.stderr.decode()
    parts = here / "runs" / "parts"
    for name in ("model", "optimizer"):
        whole, resumed = checkpoint(tuned.folder, 8, name), checkpoint(parts, 8, name)
        assert whole.keys() == resumed.keys()
        assert all(torch.equal(whole[key], resumed[key]) for key in whole)
    trees = here / "corpus" / "test.en.conllu"
    text = (here / "corpus" / "test.en").read_text(encoding="utf-8")
    succeed("translate", "--run", parts, "--parses", trees, text=text, cwd=here)
    succeed("train", "tuned.yaml", "training.weight_decay=0.1", cwd=here)
    assert "no such folder" in fail(2, "train", "tuned.yaml", "name=new", cwd=here)


def test_the_text_is_prepared_with_the_vocabulary_of_the_other_run(here):
    other = write_corpus(here / "other")
    (other / "train.en").write_text(
        (other / "train.en").read_text(encoding="utf-8").replace("the", "unseen")
    )
    succeed(
        "train",
        "tuned.yaml",
        "corpus.folder=other",
        "vocabulary={}",
        "syntax={}",
        "parser={}",
        cwd=here,
    )
    plain, tuned = Run(here / "runs" / "plain"), Run(here / "runs" / "tuned")
    vocabulary = Vocabulary.load(tuned.folder, "source")
    assert vocabulary.to_bytes() == Vocabulary.load(plain.folder, "source").to_bytes()
    assert vocabulary.encode_ids("unseen") == [1]
    # the run describes the vocabulary that it has, not the defaults of the recipe
    assert tuned.recipe().vocabulary == plain.recipe().vocabulary
    folders = {
        json.loads(path.read_text())["corpus"]: path
        for path in (here / "data" / "prepared").glob("*/corpus.json")
    }
    assert sorted(folders) == ["corpus", "other"]


def test_prepare_alone_makes_what_training_reads(here):
    prepared = succeed("prepare", "tuned.yaml", cwd=here).stdout.decode().strip()
    with_own = succeed("prepare", "plain.yaml", cwd=here).stdout.decode().strip()
    assert prepared != with_own
    assert (
        f"prepare: {prepared} exists already"
        in succeed("train", "tuned.yaml", cwd=here).stderr.decode()
    )


def test_a_wrong_start_is_reported_before_the_text_is_prepared(here):
    shutil.rmtree(here / "data")
    said = fail(2, "train", "tuned.yaml", "model.feedforward_dim=24", cwd=here)
    assert "these weights have different shapes in this run" in said
    assert not (here / "data").exists()
    assert not (here / "runs" / "tuned").exists()


def test_a_run_with_new_embeddings_learns_its_own_vocabulary(here):
    succeed("train", "tuned.yaml", "model.init_except=[embeddings]", "vocabulary.size=30", cwd=here)
    assert len(Vocabulary.load(here / "runs" / "tuned", "source")) == 30


def test_averaging_and_accumulating_leave_frozen_weights_as_they_are(here):
    succeed("train", "tuned.yaml", "training.accumulate=2", "training.average=3", cwd=here)
    stored, mean = (
        load_file(here / "runs" / name / "model.safetensors") for name in ("plain", "tuned")
    )
    assert torch.equal(
        stored["encoder.0.feed_forward.inner.weight"], mean["encoder.0.feed_forward.inner.weight"]
    )
    assert not torch.equal(
        stored["decoder.0.feed_forward.inner.weight"], mean["decoder.0.feed_forward.inner.weight"]
    )
