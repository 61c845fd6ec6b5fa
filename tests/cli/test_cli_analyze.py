"""`synmt analyze` on run folders and on files."""

import json
from pathlib import Path

import pytest
import typer
from small_run import write_tests
from tiny import synmt
from typer.testing import CliRunner

from synmt.analysis.inputs import parse_in_parts
from synmt.cli import StrictCommand
from synmt.cli.analyze import analyze
from synmt.evaluation.metrics import score_system
from synmt.run_folder import Run

pytestmark = [pytest.mark.journey, pytest.mark.usefixtures("show_remarks")]

APP = typer.Typer()
APP.command(cls=StrictCommand)(analyze)

SOURCE = ["The monkey eats a banana.", "He sleeps.", "The women see the man."]
REFERENCES = ["Der Affe isst eine Banane.", "Er schläft.", "Die Frauen sehen den Mann."]
GOOD = ["Der Affe isst eine Banane.", "Er schlief.", "Die Frauen sehen den Mann."]
POOR = ["Der Affe isst Banane.", "Er schläft.", "Die Frauen sieht der Mann."]
PANELS = (
    "Options",
    "Scores by group",
    "Trees",
    "Attention and gates",
    "Systems, sentence by sentence",
    "Words",
    "Robustness",
)
GROUPED = "--by-length or --by-depth or --by-distance or --by-relation or --by-label"
RECIPE = """
name: any
source: en
target: de
corpus: {folder: data}
evaluation: {tokenize: intl, lowercase: true}
"""
LABELS = "attractors\tid\n1\tx\n0\ty\n1\tz\n"


PLAIN = Path("runs/plain/tests/test")
FILES = ("--hypotheses", PLAIN / "hypothesis.txt", "--references", PLAIN / "reference.txt")
SOURCE_FILE = ("--source", PLAIN / "source.txt")


def write(folder, hypothesis, *, references=REFERENCES, test="test"):
    count = len(references)
    write_tests(Run(folder), SOURCE[:count], references, hypothesis[:count], test)


def finish(folder, when="2026-01-01T00:00:00", recipe=RECIPE, **info):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "run.json").write_text(
        json.dumps({"format": 1, "status": "finished", "finished_at": when, **info})
    )
    (folder / "recipe.yaml").write_text(recipe)


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


def run(*arguments):
    return CliRunner().invoke(APP, [str(argument) for argument in arguments])


def report(*arguments):
    result = run(*arguments, "--json")
    assert result.exit_code == 0, result.exception or result.output
    return json.loads(result.stdout)


def test_without_a_run_the_newest_is_analysed(runs, caplog):
    result = run("--by-length", "--buckets", "2,4")
    rows = [line.split() for line in result.stdout.splitlines()]
    assert rows[0] == ["pascal", "on", "the", "test", "set"]
    assert next(row for row in rows if row[:1] == ["1-2"])[:4] == ["1-2", "*", "1", "33.3%"]
    assert ["3-4", "0", "0.0%", "0.0%"] in rows
    assert any(row and row[0].startswith("BLEU|nrefs:1|case:lc|eff:no|tok:intl|") for row in rows)
    remark = "test set: test; choose another one with --test: challenge"
    assert caplog.messages == [f"run: {Path('runs/pascal')}", remark]


def test_several_analyses_name_the_test_set_once(runs):
    asked = ("analyze", "--by-length", "--words", "frequency", "--run", "runs/pascal")
    done = synmt("--log-file", "log", *asked)
    remark = "test set: test; choose another one with --test: challenge"
    assert done.stderr.decode().splitlines().count(remark) == 1
    assert Path("log").read_text().count(remark) == 2


def test_options_override_the_scoring_of_the_recipe(runs):
    assert (
        "case:mixed|eff:no|tok:char"
        in report("--by-length", "--cased", "--tokenize", "char")["signature"]
    )


