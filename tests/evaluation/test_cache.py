"""A cached score equals the computed one, and is used only if its file is intact and of the same
texts."""

import json

import numpy as np
import pytest
from small_run import TEXT, make_run
from tiny import write_lines

from synmt.evaluation.metrics import MeanMetric, cached_score, make_metric, score
from synmt.files.reading import read_lines
from synmt.recipe.corpus import SplitFiles
from synmt.training.test_sets import translate_tests

METRICS = ("bleu", "bleu1", "chrf++", "ter", "ribes")
WORDS = ["the", "monkey", "eats", "a", "ripe", "banana"]


def texts(seed, lines=60):
    """Draw translations, references and sources."""
    draw = np.random.default_rng(seed)
    return [
        [" ".join(draw.choice(WORDS, draw.integers(0, 9))) for _ in range(lines)] for _ in range(3)
    ]


class Counting(MeanMetric):
    """A metric that counts how often it is computed."""

    title, signature = "count", "none"

    def __init__(self):
        self.asked = 0

    def score_segments(self, hypotheses, references, sources):
        self.asked += 1
        return [len(line) / 7 for line in hypotheses]


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("SYNMT_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "segments"


def files(folder):
    return sorted(folder.iterdir()) if folder.exists() else []


@pytest.mark.parametrize("name", METRICS)
@pytest.mark.parametrize("in_a_run", [False, True])
def test_a_cached_score_equals_the_computed_one_bit_for_bit(cache, tmp_path, name, in_a_run):
    metric, (hypotheses, references, _) = make_metric(name), texts(0)
    expected, folder = score(metric, hypotheses, references), tmp_path / "run"
    for _ in range(2):
        found = cached_score(metric, hypotheses, references, folder=folder if in_a_run else None)
        assert (found.value, found.details) == (expected.value, expected.details)
        assert found.signature == metric.signature
        np.testing.assert_array_equal(found.statistics, expected.statistics, strict=True)
    assert len(files(folder if in_a_run else cache)) == 1


def test_another_text_metric_or_source_is_scored_separately(cache):
    metric, (hypotheses, references, sources) = Counting(), texts(0)

    def asked(*given, **more):
        cached_score(metric, *given, **more)
        return metric.asked

    assert asked(hypotheses, references) == 1
    assert asked([*hypotheses[:-1], "more"], references) == 2
    assert asked(hypotheses, [*references[:-1], "more"]) == 3
    # a source that the metric does not read makes no difference
    assert asked(hypotheses, references, sources=sources) == 3
    metric.reads_source = True
    assert asked(hypotheses, references, sources=sources) == 4
    assert asked(hypotheses, references, sources=[*sources[:-1], "more"]) == 5
    metric.signature = "another"
    assert asked(hypotheses, references, sources=sources) == 6
    # the same text in different lines is another text
    assert asked(["a\nb", "c"] * 30, references, sources=sources) == 7
    assert asked(["a", "b\nc"] * 30, references, sources=sources) == 8


def test_no_changed_byte_changes_a_score(cache):
    metric, (hypotheses, references, _) = Counting(), texts(0)
    expected = cached_score(metric, hypotheses, references).statistics
    (path,) = files(cache)
    whole = path.read_bytes()
    places = range(0, len(whole), 5)
    for place in places:
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 0x15]) + whole[place + 1 :])
        found = cached_score(metric, hypotheses, references).statistics
        np.testing.assert_array_equal(found, expected, strict=True)
    assert metric.asked == 1 + len(places)


def test_a_folder_that_cannot_be_written_to_is_not_an_error(tmp_path):
    metric, (hypotheses, references, _) = Counting(), texts(0)
    # a file in place of a folder cannot be written to, even by root
    (tmp_path / "file").write_text("")
    for asked in (1, 2):
        cached_score(metric, hypotheses, references, folder=tmp_path / "file" / "run")
        assert metric.asked == asked


def test_a_run_stores_the_statistics_of_its_translations(cache, tmp_path):
    tests = SplitFiles(source=tmp_path / "text.en", target=tmp_path / "text.de")
    write_lines(tests.source, TEXT[:3])
    write_lines(tests.target, TEXT[3:])
    run = make_run(tmp_path / "run", parser=False)
    folder = run.test_folder("test")
    write_lines(folder / "segments" / "old.segments", ["of translations that are no more"])
    translate_tests(run, run.recipe(), {"test": tests})
    scores = json.loads((folder / "scores.json").read_text())
    assert len(files(folder / "segments")) == len(scores) == 3
    found = score(make_metric("chrf"), list(read_lines(folder / "hypothesis.txt")), TEXT[3:])
    assert (scores["chrf"]["score"], scores["chrf"]["signature"]) == (found.value, found.signature)
