"""Systems that read features of words, from Stanza's models or from given trees to translations and
analyses."""

import json
import re
import shutil

import numpy as np
import pytest
from featured import LEMMAS, write_featured_models
from tiny import (
    TRAINING,
    fail,
    succeed,
    synmt,
    write_corpus,
    write_recipe,
)

from synmt.data.corpus import PreparedCorpus
from synmt.decode import remote
from synmt.decode.translator import Translator
from synmt.parsing.parser import StanzaParser
from synmt.run_folder import Run
from synmt.syntax.conllu import read_conllu

pytestmark = pytest.mark.journey

WIDTHS = dict.fromkeys(("fine_tag", "morphology", "tag", "relation"), 2)
WIDTHS |= {"lemma": 4, "subword": 1, "case": 1}
TEXT = "The monkey eats a banana.\n\nThe girls don't see it.\n"


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """Train with features from a parser that gives them all, and set up a cache."""
    root = tmp_path_factory.mktemp("features")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SYNMT_CACHE", str(root / "cache"))
        models = write_featured_models(root / "models")
        corpus = write_corpus(root / "corpus")
        for trees in corpus.glob("*.conllu"):
            shutil.move(trees, root / trees.name)
        parser = {"model": str(models), "workers": 1, "device": "cpu"}
        syntax = {"variants": [{"name": "tag_embedding", "features": WIDTHS}]}
        sections = {"parser": parser, "syntax": syntax, "training": {**TRAINING, "max_steps": 4}}
        sections["vocabulary"] = {"kind": "bpe", "size": 340, "joint": True}
        write_recipe(root / "tags.yaml", corpus, **sections)
        succeed("train", "tags.yaml", cwd=root)
        yield root


def test_a_run_stores_the_values_of_its_training_text(place):
    values = Run(place / "runs" / "tags").features()
    assert set(values) == {"lemma", "fine_tag", "morphology"}
    assert {"the", "The"} & set(values["lemma"]) == {"the"}
    assert "noun" in values["fine_tag"]
    assert set(values["morphology"]) == {"_", "Nominal=Yes"}
    model = Translator.load(place / "runs" / "tags").models[0].model
    tables = model.variants["source"][0].tables
    for name, own in values.items():
        assert len(tables[name].weight) == len(own) + 2


def test_every_feature_reaches_the_model_when_it_translates(place):
    [loaded] = Translator.load(place / "runs" / "tags").models
    parser = StanzaParser("en", model=str(place / "models"), device="cpu").with_features()
    [tree] = parser.parse(["The girls see it ."])
    known = Run(place / "runs" / "tags").features()
    values = {"lemma": [LEMMAS.get(word, word) for word in tree.words]}
    values["fine_tag"] = [tag.lower() for tag in tree.tags]
    for signal in loaded.reading.signals:
        if (name := signal.name.partition(".")[0]) in values:
            places = dict(zip(known[name], range(1, 10**6), strict=False))
            others = 1 + len(known[name])
            expected = [places.get(value, others) for value in values.pop(name)]
            assert signal.compute(tree, np.arange(5)).tolist() == expected
    assert not values


def test_parse_writes_the_features_and_translate_reads_them(place, tmp_path):
    text, target, run = tmp_path / "text.en", tmp_path / "trees.conllu", place / "runs" / "tags"
    text.write_text(TEXT)
    parse = ("parse", text, "-o", target, "--model", place / "models", "--workers", 1)
    succeed(*parse, "--features")
    [tree, _, _] = [tree for _, tree in read_conllu(target)]
    assert tree.features["lemma"] == [LEMMAS.get(word, word) for word in tree.words]
    given = succeed("translate", "--run", run, "--parses", target, text=TEXT)
    assert given.stderr.count(b"the model reads") == 0
    assert given.stdout == succeed("translate", "--run", run, text=TEXT).stdout
    assert "by another parser" in fail(1, *parse)


def test_given_trees_without_the_features_are_read_with_a_warning(place, tmp_path):
    (tmp_path / "text.en").write_text(TEXT)
    succeed("parse", tmp_path / "text.en", "-o", tmp_path / "bare.conllu", "--workers", 1)
    run = place / "runs" / "tags"
    done = succeed("translate", "--run", run, "--parses", tmp_path / "bare.conllu", text=TEXT)
    said = b"the given trees lack what the model reads: fine_tag, lemma, morphology"
    assert done.stderr.count(said) == 1


