"""`synmt analyze` for any number of systems: several values of an option, patterns, seeds, the
baseline."""

import json
from pathlib import Path

import pytest
import typer
from small_run import write_tests
from tiny import analyze, synmt

from synmt.cli import app
from synmt.run_folder import Run

pytestmark = pytest.mark.journey

SOURCE = ["Yes.", "The monkey eats."] * 6
REFERENCES = ["Ja.", "Der Affe isst heute."] * 6
RECIPE = "name: any\nsource: en\ntarget: de\ncorpus: {{folder: data}}\ntraining: {{seed: {}}}\n"


@pytest.fixture
def place(tmp_path, monkeypatch):
    """Three seeds of a system, two of another, and a run without a seed in its name."""
    for name, right in {
        "plain-seed1": 4,
        "plain-seed2": 5,
        "pascal-seed1": 9,
        "pascal-seed2": 10,
        "alone": 12,
    }.items():
        folder = tmp_path / "runs" / name
        folder.mkdir(parents=True)
        (folder / "run.json").write_text(json.dumps({"format": 1, "status": "finished"}))
        (folder / "recipe.yaml").write_text(RECIPE.format(name[-1] if "seed" in name else 1))
        write_tests(
            Run(folder), SOURCE, REFERENCES, REFERENCES[:right] + ["Nein nein nein."] * (12 - right)
        )
    (tmp_path / "labels.tsv").write_text("kind\n" + "short\nlong\n" * 6)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def systems(*arguments):
    found = json.loads(analyze("--by-length", *arguments, "--json")[0])
    return {one["system"]: one["seeds"] for one in found["systems"]}


PLAIN, PASCAL = "runs/plain-seed1", "runs/pascal-seed1"


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("--run", PLAIN, PASCAL, "runs/alone"), {"plain-seed1": 1, "pascal-seed1": 1, "alone": 1}),
        (
            ("--run", PLAIN, "--run", "runs/alone", "--run", PASCAL),
            {"plain-seed1": 1, "alone": 1, "pascal-seed1": 1},
        ),
        (
            (f"--run={PLAIN}", "runs/alone", PASCAL),
            {"plain-seed1": 1, "alone": 1, "pascal-seed1": 1},
        ),
        (("--run", "runs/plain-*", "runs/alone"), {"plain-*": 2, "alone": 1}),
        (
            ("--run", PLAIN, "runs/plain-seed2", "runs/alone", PASCAL, "--seeds"),
            {"plain": 2, "alone": 1, "pascal-seed1": 1},
        ),
        (
            ("--run", "runs/*", "--seeds", "--baseline", "pascal"),
            {"pascal": 2, "alone": 1, "plain": 2},
        ),
        (("--run", PASCAL, "--baseline", PLAIN), {"plain-seed1": 1, "pascal-seed1": 1}),
        (
            ("--run", PASCAL, PLAIN, "--baseline", "PLACE/" + PLAIN),
            {"plain-seed1": 1, "pascal-seed1": 1},
        ),
        (("--run", "runs/p*", "runs/alone", "--baseline", "PLACE/runs/p*"), {"p*": 4, "alone": 1}),
    ],
)
def test_several_systems_are_named_in_any_spelling(place, arguments, expected):
    arguments = [one.replace("PLACE", str(place)) for one in arguments]
    assert list(systems(*arguments).items()) == list(expected.items())


def test_files_are_systems_too_and_labels_are_none(place):
    files = [f"runs/{name}/tests/test/hypothesis.txt" for name in ("plain-seed1", "alone")]
    references = ("--references", "runs/alone/tests/test/reference.txt", "--side", "target")
    assert list(systems(*references, "--hypotheses", *files)) == files
    # labels after the systems stay labels, for runs as well
    for given in (
        ("--hypotheses", *files, "labels.tsv", *references),
        ("--run", PLAIN, PASCAL, "labels.tsv"),
    ):
        printed, _ = analyze("--by-label", *given)
        assert [
            line.split()[0]
            for line in printed.splitlines()
            if line.startswith(("short", "long", "all"))
        ] == [
            "long",
            "short",
            "all",
        ]


