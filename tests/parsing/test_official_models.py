"""Stanza's official models are downloaded when they are needed, from a server on this machine in
Stanza's layout."""

import hashlib
import json
import shutil
from contextlib import contextmanager

import pytest
from cases import cases
from corpus_server import Fault, come_online, serving
from refusing import assert_fails
from tiny import PASCAL, fail, lines_of, succeed, write_corpus, write_recipe

from synmt.parsing.models import COMPACT
from synmt.parsing.official import fetch, is_complete
from synmt.parsing.parser import StanzaParser
from synmt.run_folder import Run

pytestmark = pytest.mark.journey

LIST = "raw.githubusercontent.com/stanfordnlp/stanza-resources/main/resources_1.15.0.json"
MODELS = "huggingface.co/stanfordnlp/stanza-{}/resolve/v1.15.0/models"
PARTS = ("tokenize", "pos", "depparse")
CONTENT = {part: (COMPACT / "en" / part / "compact.pt").read_bytes() for part in PARTS}
TEXT = "The monkey eats a banana.\nDon't stop.\n"


def entry(package):
    """Describe a language as resources.json does."""
    hashes = {part: {package: {"md5": md5(CONTENT[part])}} for part in PARTS}
    default = {**dict.fromkeys(PARTS, package), "lemma": "identity"}
    return {**hashes, "packages": {"default": default, package: default}}


def md5(content):
    return hashlib.md5(content).hexdigest()


ADDRESS = "https://huggingface.co/stanfordnlp/stanza-{lang}/resolve/v{resources_version}/models"
PACKAGES = {"de": "gsd", "en": "combined", "zh-hans": "gsdsimp"}


def published():
    """Name all files as the real servers do."""
    resources = {code: entry(package) for code, package in PACKAGES.items()}
    resources |= {"german": {"alias": "de"}, "zh": {"alias": "zh-hans"}}
    ucsy = {"ucsy": {"md5": "1" * 32}}
    resources["my"] = {"tokenize": ucsy, "packages": {"default": {"tokenize": "ucsy"}}}
    resources["url"] = f"{ADDRESS}/{{filename}}"
    places = [(code, part) for code in PACKAGES for part in PARTS]
    models = {of(part, code, PACKAGES[code]): CONTENT[part] for code, part in places}
    return {LIST: json.dumps(resources).encode(), **models}


@contextmanager
def changed_list(server):
    """Change the list of models that the server has."""
    resources = json.loads(server.files[LIST])
    yield resources
    server.files[LIST] = json.dumps(resources).encode()


@pytest.fixture
def server(tmp_path, monkeypatch):
    monkeypatch.setenv("STANZA_RESOURCES_DIR", str(tmp_path / "stanza"))
    come_online(monkeypatch, tmp_path / "cache")
    with serving(published()) as running:
        monkeypatch.setenv("SYNMT_MIRROR", running.address)
        yield running


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "stanza"


def of(part, code="de", package="gsd"):
    return f"{MODELS.format(code)}/{part}/{package}.pt"


def test_a_language_alone_suffices_and_the_network_is_asked_once(server, folder, monkeypatch):
    compact = succeed("parse", "--lang", "en", text=TEXT)
    done = succeed("parse", "--lang", "de", text=TEXT)
    assert lines_of(done) == lines_of(compact)
    assert "stanza-de/resolve/v1.15.0/models/depparse/gsd.pt" in done.stderr.decode()
    asked = server.requests.copy()
    assert asked == {LIST: 1, **{of(part): 1 for part in PARTS}}
    again = succeed("parse", "--lang", "de", "--model", "official", "--download", text=TEXT)
    assert (again.stdout, again.stderr, server.requests) == (done.stdout, b"", asked)
    monkeypatch.setenv("SYNMT_OFFLINE", "1")
    monkeypatch.delenv("SYNMT_MIRROR")
    assert succeed("parse", "--lang", "de", text=TEXT).stdout == done.stdout
    # no second copy stays in the cache
    downloads = (folder.parent / "cache" / "downloads").rglob("*")
    assert not {".pt", ".json"} & {path.suffix for path in downloads}


@pytest.fixture
def project(server, tmp_path):
    """Write a corpus without trees, and a recipe whose parser is the official one."""
    corpus = write_corpus(tmp_path / "corpus")
    for path in corpus.glob("*.conllu"):
        path.unlink()
    parser = {"model": "official", "workers": 1, "device": "cpu"}
    write_recipe(tmp_path / "system.yaml", corpus, parser=parser, syntax={"variants": [PASCAL]})
    return tmp_path


def test_training_fetches_the_parser_pins_it_in_the_run_and_notices_another_one(
    project, server, folder
):
    def said(*arguments, text=""):
        return succeed(*arguments, cwd=project, text=text).stderr.decode()

    fetched = "stanza-en/resolve/v1.15.0/models/depparse/combined.pt"
    assert fetched in said("train", "system.yaml", "training.max_steps=4")
    pinned = Run(project / "runs" / "system").info()["parser"]
    assert pinned["files"] == {
        f"en/{part}/combined.pt": hashlib.sha256(CONTENT[part]).hexdigest() for part in PARTS
    }
    assert (pinned["model"], pinned["package"], pinned["resources"]) == (
        *("official", "default"),
        "1.15.0",
    )
    # the compact model has the same files under other names, and its list has no version
    assert StanzaParser("en").identity.keys() == pinned.keys() - {"resources"}

    # as on another machine
    shutil.rmtree(folder)
    translate = ("translate", "--run", "runs/system")
    remarks = said(*translate, text="A new sentence.\n")
    assert (fetched in remarks, "not the one" in remarks) == (True, False)

    (folder / "en" / "pos" / "combined.pt").write_bytes(CONTENT["pos"] + b"\0")
    refused = fail(2, "train", "system.yaml", "training.max_steps=8", cwd=project)
    assert "since this run was started: parser (en/pos/combined.pt)" in refused
    changed = "not the one that the model was trained with: other model files"
    assert changed in said(*translate, text="The monkey eats.\n")


