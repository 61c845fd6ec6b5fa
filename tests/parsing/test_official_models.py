"""Stanza's official models are downloaded when they are needed, from a server on this machine in
Stanza's layout."""

import hashlib
import json
import shutil
import subprocess
import sys

import pytest
from corpus_server import Fault, serving
from tiny import PASCAL, environment, fail, lines_of, succeed, write_corpus, write_recipe

from synmt.corpora import transfer
from synmt.errors import SynmtError
from synmt.parsing.models import COMPACT
from synmt.parsing.official import fetch, is_complete
from synmt.parsing.parser import StanzaParser
from synmt.run_folder import Run

pytestmark = pytest.mark.journey

LIST = "raw.githubusercontent.com/stanfordnlp/stanza-resources/main/resources_1.15.0.json"
MODELS = "huggingface.co/stanfordnlp/stanza-{}/resolve/v1.15.0/models"
PARTS = ("tokenize", "pos", "depparse")
CONTENT = {part: (COMPACT / "en" / part / "compact.pt").read_bytes() for part in PARTS}
MEGABYTES = sum(map(len, CONTENT.values())) / 1e6
TEXT = "The monkey eats a banana.\nDon't stop.\n"


def entry(package, **more):
    """Describe a language as resources.json does."""
    hashes = {part: {package: {"md5": hashlib.md5(CONTENT[part]).hexdigest()}} for part in PARTS}
    default = {**dict.fromkeys(PARTS, package), "lemma": "identity"}
    return {
        **hashes,
        "packages": {"default": default, package: default},
        "default_md5": "0" * 32,
        **more,
    }


def published():
    """Name all files as the real servers do."""
    resources = {
        "de": entry("gsd", lang_name="German"),
        "en": entry("combined", lang_name="English"),
        "german": {"alias": "de"},
        "my": {
            "tokenize": {"ucsy": {"md5": "1" * 32}},
            "packages": {"default": {"tokenize": "ucsy"}},
        },
        "zh": {"alias": "zh-hans"},
        "zh-hans": entry("gsdsimp", lang_name="Simplified_Chinese"),
        "url": "https://huggingface.co/stanfordnlp/stanza-{lang}/resolve/v{resources_version}/models/{filename}",
    }
    packages = {"de": "gsd", "en": "combined", "zh-hans": "gsdsimp"}
    models = {
        f"{MODELS.format(code)}/{part}/{name}.pt": CONTENT[part]
        for code, name in packages.items()
        for part in PARTS
    }
    return {LIST: json.dumps(resources).encode(), **models}