def test_a_baseline_run_and_its_file_give_the_same_table(runs):
    by_run = report("--by-length", "--baseline", runs / "plain")
    by_file = report("--by-length", "--baseline", PLAIN / "hypothesis.txt")
    total, of_file = (one["groups"][0]["all"]["systems"] for one in (by_run, by_file))
    assert list(total.values()) == list(of_file.values())
    assert (by_run["system"], by_run["baseline"], by_file["baseline"]) == (
        "pascal",
        "plain",
        "hypothesis.txt",
    )
    score, base = (total[name]["score"] for name in ("pascal", "plain"))
    assert (
        score["value"]
        == score_system(GOOD, REFERENCES, tokenize="intl", lowercase=True)["bleu"].value
    )
    assert score["difference"] == score["value"] - base["value"]


def test_the_labels_of_the_run_are_used_when_no_file_is_given(runs):
    found = report("--by-label", "--baseline", runs / "plain")
    assert [table["by"] for table in found["groups"]] == ["attractors", "id"]
    none, one = found["groups"][0]["rows"]
    for row, expected in ((none, ("0", 1, -1)), (one, ("1", 2, 1))):
        accuracy = row["systems"]["pascal"]["accuracy"]
        assert (row["group"], row["sentences"], accuracy["difference"]) == expected


def test_a_file_of_labels_replaces_those_of_the_run(runs):
    path = runs / "own.tsv"
    path.write_text("kind\tother\na\t1\nb\t1\nb\t1\n")
    found = report("--by-label", path, "--label", "kind")
    assert [row["group"] for row in found["groups"][0]["rows"]] == ["a", "b"]
    assert len(found["groups"]) == 1
    both = run("--by-length", "--by-label", path)
    assert [name in both.stdout for name in ("source length (words)", "kind", "exact match")] == [
        True
    ] * 3


def test_a_label_that_names_each_sentence_is_left_out_unless_chosen(runs, monkeypatch, caplog):
    monkeypatch.setattr("synmt.analysis.groups.labels.TOO_MANY_VALUES", 2)
    result = run("--by-label")
    assert "label 'id' has 3 values and is left out; choose it with --label id" in caplog.messages
    assert "attractors" in result.stdout
    assert len(report("--by-label", "--label", "id")["groups"][0]["rows"]) == 3


def test_only_the_sentences_that_meet_all_conditions_are_scored(runs):
    found = report(
        "--by-label", "--by-length", "--where", "attractors=1", "--baseline", runs / "plain"
    )
    length, attractors, ids = found["groups"]
    assert found["where"] == ["attractors=1"]
    assert [row["group"] for row in attractors["rows"]] == ["1"]
    assert [row["group"] for row in ids["rows"]] == ["x", "z"]
    assert length["rows"][0]["sentences"] == 2
    for table in found["groups"]:
        assert (table["all"]["sentences"], table["all"]["share"]) == (2, 1)
        for name, lines in (("pascal", GOOD), ("plain", POOR)):
            expected = score_system(lines[::2], REFERENCES[::2], tokenize="intl", lowercase=True)
            assert table["all"]["systems"][name]["score"]["value"] == expected["bleu"].value


def test_the_title_names_the_conditions(runs):
    result = run(
        "--by-label", "--label", "attractors", "--where", "attractors!=0", "--where", "id=z"
    )
    assert result.stdout.splitlines()[0] == "pascal on the test set, where attractors!=0 and id=z"
    assert ["1", "*", "1", "100.0%"] in [line.split()[:4] for line in result.stdout.splitlines()]
    assert report("--by-length")["where"] == []


def test_a_plot_names_the_conditions(runs):
    for group in (["--by-length"], ["--by-label", "--label", "id"]):
        assert run(*group, "--where", "id=x", "--plot", f"{len(group)}.svg").exit_code == 0
    drawn = [Path(f"{number}.svg").read_text(encoding="utf-8") for number in (1, 3)]
    assert ">Source length (words, where id=x)<" in drawn[0]
    assert ">id, where id=x<" in drawn[1]


def test_conditions_read_the_labels_of_a_file(runs):
    path = runs / "own.tsv"
    path.write_text("kind\na\nb\nb\n")
    files = FILES + SOURCE_FILE
    assert (
        report(path, "--by-length", *files, "--where", "kind=b")["groups"][0]["all"]["sentences"]
        == 2
    )
    assert (
        report("--by-label", path, *files, "--where", "kind!=b")["groups"][0]["all"]["sentences"]
        == 1
    )
    assert "there are no labels of hypothesis.txt" in str(
        run("--by-length", *files, "--where", "kind=b").exception
    )