def test_the_parsing_task_fetches_its_parser(project, server):
    succeed("prepare", "system.yaml", "syntax={}", "tasks.parsing=dependencies", cwd=project)
    assert server.requests[LIST] == 1


def test_the_tokenizer_of_a_side_without_trees_is_fetched(project, server):
    target = "target_parser={model: official, workers: 1, device: cpu}"
    words = ("target_text={tokenizer: stanza}", target, "evaluation.metrics=[bleu]")
    command = ("prepare", "system.yaml", "text={tokenizer: stanza}", *words)
    planned = succeed(*command, "--dry-run", cwd=project).stdout.decode()
    for one in ("en", "de"):
        assert planned.count(f"download the parser of Stanza for '{one}'") == 1
    assert "missing" not in planned
    succeed(*command, "syntax={}", cwd=project)
    for one in (("de", "gsd"), ("en", "combined")):
        assert {server.requests[of(part, *one)] for part in PARTS} == {1}


def test_an_alias_is_followed(server, folder):
    fetch("zh", "default")
    assert (folder / "zh-hans" / "depparse" / "gsdsimp.pt").is_file()
    assert len(StanzaParser("zh", model="official", device="cpu").parse(["a b"])[0]) == 2


def test_after_a_failure_the_next_command_fetches_only_what_is_missing(server, folder):
    server.faults[of("depparse")] = Fault(status=404)
    assert_fails(r"1 file\(s\) cannot be downloaded .*404", fetch, "de", "default")
    assert not (folder / "resources.json").exists()
    server.faults.clear()
    fetch("de", "default")
    assert server.requests[of("tokenize")] == server.requests[of("pos")] == 1
    assert is_complete("de", "default")


@pytest.mark.parametrize("damaged", [CONTENT["pos"][:-1], b"\0" + CONTENT["pos"][1:]])
def test_a_model_that_is_not_the_one_of_the_list_is_refused(server, folder, damaged):
    server.files[of("pos")] = damaged
    assert_fails(r"the file has changed: its MD5 is .*, not", fetch, "de", "default")
    assert not (folder / "resources.json").exists()
    assert not (folder / "de" / "pos").exists()


def test_a_missing_file_of_a_language_is_fetched_again_and_the_others_stay(server, folder):
    fetch("de", "default")
    (folder / "de" / "pos" / "gsd.pt").unlink()
    fetch("de", "default")
    assert server.requests[of("pos")] == 2
    assert server.requests[of("depparse")] == 1


def test_languages_that_are_there_keep_their_entry_in_the_list(server, folder):
    fetch("en", "default")
    with changed_list(server) as resources:
        resources["en"] = entry("newer")
    fetch("de", "default")
    assert (is_complete("en", "default"), is_complete("de", "default")) == (True, True)
    listed = json.loads((folder / "resources.json").read_text())
    assert listed["en"]["packages"]["default"]["pos"] == "combined"


# Stanza cuts `my` into words, and has no parser for it
UNKNOWN = """
xq => there is no language 'xq'. Languages: ab, af,
my => there is no language 'my'. Languages: de, en, zh-hans
aa => there is no language 'aa'. Languages: de, en, zh-hans
de --package gds => there is no package 'gds'. Packages: default, gsd. Did you mean 'gsd'?
"""


@pytest.mark.parametrize(("language", "said"), cases(UNKNOWN))
def test_an_unknown_language_or_package_lists_those_that_there_are(server, language, said):
    assert said in fail(2, "parse", "--lang", *language.split(), text=TEXT)
    assert server.requests[LIST] == (language[:2] in ("my", "aa", "de"))


def test_without_a_network_there_is_one_message(server, folder, monkeypatch):
    monkeypatch.setenv("SYNMT_MIRROR", "http://127.0.0.1:9")
    copied = f"copy resources.json and the folder de of its stanza_resources to {folder}"
    said = fail(1, "parse", "--lang", "de", text=TEXT)
    assert "1 file(s) cannot be downloaded (http://127.0" in said
    assert copied in said
    monkeypatch.setenv("SYNMT_OFFLINE", "1")
    said = fail(1, "parse", "--lang", "de", text=TEXT)
    assert "Stanza models for 'de' not found" in said
    assert copied in said


@pytest.mark.parametrize("content", [b"<html>", b"[]"])
def test_what_is_not_a_list_of_models_is_refused(server, content):
    server.files[LIST] = content
    assert_fails("not a list of Stanza's models", fetch, "de", "default")


def test_what_a_model_depends_on_is_fetched_too(server, folder):
    vectors = b"vectors"
    with changed_list(server) as resources:
        needed = {"model": "pretrain", "package": "fasttext"}
        resources["de"]["depparse"]["gsd"]["dependencies"] = [needed]
        resources["de"]["pretrain"] = {"fasttext": {"md5": md5(vectors)}}
    server.files[of("pretrain", package="fasttext")] = vectors
    fetch("de", "default")
    assert (folder / "de" / "pretrain" / "fasttext.pt").read_bytes() == vectors
    assert "de/pretrain/fasttext.pt" in StanzaParser("de", model="official").identity["files"]


def test_the_model_of_python_is_downloaded_only_if_allowed(server):
    assert_fails("not found", StanzaParser, "de", model="official")
    assert not server.requests
    assert (
        len(StanzaParser("de", model="official", download=True, device="cpu").parse(["a b"])[0])
        == 2
    )
