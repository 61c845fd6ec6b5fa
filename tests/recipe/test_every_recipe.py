"""Shipped recipes from their names to scores: download, build, tokenize, parse, prepare, train,
translate; those whose every part is a part of these are left out."""

import json
import re
import shutil
from functools import cache
from operator import attrgetter

import pytest
import torch
from featured import write_featured_models
from public_archives import aspec, standing_in
from small_run import make_run
from tiny import MODEL, write_corpus

from synmt.arrays import SIDES
from synmt.decode.loaded_model import load_model
from synmt.evaluation.metrics import computed_here
from synmt.exchange.export import export
from synmt.files.reading import count_lines
from synmt.model.build import place_variants
from synmt.parsing.models import COMPACT
from synmt.recipe.catalogue import shipped_recipes
from synmt.recipe.load import load_recipe
from synmt.run_folder import Run
from synmt.training.distributed import Processes
from synmt.training.initial import adopt_vocabulary
from synmt.training.lifecycle import begin_run, finish_run, write_final_weights
from synmt.training.pipeline import make_trainer, plan_preparation, prepare
from synmt.training.test_sets import translate_tests
from synmt.training.tree_sources import tree_requirements

pytestmark = pytest.mark.journey

LANGUAGES = ("ar", "de", "it", "ja", "ru", "tr", "zh")

PARTS = """
corpus source target text target_text filters vocabulary
syntax tasks model.architecture
model
parser target_parser tasks vocabulary.kind
training decoding evaluation
"""
"""The keys whose values decide what a step of the way runs: the data, the model that reads syntax,
its layers, the trees, training and scores. It does not matter how large a number above 0 is, nor
how many there are, nor what the test sets itself: the models of parsers, the pretrained one, the
sizes and the filter of languages."""


def _parts(recipe):
    """Describe the parts of a recipe: lines of PARTS with its values."""
    for keys in PARTS.strip().splitlines():
        values = repr(attrgetter(*keys.split())(recipe))
        signs = re.sub(r"(?<=[=([ ])\d[\de.-]*", lambda n: str(float(n[0]) > 0), values)
        set_here = r"\b(model|size)='\w+'|PosixPath\('.*?'\)|language=\w+"
        yield re.sub(f"(?<=True)(, True)*,?(?=[])])|{set_here}", "", signs)


def _trained():
    """Choose few recipes that have all parts: again and again the one with most of what is
    missing."""
    parts = {name: set(enumerate(_parts(load_recipe(name)))) for name in sorted(shipped_recipes())}
    missing, chosen = set().union(*parts.values()), set()
    while missing:
        chosen.add(name := max(parts, key=lambda name: len(parts[name] & missing)))
        missing -= parts[name]
    return sorted(chosen)


@pytest.fixture(scope="module", autouse=True)
def _servers(tmp_path_factory):
    """Serve small archives with the names and formats of the public ones."""
    import spacy

    folder = tmp_path_factory.mktemp("public")
    for path, content in aspec().items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(content)
    # a few sentences in place of the generated corpus
    write_corpus(folder / "own" / "controlled")
    with pytest.MonkeyPatch.context() as patch, standing_in(patch, folder / "cache"):
        # a tokenizer for each file of each recipe takes as long as the training
        patch.setattr(spacy, "blank", cache(spacy.blank))
        patch.setenv("SYNMT_ASPEC", str(folder))
        patch.setenv("SYNMT_DATA", str(folder / "own"))
        yield


@pytest.fixture(scope="module")
def parsers(tmp_path_factory):
    """Make a folder of models in which the English parser replaces that of every language."""
    folder = tmp_path_factory.mktemp("models")
    shutil.copytree(COMPACT / "en", folder / "en")
    resources = json.loads((COMPACT / "resources.json").read_text())
    aliases = {language: {"alias": "en"} for language in LANGUAGES}
    (folder / "resources.json").write_text(json.dumps(resources | aliases))
    return folder


@pytest.fixture(scope="module")
def featured(tmp_path_factory):
    """Make a folder of English models that also give lemmas, fine tags and morphology."""
    return write_featured_models(tmp_path_factory.mktemp("featured") / "models")


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """Name the folder of words, trees and prepared corpora that all recipes share."""
    return tmp_path_factory.mktemp("data")