def test_a_model_that_lacks_features_is_refused_before_any_work(place):
    message = fail(2, "parse", "--features", text=TEXT)
    assert "the compact model for 'en' gives no lemma, no fine_tag, no morphology" in message
    assert "It gives tag, relation" in message
    lacking = ("train", "tags.yaml", "parser.model=compact", "name=lacking")
    assert "gives no lemma" in fail(2, *lacking, cwd=place)
    assert not (place / "runs" / "lacking").exists()
    plan = synmt(*lacking, "--dry-run", cwd=place)
    assert (plan.returncode, b"gives no lemma" in plan.stdout + plan.stderr) == (2, True)


def test_systems_with_other_features_share_the_text_and_not_the_annotation(place):
    [prepared] = (place / "data" / "prepared").iterdir()
    before = PreparedCorpus.open(prepared).annotations()
    other = "syntax.variants=[{name: syntax_infused, features: [lemma, tag]}]"
    succeed("train", "tags.yaml", "name=infused", other, cwd=place)
    after = PreparedCorpus.open(prepared).annotations()
    new = [facts["parser"]["features"] for name, facts in after.items() if name not in before]
    assert new == [["lemma"]]


def test_the_values_travel_with_the_run_to_another_machine(place, monkeypatch):
    portable = pytest.importorskip("synmt.cluster.portable_translator").PortableTranslator
    monkeypatch.setattr(remote, "cluster_in_use", lambda: True)
    run = place / "runs" / "tags"

    def travelling(**options):
        translator = Translator.load(run)
        with remote.shared_translator(translator, [run], {}, lines=None, **options) as other:
            return portable(other).files()

    files = travelling()
    assert files["0/features.json"] == run / "features.json"
    assert "parser/en/lemma/dictionary.pt" in files
    # no parser is needed for lines that come with trees
    without = travelling(has_trees=True)
    assert set(without) == {name for name in files if not name.startswith("parser/")}


def test_training_goes_on_with_the_values_it_began_with(place, tmp_path):
    folder = shutil.copytree(place / "runs" / "tags", tmp_path / "runs" / "tags")
    before = (folder / "features.json").read_bytes()
    arguments = ("train", place / "tags.yaml", "--data", place / "data")
    done = succeed(*arguments, "training.max_steps=6", cwd=tmp_path)
    assert b"continuing from step 4" in done.stderr
    assert (folder / "features.json").read_bytes() == before


def test_a_run_that_starts_from_another_takes_its_values(place):
    # another text would have learned other values
    origin = shutil.copytree(place / "runs" / "tags", place / "origin")
    values = Run(origin).features()
    values = {**values, "lemma": values["lemma"][::-1]}
    (origin / "features.json").write_text(json.dumps(values))
    (origin / "checksums.sha256").unlink()
    overrides = ("model.init=origin", "vocabulary={}", "training.max_steps=1", "name=second")
    succeed("train", "tags.yaml", *overrides, cwd=place)
    assert Run(place / "runs" / "second").features() == values


def test_given_trees_need_the_columns_that_are_read(tmp_path):
    corpus = write_corpus(tmp_path / "corpus")
    syntax = {"variants": [{"name": "tag_embedding", "features": {"lemma": 4, "tag": 2}}]}
    write_recipe(tmp_path / "gold.yaml", corpus, syntax=syntax)
    message = " ".join(fail(2, "train", "gold.yaml", cwd=tmp_path).split())
    assert "gives no lemma" in message
    for trees in corpus.glob("*.conllu"):
        # the lemma of each word is `it`
        text = re.sub(r"^(\d+\t[^\t]+\t)_", r"\1it", trees.read_text(), flags=re.MULTILINE)
        trees.write_text(text)
    succeed("train", "gold.yaml", cwd=tmp_path)
    assert list(Run(tmp_path / "runs" / "gold").features()["lemma"]) == ["it"]


def test_with_bpe_dropout_the_places_of_pieces_follow_their_words(place):
    overrides = ("vocabulary.dropout=0.3", "training.max_steps=2", "name=drop")
    succeed("train", "tags.yaml", *overrides, cwd=place)
    assert (place / "runs" / "drop" / "model.safetensors").is_file()
