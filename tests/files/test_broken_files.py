"""Files of synmt's own with values of wrong types: each is read as usual, or named with its key; no
traceback."""

from __future__ import annotations

import json
import shutil
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import torch
from places import TESTS
from pyarrow import ipc

from synmt.analysis.run_facts import run_facts
from synmt.analysis.words.grouping import prepared_text
from synmt.corpora import download
from synmt.data.annotate import learn_features
from synmt.data.corpus import PreparedCorpus
from synmt.data.encoding import ShardFiles, summarize
from synmt.data.summary import corpus_table
from synmt.data.vocabulary import Vocabulary
from synmt.data.vocabulary_training import train_vocabulary
from synmt.decode.inputs import Request
from synmt.decode.remote import FinishedWindows
from synmt.decode.translation import Candidate, Translation, WordAlignment
from synmt.decode.tree_provider import parser_difference, parser_of_trees
from synmt.errors import SynmtError
from synmt.evaluation.cost import cost_table, run_cost
from synmt.files import reading
from synmt.parsing import bulk, models, shards
from synmt.parsing.cache import _HEADER, decode_parse, encode_parse
from synmt.parsing.parser import StanzaParser
from synmt.parsing.target import read_summary
from synmt.recipe.data import VocabularyRecipe
from synmt.run_folder import Run, find_run
from synmt.syntax.parse import flat_parse
from synmt.tokenization.casing import Truecaser
from synmt.tokenization.word_tokenizer import load_tokenizers
from synmt.training.checkpoint import read_progress
from synmt.training.finished import has_finished, missing_tests
from synmt.training.lifecycle import check_run
from synmt.training.log import Log
from synmt.training.meter import Meter
from synmt.training.preparation import relation_warnings
from synmt.training.test_sets import read_results
from synmt.training.text_stages import read_parse_cost
from synmt.training.tree_sources.requirements import tree_requirements

OLD = TESTS / "format1"
WRONG = [
    *("null", '"x"', "3", "2.5", "[]", '[1,"x"]', "{}", '{"a":1}', "true", "-1", "1e400", "NaN"),
    *('"\\u0000"', "9" * 400),
]
BROKEN = [
    b"",
    b"[",
    b"{",
    b"[" * 100_000,
    b'{"a":' * 100_000,
    b"\xff\xfe",
    b"\x00" * 9,
    b"9" * 5000,
]


def places(value: Any) -> Iterator[tuple[str | int, ...]]:
    """Name the places of a JSON value: itself, and what is in it; of a list or many numbers, the
    first one only."""
    yield ()
    items = (
        list(value.items())
        if isinstance(value, dict)
        else list(enumerate(value if isinstance(value, list) else ()))
    )
    alike = isinstance(value, list) or (
        len(items) > 7 and all(isinstance(each, int) for _, each in items)
    )
    for key, each in items[:1] if alike else items:
        yield from ((key, *rest) for rest in places(each))


def changed(value: Any, place: tuple[str | int, ...], new: str | None) -> str:
    """Write a value with another JSON text in one place, or without that key."""
    if not place:
        return new or ""
    first, *rest = place
    items = list(value.items()) if isinstance(value, dict) else list(enumerate(value))
    parts = [
        (key, changed(each, tuple(rest), new) if key == first else json.dumps(each))
        for key, each in items
        if key != first or rest or new is not None
    ]
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(key)}: {text}" for key, text in parts) + "}"
    return "[" + ", ".join(text for _, text in parts) + "]"


def mutations(text: str, wrong: Sequence[str] = WRONG) -> Iterator[bytes]:
    """Change each value of a JSON text in every way, and damage the whole."""
    value = json.loads(text)
    yield from BROKEN
    for place in places(value):
        yield from (changed(value, place, new).encode() for new in wrong)
        yield changed(value, place, None).encode()


def failures(
    path: Path, mutated: Iterator[bytes], readers: dict[str, Any], *, allowed: Any = SynmtError
) -> list[str]:
    """List the exceptions of readers that are not allowed, for each content of a file."""
    original, found = path.read_bytes(), []
    for content in mutated:
        path.write_bytes(content)
        for name, read in readers.items():
            try:
                read()
            except allowed:
                pass
            except Exception as error:
                found.append(f"{name}: {error!r:.200} of {content[:200]!r}")
    path.write_bytes(original)
    return found


