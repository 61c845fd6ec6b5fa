"""Files of synmt's own with values of wrong types: each is read as usual, or named with its key; no
traceback."""

import json
import shutil
import sys
from dataclasses import asdict
from functools import reduce
from operator import getitem
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
import torch
import yaml
from places import TESTS
from pyarrow import ipc
from refusing import assert_fails

from synmt.analysis.words.grouping import prepared_text
from synmt.data.annotate import learn_features
from synmt.data.corpus import PreparedCorpus
from synmt.data.encoding import summarize
from synmt.data.summary import corpus_table
from synmt.data.vocabulary import Vocabulary
from synmt.data.vocabulary_training import train_vocabulary
from synmt.decode.inputs import Request
from synmt.decode.remote import FinishedWindows
from synmt.decode.translation import Candidate, Translation, WordAlignment
from synmt.decode.tree_provider import parser_difference
from synmt.errors import SynmtError
from synmt.evaluation.cost import cost_table, run_cost
from synmt.files import reading
from synmt.files.json_files import read_json
from synmt.parsing import bulk, models
from synmt.parsing.parser import StanzaParser
from synmt.parsing.target import read_summary
from synmt.recipe.data import VocabularyRecipe
from synmt.run_folder import Run, find_run
from synmt.tokenization.word_tokenizer import Truecaser, load_tokenizers
from synmt.training.checkpoint import TrainingState
from synmt.training.finished import has_finished, missing_tests
from synmt.training.lifecycle import check_run
from synmt.training.meter import Meter
from synmt.training.preparation import relation_warnings
from synmt.training.records import Log
from synmt.training.test_sets import read_results
from synmt.training.text_stages import read_parse_cost
from synmt.training.tree_sources import tree_requirements

OLD = TESTS / "format1"
VALUES = r'null "x" 3 2.5 [] [1,"x"] {} {"a":1} true -1 1e400 NaN "\u0000"'
WRONG = [*VALUES.split(), "9" * 400]
WRONG = " ".join(WRONG).split()
BROKEN = [b"", b"[", b"{", b"[" * 100_000, b'{"a":' * 100_000, b"\xff\xfe", b"\0" * 9, b"9" * 5000]
MARK = "the value that is changed"


def places(value):
    """Name the places of a JSON value: itself, and what is in it; of a list or many numbers, the
    first one only."""
    yield ()
    alike = isinstance(value, list)
    items = list(value.items() if isinstance(value, dict) else enumerate(value) if alike else ())
    alike |= len(items) > 7 and all(isinstance(each, int) for _, each in items)
    for key, each in items[:1] if alike else items:
        yield from ((key, *rest) for rest in places(each))


def changed(text, place, new):
    """Write a value with another JSON text in one place, or without that key."""
    if not place:
        return new or ""
    copy = json.loads(text)
    holder = reduce(getitem, place[:-1], copy)
    holder[place[-1]] = MARK
    if new is None:
        del holder[place[-1]]
    return json.dumps(copy).replace(json.dumps(MARK), new or "")


def mutations(text, wrong=WRONG):
    """Change each value of a JSON text in every way, and damage the whole."""
    value = json.loads(text)
    yield from BROKEN
    for place in places(value):
        yield from (changed(text, place, new).encode() for new in [*wrong, None])


def check(path, readers, mutate=mutations, allowed=SynmtError):
    """Give readers each mutation of a file; they may only raise what is allowed."""
    original, found = path.read_bytes(), []
    for content in mutate(original):
        path.write_bytes(content)
        for name, read in readers.items():
            try:
                read()
            except allowed:
                pass
            except Exception as error:
                found.append(f"{name}: {error!r:.200} of {content[:200]!r}")
    path.write_bytes(original)
    assert not found