@pytest.fixture(scope="module")
def pretrained(tmp_path_factory):
    """Make a small model in the layout of Hugging Face."""
    folder = tmp_path_factory.mktemp("pretrained")
    size = {**MODEL, "encoder_layers": 3, "heads": 8}
    run = make_run(folder / "run", model=size)
    loaded = load_model(run, run.recipe(), device="cpu", checkpoint="final")
    parts = loaded.model, loaded.recipe, loaded.source, loaded.target
    export(*parts, folder / "model", "transformers")
    return folder / "model"


@pytest.mark.parametrize("name", _trained())
def test_it_trains_two_steps_and_scores_its_test_set(
    name, parsers, featured, pretrained, data, tmp_path
):
    plain = load_recipe(name)
    models = featured if tree_requirements(plain)["source"].of_parser else parsers
    # the filter of languages has its own tests
    small = f"""
        vocabulary.size=700 vocabulary.min_frequency=1 filters.language=false
        parser.model={models} parser.workers=1 target_parser.model={models} target_parser.workers=1
        training.max_steps=2 training.batch_tokens=100 training.validate_every=2 training.device=cpu
        training.accumulate={min(plain.training.accumulate, 2)}
        training.validation_beam_size={int(plain.training.best == "bleu")}
        decoding.beam_size=2 decoding.max_length_ratio=0.1 decoding.max_length_extra=1
    """
    if plain.model.init is not None:
        # vocabulary and sizes are those of the pretrained model
        kept = [one for one in small.split() if not one.startswith("vocabulary.")]
        recipe = load_recipe(name, [*kept, f"model.init={pretrained}"])
    else:
        recipe = load_recipe(name, [*small.split(), *_without_kytea(plain), *_small(plain)])
    assert (recipe.syntax, recipe.corpus) == (plain.syntax, plain.corpus)
    recipe = adopt_vocabulary(recipe)[0]
    # a dry run before and after
    assert not [step.problem for step in plan_preparation(recipe, data=data) if step.problem]
    *_, prepared = prepare(recipe, data=data)
    assert {step.state for step in plan_preparation(recipe, data=data)} == {"done"}
    run = Run(tmp_path / recipe.name)
    begin_run(run, recipe, prepared, overwrite=False)
    trainer = make_trainer(run, recipe, prepared, Processes())
    untrained = {name: weight.detach().clone() for name, weight in trainer.model.named_parameters()}
    assert [record.step for record in trainer.train()][-1] == 2
    assert all(torch.isfinite(weight).all() for weight in trainer.model.parameters())
    weights = trainer.model.named_parameters()
    assert any(not torch.equal(weight, untrained[name]) for name, weight in weights)
    write_final_weights(run, recipe)
    # one of several is enough; the Tanaka corpus has none
    for test, files in list(prepared.corpus.test.items())[:1]:
        translate_tests(run, recipe, {test: files})
        scores = json.loads((run.test_folder(test) / "scores.json").read_text())
        assert list(scores) == computed_here(recipe.evaluation.metrics)
        hypotheses = (run.test_folder(test) / "hypothesis.txt").read_text(encoding="utf-8")
        assert hypotheses.count("\n") == count_lines(files.source)
    finish_run(run, 2)


def _without_kytea(recipe):
    """Choose MeCab, whose dictionary is a package, where the recipe has KyTea, whose model is
    not."""
    texts = {"text": recipe.text, "target_text": recipe.target_text}
    kytea = [key for key, text in texts.items() if text and text.tokenizer == "kytea"]
    return [f"{key}.tokenizer=mecab" for key in kytea]


def _small(recipe):
    """Reduce the widths, and the depth to the layers that variants edit; keep their heads."""
    model = recipe.model
    if model.architecture == "lstm":
        return [f"model.model_dim={MODEL['model_dim']}", "model.embedding_dim=0"]
    edited = place_variants(model, recipe.syntax)
    encoder, decoder = (
        max((n for n, variants in enumerate(edited[side], 1) if variants), default=1)
        for side in SIDES
    )
    layers = {"encoder_layers": encoder, "decoder_layers": decoder}
    heads = {"heads": model.heads, "encoder_heads": list(model.encoder_heads[:encoder])}
    # what features take of an embedding has to fit into it
    given = (variant.options.get("features") for variant in recipe.syntax.variants)
    widest = max((sum(widths.values()) for widths in given if isinstance(widths, dict)), default=1)
    wide = {"model_dim": MODEL["model_dim"] * -(-widest // MODEL["model_dim"])}
    sizes = {**MODEL, **wide, **layers, **heads}
    return [f"model.{name}={value}" for name, value in sizes.items()]
