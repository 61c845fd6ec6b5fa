"""Every known corpus is built from small archives that have the names, folders and formats of the public ones."""

import dataclasses
import hashlib
import logging
from collections.abc import Mapping

import pytest
from corpus_server import Fault, serving
from public_archives import EUROPARL, aspec, hostile, public_archives
from sentences import lines

from synmt.corpora import transfer
from synmt.corpora.assemble import files_of
from synmt.corpora.download import RemoteFile
from synmt.corpora.known import KNOWN_CORPORA
from synmt.corpora.resolve import resolve_corpus
from synmt.errors import SynmtError
from synmt.recipe.data import CorpusRecipe

BUILT = [name for name, known in KNOWN_CORPORA.items() if known.plans]
NC11 = "data.statmt.org/wmt16/translation-task/training-parallel-nc-v11.tgz"


@pytest.fixture(scope="module")
def files():
    return public_archives()


@pytest.fixture
def server(files, tmp_path, monkeypatch):
    """Stand in for all public servers, and for their lists of sums."""
    monkeypatch.setenv("SYNMT_CACHE", str(tmp_path / "cache"))
    for name in ("SYNMT_DATA", "SYNMT_OFFLINE", "SYNMT_ASPEC"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(transfer, "PAUSES", (0.0, 0.0, 0.0))
    with serving(files) as server:
        monkeypatch.setenv("SYNMT_MIRROR", server.address)
        for name, known in KNOWN_CORPORA.items():
            monkeypatch.setitem(KNOWN_CORPORA, name, with_sums_of(server, known))
        yield server


@pytest.fixture(autouse=True)
def sums_of_test_sets(files, monkeypatch):
    """Replace the sums in sacreBLEU's list."""
    from sacrebleu.dataset import DATASETS

    for name in ("wmt15", "wmt16", "wmt17"):
        content = content_of(files, DATASETS[name].data[0].partition("://")[2])
        monkeypatch.setattr(DATASETS[name], "md5", [hashlib.md5(content).hexdigest()])


def content_of(files, name):
    found = files[name]
    return found() if callable(found) else found


def with_sums_of(server, value):
    """Copy a description of a corpus with the sums of the served files in place of the public ones."""
    if isinstance(value, RemoteFile):
        content = server.content(value.address.partition("://")[2])
        sha256, md5 = (hashlib.new(kind, content).hexdigest() for kind in ("sha256", "md5"))
        return dataclasses.replace(value, sha256=value.sha256 and sha256, md5=value.md5 and md5)
    if isinstance(value, tuple):
        return tuple(with_sums_of(server, part) for part in value)
    if isinstance(value, Mapping):
        return {key: with_sums_of(server, part) for key, part in value.items()}
    if dataclasses.is_dataclass(value):
        fields = {field.name: with_sums_of(server, getattr(value, field.name)) for field in dataclasses.fields(value)}
        return dataclasses.replace(value, **fields)
    return value


def built(name, source=None, target=None):
    """Build a corpus; return its texts by file name."""
    first, second = KNOWN_CORPORA[name].languages[:2]
    corpus = resolve_corpus(CorpusRecipe(name=name), source or first, target or second)
    texts = [path for files in corpus.splits().values() for path in (files.source, files.target)]
    return {path.name: path.read_text(encoding="utf-8").split("\n")[:-1] for path in texts}


@pytest.mark.parametrize("name", BUILT)
def test_a_known_corpus_is_built_from_its_public_files(name, server, tmp_path):
    unpack_aspec(tmp_path / "cache" / "corpora" / "aspec")
    texts, known = built(name), KNOWN_CORPORA[name]
    first, second = known.languages[:2]
    assert set(texts) == {f"{split}.{language}" for split in known.splits for language in (first, second)}
    for split in known.splits:
        assert len(texts[f"{split}.{first}"]) == len(texts[f"{split}.{second}"]) > 4
        pairs = set(zip(texts[f"{split}.{first}"], texts[f"{split}.{second}"], strict=True))
        assert pairs <= set(zip(*(lines(language, 24) for language in (first, second)), strict=True))
    assert not any(text != text.strip() or "<" in text[:1] for texts in texts.values() for text in texts)


def unpack_aspec(folder):
    for path, content in aspec().items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(content)
