"""A run folder and a prepared corpus written by synmt 0.1.0, before the modules moved, still serve
every command."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from places import TESTS
from tiny import synmt

pytestmark = pytest.mark.journey

OLD = TESTS / "format1"


@pytest.fixture
def old(tmp_path, monkeypatch):
    monkeypatch.setenv("SYNMT_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("SYNMT_OFFLINE", "1")
    return Path(shutil.copytree(OLD, tmp_path / "old"))


def test_an_old_run_translates_as_it_did(old):
    text = (old / "corpus" / "test.en").read_text(encoding="utf-8")
    trees = old / "corpus" / "test.en.conllu"
    done = synmt("translate", "--run", old / "runs" / "pascal", "--parses", trees, text=text)
    assert (done.returncode, done.stdout) == (0, (old / "translated.txt").read_bytes())


def test_an_old_run_goes_on_from_its_checkpoint_with_its_prepared_corpus(old):
    done = synmt("train", "pascal.yaml", "training.max_steps=12", cwd=old)
    assert done.returncode == 0, done.stderr.decode()
    prepared = old / "data" / "prepared"
    assert [path.name for path in prepared.iterdir()] == ["corpus-en-de-5c7f7b38cdf9"]
    assert "continuing from step 8" in done.stderr.decode()
    records = [
        json.loads(line)
        for line in (old / "runs" / "pascal" / "log.jsonl").read_text().splitlines()
    ]
    losses = {
        record["step"]: record["loss"] for record in records if record["kind"] == "validation"
    }
    # as synmt 0.1.0 went on with the same run
    assert losses[12] == pytest.approx(3.547979581153999, abs=1e-4)


def test_statistics_of_an_old_run_are_read_and_regrouped(old):
    done = synmt("score", "--json", old / "runs" / "pascal", cwd=old)
    assert done.returncode == 0, done.stderr.decode()
    expected = json.loads((OLD / "runs" / "pascal" / "tests" / "test" / "scores.json").read_text())
    scores = json.dumps(json.loads(done.stdout))
    assert str(expected["chrf"]["score"])[:8] in scores
    done = synmt("analyze", "--run", old / "runs" / "pascal", "--by-length", cwd=old)
    assert done.returncode == 0, done.stderr.decode()