def test_files_need_no_run(runs):
    found = report("--by-length", *FILES, *SOURCE_FILE, "--metric", "ter")
    assert (found["metric"], found["test"]) == ("TER", None)
    [result] = found["groups"][0]["all"]["systems"].values()
    assert result["score"]["value"] == score_system(POOR, REFERENCES, ["ter"])["ter"].value


def test_a_plot_is_written_and_replaced_with_a_remark(runs, caplog):
    path = runs / "plots" / "length.png"
    for _ in range(2):
        run("--by-length", "--plot", path)
        assert path.read_bytes().startswith(b"\x89PNG")
    plots = [text for text in caplog.messages if text.startswith("plot")]
    assert plots == [f"plot: {path}", f"plot: {path} (replaced)"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--json"], "no analysis is chosen. Choose one or more of --by-length, --by-depth, "),
        (["--gold", "x.conllu"], "--gold needs --trees. Add it."),
        (["--head", "1.1"], "--head needs --trees or --attention. Add one of them."),
        (["--draw", "2"], "--draw needs --trees. Add it."),
        (["--html", "x.html"], "no analysis is chosen"),
        (["--by-length", "--html", "x.txt"], "x.txt: not an HTML file name. Endings: .html, .htm."),
        (["--parser", "de"], "no analysis is chosen. Choose one or more of"),
        (["labels.tsv"], f"LABELS.tsv needs {GROUPED}. Add one of them."),
        (["--gates", "--cased"], f"--lowercase/--cased needs {GROUPED} or"),
        (
            ["--attention", "--what", "cross", "--parser", "x"],
            "--parser: `--what cross` compares nothing with trees",
        ),
        (
            ["--trees", "--by-length", "--plot", "x.png"],
            "x.png: several analyses would draw into one file",
        ),
        (["--by-length", "labels.tsv"], "no chosen analysis uses the labels. Add `--by-label`"),
        (["--by-length", "--buckets", "20,10"], "does not name or list buckets"),
        (["--by-length", "--unit", "word"], "Did you mean 'words'?"),
        (["--by-length", "--metric", "blu"], "Did you mean 'bleu'?"),
        (
            ["--by-length", "--test", "chalenge"],
            "Its test sets: challenge, test. Did you mean 'challenge'?",
        ),
        (["--by-label", "--label", "atractors"], "Did you mean 'attractors'?"),
        (["--where", "id=x"], f"--where needs {GROUPED}. Add one of them."),
        (
            ["--by-length", "--label", "id", "--where", "id=x"],
            "no chosen analysis uses the labels. Add `--by-label`",
        ),
        (["--by-length", "--where", "atractors=1"], "Did you mean 'attractors'?"),
        (
            ["--by-length", "--where", "attractors=3"],
            "label 'attractors' has no value '3'. Its values: 0, 1.",
        ),
        (
            ["--by-label", "--where", "id=x", "--where", "id=y"],
            "no test sentence has id=x and id=y",
        ),
        (
            ["--by-length", "--test", "challenge", "--where", "id=x"],
            "there are no labels of the test set challenge",
        ),
        (["--by-label", "--test", "challenge"], "there are no labels of the test set challenge"),
        (["--by-length", "--plot", "x.bmp"], "unsupported picture format"),
        (["--by-depth", "--unit", "pieces"], "no chosen analysis uses --unit. Add `--by-length`"),
        (
            ["--by-length", "--top", "5"],
            "--top needs --compare or --words or --ngrams. Add one of them.",
        ),
        (
            ["--words", "tag", "--top", "5"],
            "no chosen analysis uses --top. Add `--compare` or `--ngrams`",
        ),
        (
            ["--by-length", "--parser", "x"],
            "no chosen analysis uses --parser. Add `--by-depth` or `--by-distance` or ",
        ),
        (["--words", "frequency", "--parser", "x"], "no chosen analysis uses --parser"),
        (["--words", "frequency", "--parses", "x"], "no chosen analysis uses --parses"),
        (
            ["--by-depth", "--parses", "x", "--parser", "y"],
            "`--parses` has the trees, and no parser is needed",
        ),
        (
            ["--by-length", "--ngrams", "--hypotheses", "-", "h", "--references", "r"],
            "--hypotheses: standard input can be read only once, but --by-length and --ngrams need "
            "it. Give a file.",
        ),
        (["--by-length", "--trees", "--run", "a", "b"], "--trees is about one run, not 2"),
        (["--by-length", "--hypotheses", "h"], "translations need their references"),
        (["--by-length", "--source", "s"], "belong to translations"),
        (["--by-length", "--hypotheses", "h", "--test", "t"], "cannot be combined with a run"),
    ],
)
def test_wrong_usage_is_explained_in_one_message(runs, arguments, message):
    error = run(*arguments).exception
    assert error.exit_code == 2
    assert message in str(error)


