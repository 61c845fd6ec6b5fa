"""COMET and BEER call their authors' programs correctly; the tests replace these programs."""

import sys
from types import ModuleType, SimpleNamespace

import pytest
from cases import cases
from refusing import assert_fails, assert_refused
from scored import score_system

from synmt.evaluation.metrics import MetricOptions, computed_here, make_metric, score

HYPOTHESES, REFERENCES, SOURCES = (
    ["ein Affe", "Bananen"],
    ["der Affe", "Bananen"],
    ["the monkey", "bananas"],
)


class StandIn(ModuleType):
    """What COMET's package offers, as its release 2.2.7 does; a sentence scores its share of right
    words."""

    __version__ = "2.2.7"

    def __init__(self, reads_references=True):
        super().__init__("comet")
        self.reads_references = reads_references
        self.asked, self.samples = [], []

    def download_model(self, model, saving_directory=None, local_files_only=False):
        self.asked.append((model, local_files_only))
        if model != "Unbabel/wmt22-comet-da":
            raise KeyError(f"Model '{model}' not supported by COMET.")
        return "/hub/model.ckpt"

    def load_from_checkpoint(
        self, checkpoint_path, reload_hparams=False, strict=False, local_files_only=False
    ):
        self.asked.append((checkpoint_path, local_files_only))
        return self

    def requires_references(self):
        return self.reads_references

    def predict(self, samples, batch_size=16, gpus=1, progress_bar=True):
        assert not progress_bar
        self.samples += samples
        scores = [float(sample["mt"] == sample.get("ref")) for sample in samples]
        return SimpleNamespace(scores=scores, system_score=sum(scores) / len(scores))


@pytest.fixture
def package(monkeypatch):
    stand_in = StandIn()
    monkeypatch.setitem(sys.modules, "comet", stand_in)
    monkeypatch.delenv("SYNMT_OFFLINE", raising=False)
    return stand_in


def test_comet_of_a_text_is_the_mean_over_its_sentences(package):
    metric = make_metric("comet")
    assert (metric.title, metric.reads_source, metric.higher_is_better) == ("COMET", True, True)
    assert metric.signature == "nrefs:1|model:Unbabel/wmt22-comet-da|scale:100|version:2.2.7"
    assert package.asked == [], "a metric that is only made loads nothing"
    found = score(metric, HYPOTHESES, REFERENCES, SOURCES)
    assert found.statistics.tolist() == [[0, 1], [100, 1]]
    assert found.value == 50
    assert package.samples[0] == {"src": "the monkey", "mt": "ein Affe", "ref": "der Affe"}
    assert package.asked == [("Unbabel/wmt22-comet-da", False), ("/hub/model.ckpt", False)]
    score(metric, HYPOTHESES, REFERENCES, SOURCES)
    assert len(package.asked) == 2, "the model is loaded once"
    # a model without references gets none
    package.reads_references, package.samples = False, []
    score_system(HYPOTHESES, REFERENCES, ["comet"], sources=SOURCES)
    assert package.samples[0] == {"src": "the monkey", "mt": "ein Affe"}


def test_comet_obeys_offline(package, monkeypatch):
    monkeypatch.setenv("SYNMT_OFFLINE", "1")
    score(make_metric("comet"), HYPOTHESES, REFERENCES, SOURCES)
    assert package.asked == [("Unbabel/wmt22-comet-da", True), ("/hub/model.ckpt", True)]
    legacy = make_metric("comet", MetricOptions(comet_model="wmt20-comet-da"))
    assert_fails(
        "SYNMT_OFFLINE forbids the network", score, legacy, HYPOTHESES, REFERENCES, SOURCES
    )
    assert len(package.asked) == 2


def test_a_checkpoint_is_identified_by_its_content(package, tmp_path):
    signatures = []
    for content in (b"one", b"another"):
        (tmp_path / "model.ckpt").write_bytes(content)
        metric = make_metric("comet", MetricOptions(comet_model=str(tmp_path / "model.ckpt")))
        signatures.append(metric.signature)
        score(metric, HYPOTHESES, REFERENCES, SOURCES)
    assert all("|model:model.ckpt@" in signature for signature in signatures)
    assert signatures[0] != signatures[1]
    assert package.asked == [(str(tmp_path / "model.ckpt"), False)] * 2
    assert_fails(
        r"absent\.ckpt: cannot read the file",
        make_metric,
        "comet",
        MetricOptions(comet_model=str(tmp_path / "absent.ckpt")),
    )


