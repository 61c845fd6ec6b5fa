"""`synmt analyze` on run folders and on files."""

from pathlib import Path

import pytest
from analyzing import finish, report, run
from cases import cases
from scored import score_system
from small_run import write_tests
from tiny import synmt

from synmt.analysis.inputs import parse_in_parts
from synmt.run_folder import Run

pytestmark = [pytest.mark.journey, pytest.mark.usefixtures("show_remarks")]


SOURCE = ["The monkey eats a banana.", "He sleeps.", "The women see the man."]
REFERENCES = ["Der Affe isst eine Banane.", "Er schläft.", "Die Frauen sehen den Mann."]
GOOD = ["Der Affe isst eine Banane.", "Er schlief.", "Die Frauen sehen den Mann."]
POOR = ["Der Affe isst Banane.", "Er schläft.", "Die Frauen sieht der Mann."]
GROUPED = "--by-length or --by-depth or --by-distance or --by-relation or --by-label"
LABELS = "attractors\tid\n1\tx\n0\ty\n1\tz\n"


PLAIN = Path("runs/plain/tests/test")


def write(folder, hypothesis, *, references=REFERENCES, test="test"):
    count = len(references)
    write_tests(Run(folder), SOURCE[:count], references, hypothesis[:count], test)


@pytest.fixture
def runs(tmp_path, monkeypatch):
    """Two finished runs, the syntax-aware one the newer."""
    folder = tmp_path / "runs"
    write(folder / "pascal", GOOD)
    write(folder / "pascal", GOOD, test="challenge")
    (folder / "pascal/tests/test/labels.tsv").write_text(LABELS)
    write(folder / "plain", POOR)
    finish(folder / "pascal", "2026-01-02T00:00:00")
    finish(folder / "plain")
    monkeypatch.chdir(tmp_path)
    return folder


def test_without_a_run_the_newest_is_analysed(runs, caplog):
    result = run("--by-length", "--buckets", "2,4")
    rows = [line.split() for line in result.stdout.splitlines()]
    assert rows[0] == ["pascal", "on", "the", "test", "set"]
    assert ["3-4", "0", "0.0%", "0.0%"] in rows
    assert "BLEU|nrefs:1|case:lc|eff:no|tok:intl|" in result.stdout
    assert caplog.messages == [f"run: {Path('runs/pascal')}", OTHERS]


OTHERS = "test set: test; choose another one with --test: challenge"


def test_several_analyses_name_the_test_set_once(runs):
    asked = ("analyze", "--by-length", "--words", "frequency", "--run", "runs/pascal")
    done = synmt("--log-file", "log", *asked)
    assert done.stderr.decode().splitlines().count(OTHERS) == 1
    assert Path("log").read_text().count(OTHERS) == 2


def test_a_baseline_run_and_its_file_give_the_same_table(runs):
    by_run = report("--by-length", "--baseline", runs / "plain")
    by_file = report("--by-length", "--baseline", PLAIN / "hypothesis.txt")
    total, of_file = (one["groups"][0]["all"]["systems"] for one in (by_run, by_file))
    assert list(total.values()) == list(of_file.values())
    assert (list(total), list(of_file)) == (["plain", "pascal"], ["hypothesis.txt", "pascal"])
    score, base = (total[name]["score"] for name in ("pascal", "plain"))
    assert score["difference"] == score["value"] - base["value"]


def test_the_labels_of_the_run_are_used_and_choose_the_sentences(runs):
    found = report("--by-label", "--where", "attractors=1", "--baseline", runs / "plain")
    attractors, ids = found["groups"]
    assert (attractors["by"], ids["by"]) == ("attractors", "id")
    assert [row["group"] for row in ids["rows"]] == ["x", "z"]
    assert (ids["all"]["sentences"], ids["all"]["share"]) == (2, 1)
    for name, lines in (("pascal", GOOD), ("plain", POOR)):
        expected = score_system(lines[::2], REFERENCES[::2], tokenize="intl", lowercase=True)
        assert ids["all"]["systems"][name]["score"]["value"] == expected["bleu"].value


def test_a_plot_is_written_or_replaced_with_a_remark(runs, caplog):
    path = runs / "plots" / "length.png"
    for _ in range(2):
        run("--by-length", "--plot", path)
        assert path.read_bytes().startswith(b"\x89PNG")
    plots = [text for text in caplog.messages if text.startswith("plot")]
    assert plots == [f"plot: {path}", f"plot: {path}"]


WRONG = f"""
--json => no analysis is chosen. Choose one or more of --by-length, --by-depth,
--head 1.1 => --head needs --trees or --attention. Add one of them.
--by-length --html x.txt => x.txt: not an HTML file name. Endings: .html, .htm.
labels.tsv => LABELS.tsv needs {GROUPED}. Add one of them.
--gates --cased => --lowercase/--cased needs {GROUPED} or
--attention --what cross --parser x => --parser: `--what cross` compares nothing with trees
--trees --by-length --plot x.png => x.png: several analyses would draw into one file
--by-length labels.tsv => no chosen analysis uses the labels. Add `--by-label`
--by-length --unit word => Did you mean 'words'?
--by-length --test chalenge => Test sets: challenge, test. Did you mean 'challenge'?
--by-length --plot x.bmp => unsupported picture format
--by-depth --unit pieces => no chosen analysis uses --unit. Add `--by-length`
--by-length --top 5 => --top needs --compare or --words or --ngrams. Add one of them.
--words tag --top 5 => no chosen analysis uses --top. Add `--compare` or `--ngrams`
--by-length --parser x => no chosen analysis uses --parser. Add `--by-depth` or `--by-distance` or
--words frequency --parser x => no chosen analysis uses --parser
--by-depth --parses x --parser y => `--parses` has the trees, and no parser is needed
--by-length --ngrams --hypotheses - h --references r => --hypotheses: standard input can be read \
only once, but --by-length and --ngrams need it. Give a file.
--by-length --trees --run a b => --trees is about one run, not 2
--by-length --hypotheses h => translations need their references
--by-length --source s => belong to translations
--by-length --hypotheses h --test t => cannot be combined with a run
"""


@pytest.mark.parametrize(("arguments", "message"), cases(WRONG))
def test_wrong_usage_is_explained_in_one_message(runs, arguments, message):
    error = run(*arguments.split()).exception
    assert error.exit_code == 2
    assert message in str(error)


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


def test_lines_are_parsed_in_parts_and_failures_are_reported_by_line(caplog):
    class Fussy:
        def parse(self, lines, *, on_failure):
            for index, line in enumerate(lines):
                if line == "odd":
                    on_failure(index, "it is odd")
            return [line.upper() for line in lines]

    lines = [*["even"] * 299, "odd"]
    assert parse_in_parts(Fussy(), lines) == [*["EVEN"] * 299, "ODD"]
    # of a choice of lines, each keeps its number
    parse_in_parts(Fussy(), lines, range(11, 311))
    what = "could not be parsed in one piece; using a flat or joined tree: it is odd"
    assert caplog.messages == [f"line 300 {what}", f"line 310 {what}"]
