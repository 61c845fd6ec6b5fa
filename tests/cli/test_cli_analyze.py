"""`synmt analyze` on run folders and on files."""

from pathlib import Path

import pytest
from analyzing import finish, report, run
from cases import cases
from scored import score_system
from small_run import write_tests

from synmt.run_folder import Run

pytestmark = [pytest.mark.journey, pytest.mark.usefixtures("show_remarks")]


SOURCE = ["The monkey eats a banana.", "He sleeps.", "The women see the man."]
REFERENCES = ["Der Affe isst eine Banane.", "Er schläft.", "Die Frauen sehen den Mann."]
GOOD = ["Der Affe isst eine Banane.", "Er schlief.", "Die Frauen sehen den Mann."]
POOR = ["Der Affe isst Banane.", "Er schläft.", "Die Frauen sieht der Mann."]
LABELS = "attractors\tid\n1\tx\n0\ty\n1\tz\n"


PLAIN = Path("runs/plain/tests/test")


def write(folder, hypothesis, *, references=REFERENCES):
    count = len(references)
    write_tests(Run(folder), SOURCE[:count], references, hypothesis[:count])


@pytest.fixture
def runs(tmp_path, monkeypatch):
    """Two finished runs, the syntax-aware one the newer."""
    folder = tmp_path / "runs"
    write(folder / "pascal", GOOD)
    (folder / "pascal/tests/test/labels.tsv").write_text(LABELS)
    write(folder / "plain", POOR)
    finish(folder / "pascal", "2026-01-02T00:00:00")
    finish(folder / "plain")
    (tmp_path / "labels.tsv").write_text(LABELS)
    monkeypatch.chdir(tmp_path)
    return folder


def test_without_a_run_the_newest_is_analysed(runs):
    result = run("--by-length", "--buckets", "2,4")
    rows = [line.split() for line in result.stdout.splitlines()]
    assert rows[0] == ["pascal", "(seeds:", "1)", "on", "the", "test", "set"]
    assert ["3-4", "0", "0.0%", "0.0%", "pascal"] in rows
    assert "BLEU|nrefs:1|case:lc|eff:no|tok:intl|" in result.stdout


def test_a_baseline_run_and_its_file_give_the_same_table(runs):
    by_run = report("--by-length", "--baseline", runs / "plain")
    by_file = report("--by-length", "--baseline", PLAIN / "hypothesis.txt")
    total, of_file = (one["tables"][0]["rows"][-2:] for one in (by_run, by_file))
    assert [row.pop("system") for row in total] == ["plain", "pascal"]
    assert [row.pop("system") for row in of_file] == ["hypothesis.txt", "pascal"]
    assert total == of_file
    assert total[1]["difference"] == total[1]["value"] - total[0]["value"]


def test_the_labels_of_the_run_are_used_and_choose_the_sentences(runs):
    found = report("--by-label", "--where", "attractors=1", "--baseline", runs / "plain")
    attractors, ids = found["tables"]
    assert (attractors["title"], ids["title"]) == ("BLEU by attractors", "BLEU by id")
    assert [row["group"] for row in ids["rows"][::2]] == ["x", "z", "all"]
    assert (ids["rows"][-1]["sentences"], ids["rows"][-1]["share"]) == (2, 1)
    for row, lines in zip(ids["rows"][-2:], (POOR, GOOD), strict=True):
        expected = score_system(lines[::2], REFERENCES[::2], tokenize="intl", lowercase=True)
        assert row["value"] == expected["bleu"].value


def test_a_plot_is_written(runs):
    path = runs / "plots" / "length.png"
    run("--by-length", "--plot", path)
    assert path.read_bytes().startswith(b"\x89PNG")


UNLIKE = """
short => short: its test set 'test' is not that of pascal
other => other: its test set 'test' is not that of pascal
lines.txt => lines.txt: 1 lines, but
nowhere => no such file or run folder
bare => bare: the run has no test translations
"""


def test_a_baseline_must_have_the_same_test_set(runs):
    write(runs / "short", POOR, references=REFERENCES[:2])
    write(runs / "other", POOR, references=[*REFERENCES[:2], "Etwas anderes."])
    (runs / "lines.txt").write_text("eins\n")
    for name in ("short", "other", "bare"):
        finish(runs / name)
    for baseline, message in cases(UNLIKE):
        assert message in str(run("--by-length", "--baseline", runs / baseline).exception)