def test_comet_needs_the_source_and_a_known_model(package):
    metric = make_metric("comet", MetricOptions(comet_model="Unbabel/none"))
    assert_fails(
        r"cannot load COMET's model 'Unbabel/none'", score, metric, HYPOTHESES, REFERENCES, SOURCES
    )
    for sources, message in (
        (None, r"COMET needs the source.*--source"),
        (["one"], "equally many lines"),
    ):
        assert_fails(message, score_system, HYPOTHESES, REFERENCES, ["comet"], sources=sources)


def test_a_missing_package_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "comet", None)
    assert_fails(r"pip install 'synmt\[comet\]'", make_metric, "comet")


FAILURES = """
echo 'best beer     : 0.3' | 0 scores for 2 sentences
echo sent 1 score is 0.3 | 1 scores for 2 sentences
echo out of memory >&2; exit 3 | exit status 3.* out of memory
printf 'sent 1 score is 1\\nsent 2 score is NaN\\n' | 1 scores for 2 sentences
"""


BEER = """#!{python}
import sys
from pathlib import Path
assert sys.argv[1::2] == ["-s", "-r", "--printSentScores"], sys.argv
texts = [Path(name).read_bytes().decode().split("\\n") for name in (sys.argv[2], sys.argv[4])]
scores = [0.75 if one == other else 2.5E-1 for one, other in zip(*texts)][:-1]
for number, score in enumerate(scores, start=1):
    print("sent", number, "score is", score)
print("total BEER", sum(scores) / (len(scores) + 1))
"""


@pytest.fixture
def beer(tmp_path, monkeypatch):
    """Make a folder for BEER, and a function that writes its script."""
    folder = tmp_path / "beer 2.0"
    folder.mkdir()
    monkeypatch.delenv("BEER_HOME", raising=False)

    def write(script=BEER.replace("{python}", sys.executable)):
        (folder / "beer").write_text(script)
        (folder / "beer").chmod(0o755)
        return make_metric("beer", MetricOptions(beer_folder=folder))

    return write


def test_beer_of_a_text_is_the_mean_over_its_sentences(beer):
    metric = beer()
    found = score(metric, [*HYPOTHESES, "", "a\rb c"], [*REFERENCES, " ", "a b  c"])
    assert found.statistics.tolist() == [[25, 1], [75, 1], [75, 1], [75, 1]]
    assert found.value == 62.5, "not 50, as the total that divides by five"
    assert (metric.title, metric.reads_source) == ("BEER", False)


def test_beer_is_found_by_beer_home_and_identified_by_its_archive(beer, tmp_path, monkeypatch):
    script_only = beer().signature
    assert script_only.startswith("nrefs:1|scale:100|version:beer@")
    (tmp_path / "beer 2.0" / "beer_2.0.jar").write_bytes(b"PK")
    assert computed_here(["bleu", "beer"]) == ["bleu"]
    monkeypatch.setenv("BEER_HOME", str(tmp_path / "beer 2.0"))
    assert make_metric("beer").signature.startswith("nrefs:1|scale:100|version:beer_2.0@")
    assert computed_here(["bleu", "beer"]) == ["bleu", "beer"]


@pytest.mark.parametrize(("script", "message"), cases(FAILURES, "|"))
def test_failures_of_beer_are_reported(beer, script, message):
    assert_fails(message, score, beer(f"#!/bin/sh\n{script}\n"), HYPOTHESES, REFERENCES)


def test_missing_beer_is_reported(beer, tmp_path):
    assert_fails(
        r"BEER failed .*No such file.* It needs Java",
        score,
        beer("#!/no/such/shell\n"),
        HYPOTHESES,
        REFERENCES,
    )
    for folder in (None, tmp_path / "bin"):
        assert_refused(
            r"BEER is not part of synmt.*BEER_HOME",
            make_metric,
            "beer",
            MetricOptions(beer_folder=folder),
        )