@pytest.fixture(scope="module")
def old(tmp_path_factory):
    """Make a finished run that has every file, and its prepared corpus."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SYNMT_OFFLINE", "1")
        folder = Path(shutil.copytree(OLD, tmp_path_factory.mktemp("broken") / "old"))
        patch.chdir(folder)
        run = run_of(folder)
        for name, content in yaml.safe_load(TESTED).items():
            (run.test_folder("test") / name).write_text(json.dumps(content))
        run.write_features({"lemma": ("a", "b")})
        run.write_info(parser=StanzaParser("en").identity, **yaml.safe_load(INFO))
        yield folder


TESTED = """
cost.json: {sentences: 4, seconds: 2.5, processor_seconds: 2.0}
made_from.json: {source: "0123", target: "4567"}
"""
INFO = """
parsing: {source: {lines: 3, words: 9, processor_seconds: 1.5}}
text: {source: {tokenizer: char, language: en, space: _}}
devices: [cpu]
init: {run: x, weights: "0"}
"""


def run_of(folder):
    return Run(folder / "runs" / "pascal")


def parse_as(run):
    if identity := run.info().get("parser"):
        parser_difference(identity, StanzaParser.from_identity(identity).identity)


def test_a_run(old, monkeypatch):
    run = run_of(old)
    recipe = run.recipe()
    monkeypatch.setattr(Run, "recipe", lambda run: recipe)
    readers = {
        "find_run": lambda: find_run(run.folder),
        "steps": run.steps,
        "finished": lambda: has_finished(run, recipe) and check_run(run, recipe, overwrite=False),
        "parser": lambda: parse_as(run),
        "prepared": lambda: prepared_text(run),
        "tokenizers": lambda: load_tokenizers(recipe, run.folder, run.info().get("text", {})),
        "write": lambda: run.write_info(status="finished"),
    }
    check(run.folder / "run.json", readers)


def lines_with(text):
    """Mutate the first line of each kind in a log, which is the last line, too."""
    lines = {json.loads(line)["kind"]: line for line in text.splitlines()}
    for line in lines.values():
        rest = [other for other in lines.values() if other != line]
        for new in mutations(line):
            yield b"\n".join([*rest, new])
            yield b"\n".join([new, *rest])


OTHERS = "log.jsonl state.json scores.json cost.json made_from.json features.json"


@pytest.mark.parametrize("name", OTHERS.split())
def test_another_file_of_a_run(old, tmp_path, monkeypatch, name):
    run = run_of(old)
    recipe, info, checkpoint = run.recipe(), run.info(), run.checkpoints()[-1]
    monkeypatch.setattr(Run, "recipe", lambda run: recipe)
    monkeypatch.setattr(Run, "info", lambda run: info)
    [path] = run.folder.rglob(name)
    # it would be looked for each time
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)

    def log():
        shutil.copy(path, tmp_path)
        Log(tmp_path, 99)

    def resume():
        state = read_json(checkpoint / "state.json", TrainingState)
        Meter(torch.device("cpu")).restore(state.unlogged, state.unlogged_cost)

    def cost():
        cost_table([("a", [run_cost(run)])] * 2)

    readers = {
        "log.jsonl": {"cost": cost, "log": log},
        "state.json": {"best": lambda: run.weights_of("best"), "resume": resume},
        "scores.json": {"results": lambda: list(read_results(run))},
        "cost.json": {"cost": cost},
        "made_from.json": {"missing": lambda: missing_tests(run, recipe)},
        "features.json": {"features": run.features},
    }[name]
    check(path, readers, lines_with if name == "log.jsonl" else mutations)


@pytest.fixture
def prepared(old):
    [folder] = (old / "data" / "prepared").glob("corpus-*")
    [annotation] = folder.glob("parse-*")
    return folder, annotation


@pytest.mark.parametrize("name", ["corpus.json", "annotation.json"])
def test_a_prepared_corpus(old, prepared, name):
    folder, annotation = prepared
    trees, wanted = {"source": annotation.name}, tree_requirements(run_of(old).recipe())

    def opened():
        return PreparedCorpus.open(folder)

    readers = {
        "vocabularies": lambda: opened().vocabularies,
        "rows": lambda: opened().split("train", trees).rows([0, 1]),
        "table": lambda: corpus_table(opened(), [annotation.name]),
        "warnings": lambda: relation_warnings(wanted, opened(), trees),
    }
    check((folder if name == "corpus.json" else annotation) / name, readers)


def with_facts(content):
    """Mutate the JSON in a file of columns."""
    batch = ipc.open_file(content).get_batch(0)
    facts = batch.schema.metadata[b"synmt"].decode()
    # names that are missing are noticed when a row needs them
    for new in mutations(facts, [new for new in WRONG if new != "[]"]):
        schema, out = batch.schema.with_metadata({"synmt": new}), pa.BufferOutputStream()
        with ipc.new_file(out, schema) as writer:
            writer.write_batch(batch.cast(schema))
        yield out.getvalue().to_pybytes()


@pytest.mark.parametrize("name", ["train-00000.arrow", "parse-*/train-00000.arrow"])
def test_the_facts_of_columns(prepared, name):
    folder, annotation = prepared
    [path] = folder.glob(name)
    corpus = PreparedCorpus.open(folder)
    readers = {
        "rows": lambda: corpus.split("train", {"source": annotation.name}).rows([0, 1]),
        "features": lambda: learn_features(corpus, annotation.name),
        "summary": lambda: summarize(folder, "train", 32),
    }
    check(path, readers, with_facts)


def test_a_broken_run_stops_no_other(old):
    broken = old / "runs" / "broken" / "run.json"
    broken.parent.mkdir()
    for content in (b"{", b'{"format": 1, "status": "finished", "steps": "many"}', b"[" * 100_000):
        broken.write_bytes(content)
        assert find_run(None, old / "runs").name == "pascal"
    assert_fails(r"broken/run\.json: broken: .* invalid JSON: recursion", find_run, broken.parent)
    broken.unlink()
    broken.mkdir()
    assert find_run(None, old / "runs").name == "pascal"
    shutil.rmtree(broken.parent)


PARSER: Any = SimpleNamespace(fingerprint="0123456789ab")
"""What the caches ask of a parser."""


@pytest.fixture
def cached(tmp_path, monkeypatch):
    """Give what reads each kind of a cached file, and the content of a shard's."""
    monkeypatch.setenv("SYNMT_CACHE", str(tmp_path))
    text, trees = tmp_path / "text", tmp_path / "a.conllu"
    windows = FinishedWindows(tmp_path / "windows", "job")
    text.write_text("one\n")
    shard = next(bulk.shards_of(["A dog eats ."], 5))
    sums = PARSER.fingerprint, shard.digest(), reading.sha256(text)
    manifest = bulk.Manifest(1, 4, *sums, {1: "why"}, 2.5)
    spans = [[0, 1]]
    candidates = (Candidate("Ein Hund", -0.5, -1.0, (4, 5)),)
    alignment = WordAlignment([(0, 0)], spans, spans)
    result = Translation(1, candidates, unknown=1, alignment=alignment)

    def translated():
        window = [Request("A dog")]
        if windows.read(window) is None:
            windows.write(window, [result])
        return windows.read(window)

    def parser():
        found = StanzaParser("en")
        return found.fingerprint, found.files()

    (tmp_path / "000001.conllu").write_bytes(text.read_bytes())
    monkeypatch.setattr(reading, "_LARGE", 0)
    return asdict(manifest), {
        "hashes": lambda: reading.stored_sha256(text),
        "parsers": parser,
        "windows": translated,
        "a.conllu.json": lambda: read_summary(trees),
        "a.conllu.cost.json": lambda: read_parse_cost(trees),
        "000001.json": lambda: bulk.finished_shard(shard, tmp_path, PARSER.fingerprint),
    }