@pytest.mark.parametrize(
    ("arguments", "runs", "text"),
    [
        (["--run", "runs/alone", PLAIN], ["runs/alone", PLAIN], "-"),
        (
            ["--run", "runs/alone", "--run", PLAIN, "labels.tsv"],
            ["runs/alone", PLAIN],
            "labels.tsv",
        ),
        (
            ["labels.tsv", "--run", "runs/alone", PLAIN, "--beam-size", "2"],
            ["runs/alone", PLAIN],
            "labels.tsv",
        ),
        (["--run", "runs/alone", "-"], ["runs/alone"], "-"),
        # a text is not a run, and the name of a missing run is not taken for a text
        (
            ["--run", "runs/alone", PLAIN, f"{PLAIN}/recipe.yaml"],
            ["runs/alone", PLAIN],
            f"{PLAIN}/recipe.yaml",
        ),
        (["--run", "runs/alone", "runs/gone"], ["runs/alone", "runs/gone"], "-"),
        (["--run", "runs/alone", "--", PLAIN], ["runs/alone"], PLAIN),
    ],
)
def test_translate_takes_several_runs_and_then_its_text(place, arguments, runs, text):
    command = typer.main.get_command(app).commands["translate"]
    read = command.make_context("translate", list(arguments)).params
    assert ([str(one) for one in read["run"]], str(read["source"])) == (runs, text)


def test_a_pattern_of_compared_systems_may_match_different_ones(place):
    printed, said = analyze("--compare", "runs/*-seed1", "--top", "1")
    assert "runs/*-seed1: 2 systems: pascal-seed1, plain-seed1" in said
    assert "pascal-seed1" in printed


def test_a_comparison_with_itself_is_none(place):
    said = analyze("--compare", PLAIN, PLAIN, code=2)[1]
    assert "--compare: 1 system is given. Give 2 to 26 systems." in said


def test_a_run_names_the_parser_for_a_file_next_to_it(place):
    asked = ("--by-depth", "--run", PLAIN, "--run", f"{PASCAL}/tests/test/hypothesis.txt")
    _, said = analyze(*asked, "--json")
    assert "assuming the source is English" not in said
    assert "trees of the source: Stanza (compact, en)" in said
    found = json.loads(analyze(*asked, "--by-length", "--words", "frequency", "--json")[0])
    assert list(found) == ["by_length", "words"]
    assert list(json.loads(analyze(*asked, "--ngrams", "--json")[0])) == ["by_depth", "ngrams"]


def test_a_baseline_may_be_one_of_a_pattern_too(place):
    printed, _ = analyze("--by-length", "--run", PLAIN, "runs/p*", "--baseline", PLAIN)
    assert f"p* (4 seeds) against {PLAIN.removeprefix('runs/')}" in printed


def test_a_run_that_is_given_twice_counts_once(place):
    alone, _ = analyze("--by-length", "--run", PLAIN)
    for again, warning in (
        (PLAIN, "given twice, and counts once"),
        ("--baseline=" + PLAIN, "its own baseline, so nothing is compared"),
        (f"--baseline={Path(PLAIN).absolute()}", "its own baseline, so nothing is compared"),
    ):
        printed, said = analyze("--by-length", "--run", PLAIN, again)
        assert (printed, f"warning: {PLAIN} is {warning}" in said) == (alone, True)
    both, _ = analyze("--by-length", "--run", PLAIN, PASCAL)
    printed, said = analyze("--by-length", "--run", PLAIN, PASCAL, PASCAL, Path(PLAIN).absolute())
    assert (printed, said.count("counts once")) == (both, 2)


def test_two_runs_are_a_run_and_its_baseline(place):
    by_baseline, _ = analyze("--by-length", "--run", PASCAL, "--baseline", PLAIN)
    assert analyze("--by-length", "--run", PLAIN, PASCAL)[0] == by_baseline
    assert by_baseline.startswith("pascal-seed1 against plain-seed1 on the test set\n")
    assert (
        "(Koehn, 2004), 1,000 resamples, seed 12345\np (Holm): two-sided, of the same resamples"
        in by_baseline
    )