@pytest.fixture(scope="module")
def old(tmp_path_factory):
    """Make a finished run that has every file, and its prepared corpus."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SYNMT_OFFLINE", "1")
        folder = Path(shutil.copytree(OLD, tmp_path_factory.mktemp("broken") / "old"))
        patch.chdir(folder)
        run = Run(folder / "runs" / "pascal")
        test = run.test_folder("test")
        (test / "cost.json").write_text(
            '{"sentences": 4, "seconds": 2.5, "processor_seconds": 2.0}'
        )
        (test / "made_from.json").write_text('{"source": "0123", "target": "4567"}')
        run.write_features({"lemma": ("a", "b")})
        text = {"source": {"tokenizer": "char", "language": "en", "space": "_"}}
        parsing = {"source": {"lines": 3, "words": 9, "processor_seconds": 1.5}}
        identity = StanzaParser("en").identity
        run.write_info(
            parser=identity,
            parsing=parsing,
            text=text,
            devices=["cpu"],
            init={"run": "x", "weights": "0"},
        )
        yield folder


def run_of(folder: Path) -> Run:
    return Run(folder / "runs" / "pascal")


def show_cost(run: Run) -> None:
    cost_table([("a", [run_cost(run)])] * 2)


def parse_as(run: Run) -> None:
    if identity := run.info().get("parser"):
        parser_difference(identity, StanzaParser.from_identity(identity).identity)


def test_a_run(old, monkeypatch):
    run = run_of(old)
    recipe = run.recipe()
    monkeypatch.setattr(Run, "recipe", lambda run: recipe)
    readers = {
        "find_run": lambda: find_run(run.folder),
        "steps": run.steps,
        "facts": lambda: run_facts(run),
        "finished": lambda: has_finished(run, recipe) and check_run(run, recipe, overwrite=False),
        "parser": lambda: parse_as(run),
        "prepared": lambda: prepared_text(run),
        "tokenizers": lambda: load_tokenizers(recipe, run.folder, run.info().get("text", {})),
        "write": lambda: run.write_info(status="finished"),
    }
    path = run.folder / "run.json"
    assert not failures(path, mutations(path.read_text()), readers)


def lines_with(text: str) -> Iterator[bytes]:
    """Mutate the first line of each kind in a log, which is the last line, too."""
    lines = {json.loads(line)["kind"]: line for line in text.splitlines()}
    for line in lines.values():
        rest = [other for other in lines.values() if other != line]
        for new in mutations(line):
            yield "\n".join(rest).encode() + b"\n" + new
            yield new + b"\n" + "\n".join(rest).encode()


@pytest.mark.parametrize(
    "name",
    ["log.jsonl", "state.json", "scores.json", "cost.json", "made_from.json", "features.json"],
)
def test_another_file_of_a_run(old, tmp_path, monkeypatch, name):
    run = run_of(old)
    recipe, info, checkpoint = run.recipe(), run.info(), run.checkpoints()[-1]
    monkeypatch.setattr(Run, "recipe", lambda run: recipe)
    monkeypatch.setattr(Run, "info", lambda run: info)
    [path] = run.folder.rglob(name)

    def log():
        shutil.copy(path, tmp_path)
        Log(tmp_path, 99)

    def resume():
        Meter(torch.device("cpu")).start(read_progress(checkpoint, {}).unlogged_cost)

    readers = {
        "log.jsonl": {"cost": lambda: show_cost(run), "log": log},
        "state.json": {"best": lambda: run.weights_of("best"), "resume": resume},
        "scores.json": {"results": lambda: list(read_results(run))},
        "cost.json": {"cost": lambda: show_cost(run)},
        "made_from.json": {"missing": lambda: missing_tests(run, recipe)},
        "features.json": {"features": run.features},
    }[name]
    mutated = (lines_with if name == "log.jsonl" else mutations)(path.read_text())
    assert not failures(path, mutated, readers)


@pytest.fixture
def prepared(old):
    [folder] = (old / "data" / "prepared").glob("corpus-*")
    [annotation] = folder.glob("parse-*")
    return folder, annotation


@pytest.mark.parametrize("name", ["corpus.json", "annotation.json"])
def test_a_prepared_corpus(old, prepared, name):
    folder, annotation = prepared
    recipe = run_of(old).recipe()
    trees = {"source": annotation.name}
    readers = {
        "vocabularies": lambda: PreparedCorpus.open(folder).vocabularies,
        "rows": lambda: PreparedCorpus.open(folder).split("train", trees).rows([0, 1]),
        "table": lambda: corpus_table(PreparedCorpus.open(folder), [annotation.name]),
        "warnings": lambda: relation_warnings(
            tree_requirements(recipe), PreparedCorpus.open(folder), trees
        ),
    }
    path = (folder if name == "corpus.json" else annotation) / name
    assert not failures(path, mutations(path.read_text()), readers)


def with_facts(path: Path) -> Iterator[bytes]:
    """Mutate the JSON in a file of columns."""
    with ipc.open_file(path.read_bytes()) as reader:
        batch = reader.get_batch(0)
    facts = batch.schema.metadata[b"synmt"].decode()
    # names that are missing are noticed when a row needs them
    for new in mutations(facts, [new for new in WRONG if new != "[]"]):
        schema, content = batch.schema.with_metadata({"synmt": new}), pa.BufferOutputStream()
        with ipc.new_file(content, schema) as writer:
            writer.write_batch(batch.cast(schema))
        yield content.getvalue().to_pybytes()


@pytest.mark.parametrize("name", ["train-00000.arrow", "parse-*/train-00000.arrow"])
def test_the_facts_of_columns(prepared, name):
    folder, annotation = prepared
    [path] = folder.glob(name)
    corpus = PreparedCorpus.open(folder)
    readers = {
        "rows": lambda: corpus.split("train", {"source": annotation.name}).rows([0, 1]),
        "features": lambda: learn_features(corpus, annotation.name),
        "summary": lambda: summarize(ShardFiles(folder, "train", 32)),
    }
    assert not failures(path, with_facts(path), readers)


def test_a_broken_run_stops_no_other_and_is_named(old, caplog):
    broken = old / "runs" / "broken"
    broken.mkdir()
    for content in (b"{", b'{"format": 1, "status": "finished", "steps": "many"}', b"[" * 100_000):
        (broken / "run.json").write_bytes(content)
        caplog.clear()
        assert find_run(None, old / "runs").name == "pascal"
        assert str(broken / "run.json") in caplog.text
    with pytest.raises(SynmtError, match=r"broken/run\.json: broken: not JSON \(recursion limit"):
        find_run(broken)
    (broken / "run.json").unlink()
    (broken / "run.json").mkdir()
    assert find_run(None, old / "runs").name == "pascal"
    shutil.rmtree(broken)


class _Parser:
    """What the caches ask of a parser."""

    fingerprint = "0123456789ab"


@pytest.fixture
def cached(tmp_path, monkeypatch):
    """Make a cached file of each kind, and what reads it: path, text, reader."""
    monkeypatch.setenv("SYNMT_CACHE", str(tmp_path))
    summary = tmp_path / "a.conllu.json"
    text, trees, windows = (
        tmp_path / "text",
        tmp_path / "a.conllu",
        FinishedWindows(tmp_path / "windows", "job"),
    )
    text.write_text("one\n")
    shard = next(shards.shards_of(["A dog eats ."], 5))
    manifest = shards.Manifest(
        1, 4, _Parser.fingerprint, shard.digest(), reading.sha256(text), {1: "why"}, 2.5
    )
    spans = np.array([[0, 1]])
    alignment = WordAlignment([(0, 0)], spans, spans)
    result = Translation(
        1, (Candidate("Ein Hund", -0.5, -1.0, (4, 5)),), unknown=("ß",), alignment=alignment
    )
    window = (1, [Request("A dog")])

    def translated():
        return list(windows.translate(iter([window]), lambda some: ([result] for _ in some)))

    def parser():
        found = StanzaParser("en")
        return found.fingerprint, found.files()

    files = {
        "hashes": (None, lambda: reading.stored_sha256(text)),
        "parsers": (None, parser),
        "windows": (None, translated),
        "rates": ({"words_per_second": 5.0}, lambda: bulk.measured_rate(_Parser())),
        "a.conllu.json": (
            {
                **dict.fromkeys(("lines", "words", "failures"), 1),
                "input": "",
                "output": "",
                "fingerprint": "",
            }
            | {"parser": StanzaParser("en").identity},
            lambda: (
                read_summary(trees),
                parser_difference(parser_of_trees(summary) or {}, {"files": {}}),
            ),
        ),
        "a.conllu.cost.json": (
            {"lines": 1, "words": 2, "processor_seconds": 0.5},
            lambda: read_parse_cost(trees),
        ),
        "000001.json": (
            asdict(manifest),
            lambda: shards.finished_shard(shard, tmp_path, _Parser.fingerprint),
        ),
        "partial.json": (
            {"version": "1", "size": 5},
            lambda: download._note(tmp_path / "partial"),
        ),
    }
    (tmp_path / "000001.conllu").write_bytes(text.read_bytes())
    monkeypatch.setattr(reading, "_LARGE", 0)
    return files


KINDS = [
    "hashes",
    "parsers",
    "windows",
    "rates",
    "a.conllu.json",
    "a.conllu.cost.json",
    "000001.json",
    "partial.json",
]


@pytest.mark.parametrize("kind", KINDS)
def test_a_broken_file_of_a_cache_stops_nothing(cached, tmp_path, kind):
    content, read = cached[kind]
    folder = tmp_path / kind
    path = bulk._path(_Parser()) if kind == "rates" else folder  # type: ignore[arg-type]
    if content is None:
        read()
        [path] = folder.iterdir()
    else:
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps(content))
    original, expected = path.read_text(), repr(read())
    assert not failures(path, mutations(original), {"read": read}, allowed=())
    if kind != "windows":
        path.unlink()
        path.mkdir()
        read()
        path.rmdir()
        path.write_text(original)
    assert repr(read()) == expected != "None"


def test_a_broken_tree_in_the_cache_is_parsed_again(monkeypatch):
    line = "A dog eats ."
    parse = flat_parse(line)
    stored = zlib.decompress(encode_parse(parse, line)[1:])
    length, *others = _HEADER.unpack_from(stored)
    names, rest = stored[_HEADER.size :][:length], stored[_HEADER.size + length :]
    for new in mutations(names.decode()):
        tree = bytes([1]) + zlib.compress(_HEADER.pack(len(new), *others) + new + rest)
        decode_parse(tree, line)
    assert (
        decode_parse(bytes([1]) + zlib.compress(_HEADER.pack(length, *others) + names + rest), line)
        == parse
    )


def test_a_broken_list_of_models_is_named(tmp_path):
    path = Path(shutil.copytree(models.COMPACT, tmp_path / "models")) / "resources.json"
    readers = {
        "locate": lambda: models.locate(str(path.parent), "en"),
        "is": lambda: StanzaParser("en", model=str(path.parent)).identity,
    }
    assert not failures(
        path, mutations(json.dumps({"en": {"alias": "de"}, "resources_version": "1"})), readers
    )


def test_damaged_vocabularies_and_truecase_models_are_named(tmp_path):
    text = ["The monkey eats a banana.", "Der Affe isst eine Banane."]
    vocabulary = train_vocabulary(text, VocabularyRecipe(size=300))
    stored = vocabulary.to_bytes()
    piece = stored.index("▁".encode())
    for broken in (stored[:-9], stored[:piece] + b"\xff" + stored[piece + 1 :]):
        (tmp_path / "source.model").write_bytes(broken)
        with pytest.raises(SynmtError, match=r"source\.model: not a SentencePiece model"):
            Vocabulary.load(tmp_path, "source")
    for broken in (b"monkey", b"monk\xff (3/3)\n"):
        (tmp_path / "source.truecase").write_bytes(broken)
        with pytest.raises(SynmtError, match=r"source\.truecase: broken"):
            Truecaser(tmp_path / "source.truecase").truecase(["Monkey"])


def test_values_of_a_recipe_that_json_does_not_have_are_no_traceback(old):
    path = run_of(old).folder / "recipe.yaml"
    original = path.read_text()
    path.write_text(original.replace("evaluation:", "evaluation:\n  moon: !!timestamp 2020-01-01"))
    with pytest.raises(SynmtError, match=r"recipe\.yaml.*moon"):
        run_of(old).evaluation()
    path.write_text(original)
    assert run_of(old).evaluation() == run_of(old).recipe().evaluation