CACHED = """
hashes:
parsers:
windows:
a.conllu.json: {lines: 1, words: 1, failures: 1, input: "", output: "", fingerprint: "", parser: {}}
a.conllu.cost.json: {lines: 1, words: 2, processor_seconds: 0.5}
000001.json: {}
"""
KINDS = yaml.safe_load(CACHED)


@pytest.mark.parametrize("kind", KINDS)
def test_a_broken_file_of_a_cache_stops_nothing(cached, tmp_path, kind):
    manifest, readers = cached
    content, read, path = KINDS[kind], readers[kind], tmp_path / kind
    if content is None:
        read()
        [path] = path.iterdir()
    else:
        content |= {"parser": StanzaParser("en").identity} if "parser" in content else {}
        path.write_text(json.dumps(content or manifest))
    original, expected = path.read_text(), repr(read())
    check(path, {"read": read}, allowed=())
    if kind != "windows":
        path.unlink()
        path.mkdir()
        read()
        path.rmdir()
        path.write_text(original)
    assert repr(read()) == expected != "None"


def test_a_broken_list_of_models_is_named(tmp_path):
    path = Path(shutil.copytree(models.COMPACT, tmp_path / "models")) / "resources.json"
    path.write_text('{"en": {"alias": "de"}, "resources_version": "1"}')
    model = str(path.parent)
    readers = {
        "locate": lambda: models.locate(model, "en"),
        "is": lambda: StanzaParser("en", model=model).identity,
    }
    check(path, readers)


def test_damaged_vocabularies_and_truecase_models_are_named(tmp_path):
    text = ["The monkey eats a banana.", "Der Affe isst eine Banane."]
    stored = train_vocabulary(text, VocabularyRecipe(size=300)).to_bytes()
    for broken in (stored[:-9], stored.replace("▁".encode(), b"\xff\x96\x81", 1)):
        (tmp_path / "source.model").write_bytes(broken)
        assert_fails(
            r"source\.model: not a SentencePiece model", Vocabulary.load, tmp_path, "source"
        )
    for broken in (b"monkey", b"monk\xff (3/3)\n"):
        (tmp_path / "source.truecase").write_bytes(broken)
        assert_fails(
            r"source\.truecase: broken",
            Truecaser(tmp_path / "source.truecase").truecase,
            ["Monkey"],
        )


def test_values_of_a_recipe_that_json_does_not_have_are_no_traceback(old):
    path = run_of(old).folder / "recipe.yaml"
    original = path.read_text()
    path.write_text(original.replace("evaluation:", "evaluation:\n  moon: !!timestamp 2020-01-01"))
    assert_fails(r"recipe\.yaml.*moon", run_of(old).recipe)