@pytest.fixture
def server(tmp_path, monkeypatch):
    monkeypatch.setenv("STANZA_RESOURCES_DIR", str(tmp_path / "stanza"))
    monkeypatch.setenv("SYNMT_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("SYNMT_OFFLINE", raising=False)
    monkeypatch.setattr(transfer, "PAUSES", (0.0, 0.0))
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
    assert (
        f"downloading the Stanza model for 'de' (package default): 3 files, {MEGABYTES:.1f} MB, to "
        f"{folder}" in (done.stderr.decode())
    )
    asked = server.requests.copy()
    assert asked == {LIST: 1, **{of(part): 1 for part in PARTS}}
    again = succeed("parse", "--lang", "de", "--model", "official", "--download", text=TEXT)
    assert (again.stdout, again.stderr, server.requests) == (done.stdout, b"", asked)
    monkeypatch.setenv("SYNMT_OFFLINE", "1")
    monkeypatch.delenv("SYNMT_MIRROR")
    assert succeed("parse", "--lang", "de", text=TEXT).stdout == done.stdout
    # no second copy stays in the cache
    assert not [
        path
        for path in (folder.parent / "cache" / "downloads").rglob("*")
        if path.suffix in (".pt", ".json")
    ]


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
    done = succeed("train", "system.yaml", "training.max_steps=4", cwd=project)
    assert "downloading the Stanza model for 'en'" in done.stderr.decode()
    pinned = Run(project / "runs" / "system").info()["parser"]
    expected = {
        f"en/{part}/combined.pt": hashlib.sha256(CONTENT[part]).hexdigest() for part in PARTS
    }
    assert pinned["files"] == expected
    pins = {"backend": "stanza", "model": "official", "language": "en", "package": "default"}
    assert {**pins, "stanza": "1.15.0", "resources": "1.15.0"}.items() <= pinned.items()
    # the compact model has the same files under other names, and its list has no version
    assert StanzaParser("en").identity.keys() == pinned.keys() - {"resources"}

    # as on another machine
    shutil.rmtree(folder)
    done = succeed("translate", "--run", "runs/system", cwd=project, text="A new sentence.\n")
    assert "downloading the Stanza model for 'en'" in done.stderr.decode()
    assert "not the one" not in done.stderr.decode()

    (folder / "en" / "pos" / "combined.pt").write_bytes(CONTENT["pos"] + b"\0")
    said = fail(2, "train", "system.yaml", "training.max_steps=8", cwd=project)
    assert (
        "have changed since this run was started: parser of the source (en/pos/combined.pt)" in said
    )
    changed = "other model files (en/pos/combined.pt)"
    done = succeed("translate", "--run", "runs/system", cwd=project, text="The monkey eats.\n")
    assert (
        f"the parser is not the one that the model was trained with: {changed}"
        in done.stderr.decode()
    )


def test_given_trees_need_no_parser(project, server):
    write_corpus(project / "gold")
    splits = {
        split: {
            "source": f"gold/{split}.en",
            "target": f"gold/{split}.de",
            "source_parses": f"gold/{split}.en.conllu",
        }
        for split in ("train", "valid", "test")
    }
    corpus = {"train": splits["train"], "valid": splits["valid"], "test": {"test": splits["test"]}}
    write_recipe(project / "given.yaml", project, corpus=corpus, parser={"model": "official"})
    succeed("prepare", "given.yaml", cwd=project)
    assert not server.requests


def test_the_parsing_task_fetches_its_parser(project, server):
    succeed("prepare", "system.yaml", "syntax={}", "tasks.parsing=dependencies", cwd=project)
    assert server.requests[LIST] == 1


def test_the_tokenizer_of_a_side_without_trees_is_fetched(project, server):
    target = "target_parser={model: official, workers: 1, device: cpu}"
    words = ("target_text={tokenizer: stanza}", target, "evaluation.metrics=[bleu]")
    command = ("prepare", "system.yaml", "text={tokenizer: stanza}", *words)
    planned = succeed(*command, "--dry-run", cwd=project).stdout.decode()
    assert [
        planned.count(f"download the parser: Stanza's official model for '{one}'")
        for one in ("en", "de")
    ] == [
        1,
        1,
    ]
    assert "missing" not in planned
    succeed(*command, "syntax={}", cwd=project)
    assert {server.requests[of(part)] for part in PARTS} == {1}
    assert {server.requests[of(part, "en", "combined")] for part in PARTS} == {1}
    assert is_complete("en", "default")


def test_an_alias_is_followed(server, folder):
    fetch("zh", "default")
    assert (folder / "zh-hans" / "depparse" / "gsdsimp.pt").is_file()
    assert len(StanzaParser("zh", model="official", device="cpu").parse(["a b"])[0]) == 2


def test_a_download_that_breaks_off_continues(server, folder):
    server.faults[of("depparse")] = Fault(breaks=1)
    fetch("de", "default")
    assert server.requests[of("depparse")] == 2
    assert server.ranges == [f"bytes={len(CONTENT['depparse']) // 2}-"]
    assert (folder / "de" / "depparse" / "gsd.pt").read_bytes() == CONTENT["depparse"]


def test_after_a_failure_the_next_command_fetches_only_what_is_missing(server, folder):
    server.faults[of("depparse")] = Fault(status=404)
    with pytest.raises(
        SynmtError, match=r"1 file of the Stanza model for 'de' cannot be downloaded .*404"
    ):
        fetch("de", "default")
    assert not (folder / "resources.json").exists()
    server.faults.clear()
    fetch("de", "default")
    assert server.requests[of("tokenize")] == server.requests[of("pos")] == 1
    assert is_complete("de", "default")


@pytest.mark.parametrize(
    "damage", [lambda content: content[:-1], lambda content: b"\0" + content[1:]]
)
def test_a_model_that_is_not_the_one_of_the_list_is_refused(server, folder, damage):
    server.files[of("pos")] = damage(CONTENT["pos"])
    with pytest.raises(SynmtError, match=r"the file has changed: it has MD5 .*Expected: MD5"):
        fetch("de", "default")
    assert not (folder / "resources.json").exists()
    assert not (folder / "de" / "pos").exists()
    server.files[of("pos")] = CONTENT["pos"]
    fetch("de", "default")
    assert is_complete("de", "default")


def test_a_missing_file_of_a_language_is_fetched_again_and_the_others_stay(server, folder):
    fetch("de", "default")
    (folder / "de" / "pos" / "gsd.pt").unlink()
    fetch("de", "default")
    assert server.requests[of("pos")] == 2
    assert server.requests[of("depparse")] == 1


def test_languages_that_are_there_keep_their_entry_in_the_list(server, folder):
    fetch("en", "default")
    changed = json.loads(server.files[LIST])
    changed["en"] = entry("newer")
    server.files[LIST] = json.dumps(changed).encode()
    fetch("de", "default")
    assert is_complete("en", "default")
    assert is_complete("de", "default")
    assert (
        json.loads((folder / "resources.json").read_text())["en"]["packages"]["default"]["pos"]
        == "combined"
    )


def test_a_list_that_cannot_be_read_is_replaced(server, folder):
    folder.mkdir()
    (folder / "resources.json").write_text("{")
    fetch("de", "default")
    assert is_complete("de", "default")


def test_two_processes_at_once_download_every_file_once(server, folder):
    for part in PARTS:
        server.faults[of(part)] = Fault(pause=0.02)
    script = "from synmt.parsing.official import fetch; fetch('de', 'default')"
    running = [
        subprocess.Popen([sys.executable, "-c", script], env=environment()) for _ in range(2)
    ]
    assert [process.wait() for process in running] == [0, 0]
    assert set(server.requests.values()) == {1}
    assert is_complete("de", "default")


def test_the_progress_is_that_of_every_file(server, reported):
    fetch("de", "default")
    sizes = [len(server.files[LIST]), *(len(CONTENT[part]) for part in PARTS)]
    assert [job[1:3] for job in reported] == [[pytest.approx(size / 1e6), "MB"] for size in sizes]
    assert [sum(job[3:]) for job in reported] == [pytest.approx(size / 1e6) for size in sizes]


@pytest.mark.parametrize(
    ("language", "said"),
    [
        ("xq", "no parser for the language 'xq'. Languages: ab, af, "),
        # Stanza cuts it into words, and has no parser for it
        ("my", "no parser for the language 'my'. Languages: de, en, zh-hans"),
        ("aa", "no parser for the language 'aa'. Languages: de, en, zh-hans"),
        ("german", "'german' is the name of a language, not its code. Did you mean 'de'?"),
    ],
)
def test_an_unknown_language_lists_those_that_there_are(server, language, said):
    assert said in fail(2, "parse", "--lang", language, text=TEXT)
    assert server.requests[LIST] == (language in ("my", "aa"))


def test_an_unknown_package_lists_those_that_there_are(server):
    said = fail(2, "parse", "--lang", "de", "--package", "gds", text=TEXT)
    assert (
        "Stanza has no package 'gds' for the language 'de'. Packages: default, gsd. Did you "
        "mean 'gsd'?" in said
    )


def test_without_a_network_there_is_one_message(server, folder, monkeypatch):
    monkeypatch.setenv("SYNMT_MIRROR", "http://127.0.0.1:9")
    copied = f"copy resources.json and the folder de from there to {folder}"
    said = fail(1, "parse", "--lang", "de", text=TEXT)
    assert (
        "Stanza's list of models, for 'de': 1 file cannot be downloaded "
        "(http://127.0.0.1:9/raw.github" in said
    )
    assert copied in said
    monkeypatch.setenv("SYNMT_OFFLINE", "1")
    said = fail(1, "parse", "--lang", "de", text=TEXT)
    assert "Stanza models for 'de' not found. SYNMT_OFFLINE forbids the network" in said
    assert copied in said
    assert "`parser.model=compact`" in fail(1, "parse", "--parser", "official", text=TEXT)


@pytest.mark.parametrize("content", [b"<html>", b"[]"])
def test_what_is_not_a_list_of_models_is_refused(server, content):
    server.files[LIST] = content
    with pytest.raises(SynmtError, match="not a list of Stanza's models"):
        fetch("de", "default")


@pytest.mark.parametrize("name", ["../../evil", "/evil", ".."])
def test_a_name_that_leads_out_of_the_folder_is_refused(server, folder, name):
    resources = json.loads(server.files[LIST])
    resources["de"]["pos"] = {name: {"md5": "0" * 32}}
    resources["de"]["packages"]["default"]["pos"] = name
    server.files[LIST] = json.dumps(resources).encode()
    with pytest.raises(SynmtError, match="a name that is not one of a file"):
        fetch("de", "default")
    assert not (folder / "de").exists()


def test_what_a_model_depends_on_is_fetched_too(server, folder):
    resources = json.loads(server.files[LIST])
    vectors = b"vectors"
    resources["de"]["depparse"]["gsd"]["dependencies"] = [
        {"model": "pretrain", "package": "fasttext"}
    ]
    resources["de"]["pretrain"] = {"fasttext": {"md5": hashlib.md5(vectors).hexdigest()}}
    server.files |= {
        LIST: json.dumps(resources).encode(),
        of("pretrain", package="fasttext"): vectors,
    }
    fetch("de", "default")
    assert (folder / "de" / "pretrain" / "fasttext.pt").read_bytes() == vectors
    files = StanzaParser("de", model="official").identity["files"]
    assert files["de/pretrain/fasttext.pt"] == hashlib.sha256(vectors).hexdigest()


def test_the_model_of_python_is_downloaded_only_if_allowed(server):
    with pytest.raises(SynmtError, match="not found"):
        StanzaParser("de", model="official")
    assert not server.requests
    assert (
        len(StanzaParser("de", model="official", download=True, device="cpu").parse(["a b"])[0])
        == 2
    )


def test_a_package_that_is_missing_beside_another_is_fetched(server, folder):
    resources = json.loads(server.files[LIST])
    for part in PARTS:
        resources["de"][part]["hdt"] = resources["de"][part]["gsd"]
        server.files[of(part, package="hdt")] = CONTENT[part]
    server.files[LIST] = json.dumps(resources).encode()
    fetch("de", "default")
    fetch("de", "hdt")
    assert (folder / "de" / "depparse" / "hdt.pt").is_file()
    assert is_complete("de", "default")
