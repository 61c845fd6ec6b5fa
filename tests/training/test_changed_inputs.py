"""A run whose texts, trees, parsers or first weights have changed since: it is not what its recipe
now describes."""

import gzip
import json
import os
import shutil
from functools import partial
from pathlib import Path

import pytest
from tiny import MODEL, PASCAL, fail, succeed, synmt, write_corpus, write_recipe

from synmt.files import reading
from synmt.files.reading import stored_sha256
from synmt.parsing.models import COMPACT

pytestmark = [pytest.mark.journey, pytest.mark.usefixtures("offline")]

SHORT = {"max_steps": 2, "validate_every": 2, "validation_beam_size": 0, "device": "cpu"}
GREEDY = {"beam_size": 1, "max_length_ratio": 0.1, "max_length_extra": 4}
OWN = {"model": "own", "workers": 1, "device": "cpu"}
MODEL_FILE = "own/en/pos/compact.pt"


def pair(split):
    return {"source": f"text/{split}.en", "target": f"text/{split}.de"}


KINDS = {
    "plain": {"parser": {}, "syntax": {}},
    "gold": {},
    "parts": {
        "syntax": {},
        "parser": {},
        "corpus": {
            "train": [pair("train"), {**pair("more"), "weight": 0.5}],
            "valid": pair("valid"),
        },
    },
    "parsed": {"parser": OWN, "syntax": {"variants": [PASCAL]}},
    "tasks": {"parser": OWN, "syntax": {}, "tasks": {"parsing": "dependencies"}},
    "based": {"parser": {}, "syntax": {}, "model": {**MODEL, "init": "runs/base"}},
}


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """Train a run of each kind, which a test asks for by the name of the kind; gives its folder."""
    folders = {}

    def make(kind):
        if kind not in folders:
            folder = folders[kind] = tmp_path_factory.mktemp(kind)
            text = write_corpus(folder / "text")
            for language in ("en", "de"):
                shutil.copy(text / f"valid.{language}", text / f"more.{language}")
            shutil.copytree(COMPACT, folder / "own")
            for name, sections in (("base", KINDS["plain"]), ("one", KINDS[kind])):
                short = {"training": SHORT, "decoding": GREEDY, **sections}
                write_recipe(folder / f"{name}.yaml", Path("text"), **short)
                if kind == "based" or name == "one":
                    succeed("train", f"{name}.yaml", cwd=folder)
        return folders[kind]

    return make


@pytest.fixture
def copied(trained, tmp_path, monkeypatch):
    """Copy the folder of a kind and go there."""

    def copy(kind):
        monkeypatch.chdir(shutil.copytree(trained(kind), tmp_path / "copy"))

    return copy


def add_line(*paths):
    for path in paths:
        Path(path).write_bytes(Path(path).read_bytes() + b"Mehr\n")


def add_pair(split):
    add_line(f"text/{split}.en", f"text/{split}.de")


def compress():
    for path in Path("text").glob("*.??"):
        path.with_name(f"{path.name}.gz").write_bytes(gzip.compress(path.read_bytes()))
        path.unlink()


@pytest.mark.parametrize(
    ("kind", "files", "changed"),
    [
        ("plain", "text/train.en text/train.de", "train (text/train.en), train (text/train.de)"),
        ("plain", "text/valid.de", "valid (text/valid.de)"),
        ("gold", "text/valid.en.conllu", "valid (text/valid.en.conllu)"),
        ("parts", "text/more.en text/more.de", "train.1 (text/more.en), train.1"),
        ("parsed", MODEL_FILE, "parser (en/pos/compact.pt)"),
        ("tasks", MODEL_FILE, "parser (en/pos/compact.pt)"),
        ("based", "runs/base/model.safetensors", "init (runs/base)"),
    ],
)
def test_a_change_is_named_and_nothing_is_trained(copied, kind, files, changed):
    copied(kind)
    add_line(*files.split())
    error = f"runs/one: its inputs have changed since this run was started: {changed}"
    for more in ([], ["training.max_steps=4"], ["--seeds", "2"]):
        assert error in fail(2, "train", "one.yaml", *more)
    plan = synmt("train", "one.yaml", "--dry-run")
    assert (plan.returncode, error in plan.stderr.decode()) == (2, True)
    assert not plan.stdout
    assert not Path("runs/one-seed2").exists()


def forget():
    """Make the run one of an earlier version."""
    path = Path("runs/one/run.json")
    info = json.loads(path.read_text())
    del info["inputs"], info["checksum"]
    path.write_text(json.dumps(info))
    add_pair("train")


@pytest.mark.parametrize(
    ("kind", "change"),
    [
        ("plain", partial(shutil.rmtree, "text")),
        ("plain", compress),
        ("plain", partial(os.utime, "text/train.en", (1, 1))),
        ("plain", partial(add_line, "text/train.en.conllu")),
        ("plain", forget),
        ("parsed", partial(shutil.rmtree, "own")),
        ("based", partial(shutil.rmtree, "runs/base")),
    ],
)
def test_what_is_gone_or_reads_the_same_has_not_changed(copied, kind, change):
    copied(kind)
    change()
    assert b"runs/one has finished already" in succeed("train", "one.yaml").stderr


def test_seeds_of_two_texts_are_never_averaged(copied):
    copied("plain")
    add_pair("train")
    succeed("train", "one.yaml", "name=one-seed2", "training.seed=2")
    message = "runs/one-seed2: not a seed of the same system as runs/one: another train (source)"
    for command in ("score --seeds runs/one runs/one-seed2", "analyze --by-length --run runs/one*"):
        assert message in fail(2, *command.split())


def test_the_hash_of_a_large_text_is_stored_as_it_is_read(tmp_path, monkeypatch):
    monkeypatch.setattr(reading, "_LARGE", 8)
    path, plain = tmp_path / "text.gz", tmp_path / "text"
    path.write_bytes(gzip.compress(b"a text\n"))
    plain.write_bytes(b"a text\n")
    for _ in range(2):
        hashes = {stored_sha256(each, unpacked=True) for each in (path, plain)}
        assert hashes == {stored_sha256(plain)} != {stored_sha256(path)}
    monkeypatch.setattr(reading, "sha256", None)
    assert {stored_sha256(path, unpacked=True)} == hashes