def test_an_option_with_one_value_is_refused_where_it_is_given_twice(runs):
    twice = synmt("analyze", "--by-length", *["--baseline", "runs/plain"] * 2)
    assert (twice.returncode, "--baseline is given more than once" in twice.stderr.decode()) == (
        2,
        True,
    )
    assert synmt("-q", "analyze", "--by-length", *["--where", "attractors=1"] * 2).returncode == 0


def test_a_recipe_that_does_not_say_how_to_score_is_explained(runs):
    (runs / "pascal" / "recipe.yaml").write_text(RECIPE.replace("tokenize", "tokenise"))
    assert "Did you mean 'tokenize'?" in str(run("--by-length").exception)
    # what scores do not need may be wrong, such as a variant of the user's own that has moved
    (runs / "pascal" / "recipe.yaml").write_text(RECIPE + "syntax: {variants: [{name: my.module}]}")
    assert run("--by-length").exit_code == 0


def test_lengths_need_a_source(runs):
    assert "Give it as `--source`" in str(run("--by-length", *FILES).exception)
    against_run = run("--by-length", *FILES, *SOURCE_FILE, "--baseline", runs / "plain")
    assert "cannot be compared with a run" in str(against_run.exception)


def test_a_baseline_and_labels_must_have_the_same_test_set(runs):
    write(runs / "short", POOR, references=REFERENCES[:2])
    write(runs / "other", POOR, references=[*REFERENCES[:2], "Etwas anderes."])
    (runs / "lines.txt").write_text("eins\n")
    for name in ("short", "other", "bare"):
        finish(runs / name)
    for baseline, message in {
        "short": "short: its test set 'test' is not that of pascal: 2 sentences, not 3",
        "other": "line 3 of the references differs",
        "lines.txt": "lines.txt: 1 line, but ",
        "nowhere": "no such file or run folder",
        "bare": "bare: the run has no test translations",
    }.items():
        assert message in str(run("--by-length", "--baseline", runs / baseline).exception)
    error = run("--by-length", "--baseline", runs / "plian").exception
    assert f"Did you mean '{runs / 'plain'}'?" in str(error)
    error = run("--by-length", "--test", "challenge", "--baseline", runs / "plain").exception
    assert "plain: the run has no test set 'challenge'" in str(error)
    # labels, too
    (runs / "few.tsv").write_text("kind\na\n")
    error = run("--by-label", runs / "few.tsv").exception
    assert "1 row of labels below the header, but there are 3 test sentences" in str(error)


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


def test_the_help_page_has_an_example_and_a_panel_for_each_analysis():
    shown = run("--help").stdout
    assert "Example: synmt analyze --by-length" in shown
    # the options of one analysis are not between those of another
    places = [shown.index(f"─ {panel} ─") for panel in PANELS]
    assert places == sorted(places)
    panel_of = {
        "--html": 0,
        "--by-depth": 1,
        "--unit": 1,
        "--draw": 2,
        "--gates": 3,
        "--compare": 4,
        "--words": 5,
        "--shares": 6,
    }
    for option, panel in panel_of.items():
        at = shown.index(f"│ {option} ")
        assert sum(place < at for place in places) == panel + 1, option
