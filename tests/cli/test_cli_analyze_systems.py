"""`synmt analyze` for any number of systems: several values of an option, patterns, seeds, the
baseline."""

import json
import re
from pathlib import Path

import pytest
from analyzing import finish
from cases import cases
from small_run import write_tests
from tiny import analyze, synmt

from synmt.cli import load
from synmt.run_folder import Run

pytestmark = pytest.mark.journey

SOURCE = ["Yes.", "The monkey eats."] * 6
REFERENCES = ["Ja.", "Der Affe isst heute."] * 6
RECIPE = "name: any\nsource: en\ntarget: de\ncorpus: {{folder: data}}\ntraining: {{seed: {}}}\n"


@pytest.fixture
def place(tmp_path, monkeypatch):
    """Three seeds of a system, two of another, and a run without a seed in its name."""
    right = {"plain-seed1": 4, "plain-seed2": 5, "pascal-seed1": 9, "pascal-seed2": 10}
    for name, count in (right | {"alone": 12}).items():
        run = Run(tmp_path / "runs" / name)
        hypotheses = REFERENCES[:count] + ["Nein nein nein."] * (12 - count)
        write_tests(run, SOURCE, REFERENCES, hypotheses)
        finish(run.folder, recipe=RECIPE.format(name[-1] if "seed" in name else 1))
    (tmp_path / "labels.tsv").write_text("kind\n" + "short\nlong\n" * 6)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def systems(*arguments):
    """Read the names of systems and their numbers of seeds from the title of a report."""
    found = json.loads(analyze("--by-length", *arguments, "--json")[0])
    return dict(re.findall(r"(\S+) \(seeds: (\d+)\)", found["title"]))


PLAIN, PASCAL = "runs/plain-seed1", "runs/pascal-seed1"


SPELLINGS = """
--run=runs/plain-seed1 runs/alone --run runs/pascal-seed1 => plain-seed1 1 alone 1 pascal-seed1 1
--run runs/plain-* runs/alone => plain-* 2 alone 1
--run runs/* --seeds --baseline pascal => pascal 2 alone 1 plain 2
--run runs/p* runs/alone --baseline PLACE/runs/p* => p* 4 alone 1
"""


@pytest.mark.parametrize(("arguments", "expected"), cases(SPELLINGS))
def test_several_systems_are_named_in_any_spelling(place, arguments, expected):
    found = systems(*arguments.replace("PLACE", str(place)).split())
    assert " ".join(f"{name} {seeds}" for name, seeds in found.items()) == expected


def test_systems_have_the_names_that_they_are_given_the_baseline_first(place):
    asked = ("--run", "runs/alone", PASCAL, "--baseline", PLAIN, "--names")
    assert list(systems(*asked, "plain", "one", "two")) == ["plain", "one", "two"]
    for names in (["plain", "one"], ["a", "b", "b"]):
        _, said = analyze("--by-length", *asked, *names, code=2)
        assert (
            "--names: each system needs a name of its own: there are plain-seed1, alone, pasc"
            in said
        )
    done = synmt("score", PLAIN, PASCAL, "--names", "first", "second", "--json", "-m", "bleu")
    rows = json.loads(done.stdout)["tables"][0]["rows"]
    assert [row["system"] for row in rows] == ["first", "second"]
    # without names, one that is given twice keeps its own
    assert synmt("score", PLAIN, PLAIN).returncode == 0


def test_files_are_systems_too_and_labels_are_none(place):
    files = [f"runs/{name}/tests/test/hypothesis.txt" for name in ("plain-seed1", "alone")]
    references = ("--references", "runs/alone/tests/test/reference.txt", "--side", "target")
    assert list(systems(*references, "--hypotheses", *files)) == files
    # labels after the systems stay labels, for runs as well
    given = ("--hypotheses", *files, "labels.tsv", *references)
    for one in (given, ("--run", PLAIN, PASCAL, "labels.tsv")):
        [table] = json.loads(analyze("--by-label", *one, "--json")[0])["tables"]
        assert [row["group"] for row in table["rows"][::2]] == ["long", "short", "all"]


TRANSLATED = """
--run runs/alone --run runs/plain-seed1 labels.tsv => runs/alone runs/plain-seed1 => labels.tsv
# the name of a missing run is not taken for a text
--run runs/alone runs/gone => runs/alone runs/gone => -
--run runs/alone -- runs/plain-seed1 => runs/alone => runs/plain-seed1
"""


@pytest.mark.parametrize(("arguments", "runs", "text"), cases(TRANSLATED))
def test_translate_takes_several_runs_and_then_its_text(place, arguments, runs, text):
    read = load("translate").make_context("translate", arguments.split()).params
    assert (" ".join(map(str, read["run"])), str(read["source"])) == (runs, text)


def test_a_run_that_is_given_twice_counts_once(place):
    alone, _ = analyze("--by-length", "--run", PLAIN)
    absolute = Path(PLAIN).absolute()
    for again in (absolute, f"--baseline={PLAIN}", f"--baseline={absolute}"):
        assert analyze("--by-length", "--run", PLAIN, again)[0] == alone


def test_compared_systems_may_be_many_runs_or_patterns(place):
    asked = ("--compare", "runs/plain-*", "runs/alone", PASCAL, "--json", "--top", "2")
    printed, _ = analyze(*asked)
    found = json.loads(printed)
    systems = [row["system"] for row in found["tables"][1]["rows"]]
    assert systems == ["plain-seed1", "plain-seed2", "alone", "pascal-seed1"]


@pytest.mark.parametrize(("kind", "start"), [("tsv", "line\t"), ("latex", "\\begin{tabular}")])
def test_every_answer_has_tables_for_other_programs(place, kind, start):
    printed, _ = analyze("--compare", PLAIN, PASCAL, "--top", "2", "--format", kind)
    assert start in printed
    options = ("-m", "bleu", "--tests", "bootstrap", "--format")
    scored = synmt("score", PLAIN, PASCAL, *options, kind).stdout.decode()
    assert ("plain-seed1" in scored, "\n  " in scored) == (True, False)


REFUSED = """
--attention --run PLAIN PASCAL => --run: --attention is about one run. Run it once for each.
--by-length --run PLAIN --baseline runs/p* --seeds => the baseline must be one system, not
--trees --seeds --run PLAIN => --seeds needs --by-length
--by-length --run PLAIN runs/alon => runs/alon: no such file or run folder
--by-length --run PLAIN/recipe.yaml => the reference is missing
--compare PLAIN => --compare: 2 to 26 systems can be compared, not 1.
--compare PLAIN PASCAL --plot . => .: unsupported picture format. Endings: .png, .svg, .pdf.
""".replace("PLAIN", PLAIN).replace("PASCAL", PASCAL)


@pytest.mark.parametrize(("arguments", "message"), cases(REFUSED))
def test_what_cannot_be_compared_is_refused(place, arguments, message):
    done = synmt("analyze", *arguments.split())
    assert done.returncode in (1, 2)
    assert message in " ".join(done.stderr.decode().split())