def test_several_systems_have_a_line_each(place):
    printed, _ = analyze(
        "--by-length", "--run", PLAIN, "runs/plain-seed2", PASCAL, "runs/pascal-seed2", "runs/alone"
    )
    _, head, *table = printed.split("\n\n")[1].partition("\nshare: ")[0].splitlines()
    # in the only group, and in all sentences
    assert (len(table), len(head) <= 120) == (2 * 5, True)


def test_compared_systems_may_be_many_runs_or_patterns(place):
    printed, said = analyze(
        "--compare", "runs/plain-*", "runs/alone", PASCAL, "--json", "--top", "2"
    )
    assert "runs/plain-*: 2 systems: plain-seed1, plain-seed2" in said
    found = json.loads(printed)
    assert list(found["sentence_scores"]) == ["plain-seed1", "plain-seed2", "alone", "pascal-seed1"]
    assert [len(one["translations"]) for one in found["sentences"]] == [4, 4]
    analyze("--compare", PLAIN, PASCAL, "--plot", "boxes.svg", "--top", "1")
    assert ">pascal-seed1</text>" in (place / "boxes.svg").read_text(encoding="utf-8")
    # if there is another figure, the boxes are only on the page
    analyze("--compare", PLAIN, PASCAL, "--by-length", "--run", PASCAL, "--plot", "length.svg")
    assert "Source length (words)" in (place / "length.svg").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("kind", "start"), [("tsv", "line\t"), ("latex", "\\begin{tabular}"), ("markdown", "| system")]
)
def test_every_answer_has_tables_for_other_programs(place, kind, start):
    printed, _ = analyze("--compare", PLAIN, PASCAL, "--top", "2", "--format", kind)
    assert start in printed
    printed, _ = analyze("--by-length", "--run", PLAIN, PASCAL, "runs/alone", "--format", kind)
    assert "alone" in printed
    scored = synmt(
        "score", PLAIN, PASCAL, "-m", "bleu", "--tests", "bootstrap", "--format", kind
    ).stdout.decode()
    assert ("plain-seed1" in scored, "\n  " in scored) == (True, False)
    assert (
        json.loads(analyze("--by-length", "--run", PLAIN, "--format", "json")[0])["system"]
        == "plain-seed1"
    )


def test_the_page_has_a_table_and_a_figure_of_all_systems(place):
    analyze(
        "--by-length",
        "--by-label",
        "--run",
        "runs/*",
        "--seeds",
        "labels.tsv",
        "--html",
        "page.html",
    )
    page = (place / "page.html").read_text(encoding="utf-8")
    assert "<h1>pascal, plain</h1>" in page
    assert page.count("in the middle, differences from alone with 95 % intervals") == 4
    assert page.count('src="data:image/svg+xml') == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ("--attention", "--run", PLAIN, PASCAL),
            "--run: --attention is about one run, not 2. Run it once for each.",
        ),
        (
            ("--by-length", "--baseline", PLAIN, "--baseline", PASCAL),
            "--baseline is given more than once. Give it once.",
        ),
        (
            ("--by-length", "--run", PLAIN, "--baseline", "runs/p*", "--seeds"),
            "the baseline is one system, not 2",
        ),
        (("--trees", "--seeds", "--run", PLAIN), "--seeds needs --by-length"),
        (("--by-length", "--run", PLAIN, "runs/alon"), "runs/alon: no such file or run folder"),
        (
            ("--by-length", "--run", f"{PLAIN}/recipe.yaml"),
            "recipe.yaml: not a run folder: run.json is missing",
        ),
        (("--compare", PLAIN), "--compare: 1 system is given. Give 2 to 26 systems."),
        (
            ("--compare", PLAIN, PASCAL, "--plot", "."),
            ".: unsupported picture format. Endings: .png, .svg, .pdf.",
        ),
        (
            ("--by-length", "--json", "--format", "tsv"),
            "--json and --format tsv are two formats. Give one of them.",
        ),
    ],
)
def test_what_cannot_be_compared_is_refused(place, arguments, message):
    done = synmt("analyze", *arguments)
    assert done.returncode in (1, 2)
    assert message in " ".join(done.stderr.decode().split())
