"""The whole product on forty sentences: one run from raw text to its analysis."""

import json
import shutil

import pytest
from tiny import fail, lines_of, succeed, synmt, write_corpus, write_recipe

pytestmark = [pytest.mark.journey, pytest.mark.usefixtures("offline")]
ODD_LINES = [
    "The boy next to the girls orders a book.",
    "",
    "   \t ",
    "dog " * 200,
    "a \x07 bell \x1b[31m and \x00 nothing",
    "🐒 eats 🍌🍌 👩‍👩‍👧",
    "القرد يأكل موزة",
    "one \u2028 line \x85 and \u2029 more",
    "\u200b\ufeff",
    "x" * 600,
]


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """Train PASCAL from raw text with the parser that ships, by the command, and leave its
    messages."""
    folder = tmp_path_factory.mktemp("project")
    text = write_corpus(folder / "text")
    for trees in text.glob("*.conllu"):
        trees.unlink()
    parser = {"workers": 1, "device": "cpu"}
    recipe = write_recipe(folder / "tiny.yaml", text, parser=parser, filters={"max_pieces": 60})
    write_recipe(folder / "plain.yaml", text, syntax={}, filters={"max_pieces": 60})
    (folder / "runs").mkdir()
    (folder / "said").write_bytes(succeed("train", recipe.name, cwd=folder).stderr)
    return folder


NEEDED = """
run.json recipe.yaml log.jsonl model.safetensors average.safetensors
tests/test/source.txt tests/test/reference.txt tests/test/hypothesis.txt tests/test/scores.json
checkpoints/step-00000008/optimizer.safetensors
"""
MESSAGES = """
train:
step       3
valid at 4: loss
end of training at step 8: all steps are done
test: bleu
run: runs/tiny
"""


def test_training_leaves_all_that_a_run_needs_and_reports_it(project):
    run, said = project / "runs" / "tiny", (project / "said").read_text()
    names = {str(path.relative_to(run)) for path in run.rglob("*") if path.is_file()}
    assert set(NEEDED.split()) <= names
    assert "checkpoints/step-00000006/optimizer.safetensors" not in names
    info = json.loads((run / "run.json").read_text())
    assert (info["status"], info["steps"], info["parser"]["model"]) == ("finished", 8, "compact")
    kinds = [json.loads(line)["kind"] for line in (run / "log.jsonl").read_text().splitlines()]
    assert kinds == ["step", "validation", "step", "validation", "end"]
    assert not [part for part in MESSAGES.strip().splitlines() if part.strip() not in said]


def test_the_three_lines_work_as_they_stand(project):
    lines = (project / "text" / "test.en").read_text()
    translated = succeed("translate", text=lines, cwd=project)
    assert translated.stdout == (project / "runs/tiny/tests/test/hypothesis.txt").read_bytes()
    assert b"BLEU" in succeed("analyze", "--by-length", cwd=project).stdout
    (project / "out.de").write_bytes(translated.stdout)
    scored = succeed("score", "-r", "text/test.de", "out.de", "--json", cwd=project)
    kept = json.loads((project / "runs/tiny/tests/test/scores.json").read_text())
    assert f"{kept['bleu']['score']:.2f}"[:4] in scored.stdout.decode()


def test_odd_lines_come_out_as_many_as_go_in(project):
    done = succeed("translate", text="".join(f"{line}\n" for line in ODD_LINES), cwd=project)
    translations = lines_of(done)
    assert len(translations) == len(ODD_LINES)
    assert translations[1:3] == ["", ""]
    assert b"warning: 1 line(s) have more" in done.stderr
    # the same line alone
    alone = synmt("translate", text=f"{ODD_LINES[5]}\n", cwd=project)
    assert alone.stdout.decode() == f"{translations[5]}\n"


@pytest.fixture
def plain(project):
    """Train the plain system for four steps, anew for each test."""
    succeed("train", "plain.yaml", "training.max_steps=4", "--overwrite", cwd=project)
    yield project / "runs" / "plain"
    shutil.rmtree(project / "runs" / "plain")


def test_more_steps_go_on_where_the_run_has_ended(project, plain):
    done = succeed("train", "plain.yaml", "training.max_steps=8", cwd=project)
    assert b", continuing from step 4" in done.stderr
    assert json.loads((plain / "run.json").read_text())["steps"] == 8
    succeed("train", "plain.yaml", "name=whole", cwd=project)
    for name in ("model.safetensors", "tests/test/hypothesis.txt"):
        assert (plain / name).read_bytes() == (project / "runs" / "whole" / name).read_bytes()
    shutil.rmtree(project / "runs" / "whole")


def test_other_weights_are_taken_without_more_training(project, plain):
    before = (plain / "model.safetensors").read_bytes()
    succeed("train", "plain.yaml", "training.max_steps=4", "training.use=last", cwd=project)
    assert (plain / "model.safetensors").read_bytes() != before
    last = plain / "checkpoints" / "step-00000004" / "model.safetensors"
    assert (plain / "model.safetensors").read_bytes() == last.read_bytes()


@pytest.mark.parametrize("options", [[], ["--overwrite"]])
def test_a_folder_that_is_no_run_is_left_alone(project, options):
    folder = project / "runs" / "mine"
    folder.mkdir(exist_ok=True)
    (folder / "thesis.tex").write_text("years of work")
    errors = fail(2, "train", "tiny.yaml", "name=mine", *options, cwd=project)
    assert "runs/mine: not a run folder (no run.json), and not empty" in errors
    assert [path.name for path in folder.iterdir()] == ["thesis.tex"]
