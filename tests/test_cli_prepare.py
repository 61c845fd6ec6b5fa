"""`synmt prepare`, run as a person runs it."""

import io
import subprocess
import sys
from pathlib import Path

import pytest
import typer

from synmt.cli import command
from synmt.cli.prepare import prepare
from synmt.data.corpus import PreparedCorpus, is_complete


@pytest.fixture
def recipe(tmp_path, monkeypatch):
    monkeypatch.setenv("SYNMT_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    texts = {"en": ["The monkey eats a banana.", "A girl sees.", ""], "de": ["Der Affe isst.", "Ein Kind sieht.", "x"]}
    (tmp_path / "text").mkdir()
    for split in ("train", "valid"):
        for language, lines in texts.items():
            (tmp_path / "text" / f"{split}.{language}").write_text("".join(f"{line}\n" for line in lines))
    path = tmp_path / "small.yaml"
    path.write_text(
        "source: en\ntarget: de\ncorpus: {folder: text}\nvocabulary: {kind: word, size: 50}\n", encoding="utf-8"
    )
    return path


def rows(*words: str) -> str:
    """Write a sentence as CoNLL-U."""
    fields = [word.split() for word in words]
    lines = (
        f"{n}\t{form}\t_\tX\t_\t_\t{head}\t{relation}\t_\t_\n" for n, (form, head, relation) in enumerate(fields, 1)
    )
    return "".join(lines) + "\n"


def run(monkeypatch, *arguments) -> int:
    """Run the command; gives its exit code."""
    app = typer.Typer()
    app.command()(prepare)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO()))
    monkeypatch.setattr(sys, "argv", ["synmt", *map(str, arguments)])
    with pytest.raises(SystemExit) as left:
        command.run(app)
    return left.value.code


def test_the_folder_is_data_and_the_table_is_for_people(recipe, tmp_path, monkeypatch, capfd):
    assert run(monkeypatch, recipe, "--data", "d") == 0
    shown = capfd.readouterr()
    folder = tmp_path / shown.out.removesuffix("\n")
    assert folder.parent == tmp_path / "d" / "prepared"
    assert is_complete(folder)
    assert "dropped: empty" in shown.err
    assert "pieces per word" in shown.err


def test_the_second_time_gives_the_same_folder_at_once(recipe, monkeypatch, capfd):
    run(monkeypatch, recipe)
    first = capfd.readouterr().out
    assert run(monkeypatch, recipe) == 0
    assert capfd.readouterr().out == first


def test_an_override_makes_another_folder(recipe, monkeypatch, capfd):
    run(monkeypatch, recipe)
    first = capfd.readouterr().out
    assert run(monkeypatch, recipe, "filters.max_words=3") == 0
    assert capfd.readouterr().out != first


def test_trees_that_lie_beside_the_text_are_added(recipe, tmp_path, monkeypatch, capfd):
    first = rows("The 2 det", "monkey 3 nsubj", "eats 0 root", "a 5 det", "banana. 3 obj")
    second = rows("A 2 det", "girl 3 nsubj", "sees. 0 root")
    for split in ("train", "valid"):
        (tmp_path / "text" / f"{split}.en.conllu").write_text(first + second)
    assert run(monkeypatch, recipe, "parser.control=gold", "--trees") == 0
    shown = capfd.readouterr()
    assert "source trees: pieces that straddle two words" in shown.err
    data = PreparedCorpus.open(tmp_path / shown.out.removesuffix("\n"))
    (name,) = data.annotations()
    row = data.split("train", {"source": name}).rows([0])[0]
    assert row.trees["source"].parse.parents.tolist() == [1, 2, 2, 4, 2]
    assert row.trees["source"].parse.relations == ["det", "nsubj", "root", "det", "obj"]
    assert row.trees["source"].word_of.tolist() == [0, 1, 2, 3, 4]


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["vocabulary.kind=words"], 2, "vocabulary.kind"),
        (["corpus.folder=nowhere"], 2, "nowhere: the folder of corpus.folder is missing"),
        (["filters.max_words=1"], 1, "the filters remove the whole training text (too long (words): 2, empty: 1)"),
        (["vocabulary.kind=bpe", "vocabulary.size=8000"], 1, "vocabulary.size is 8000, but the text yields only"),
    ],
)
def test_a_mistake_is_one_line_and_an_exit_code(recipe, monkeypatch, capfd, arguments, code, message):
    assert run(monkeypatch, recipe, *arguments) == code
    shown = capfd.readouterr()
    assert message in shown.err
    assert "Traceback" not in shown.err
    assert shown.out == ""


def test_sides_of_different_length_fail_with_both_counts(recipe, tmp_path, monkeypatch, capfd):
    (tmp_path / "text" / "train.de").write_text("x\n")
    assert run(monkeypatch, recipe) == 1
    assert "has 3 lines" in capfd.readouterr().err


def test_a_folder_that_cannot_be_written_to_is_named(recipe, tmp_path, monkeypatch, capfd):
    (tmp_path / "file").write_text("")
    assert run(monkeypatch, recipe, "--data", "file") == 1
    assert "cannot write" in capfd.readouterr().err


def test_an_interruption_leaves_by_130_and_can_be_gone_on_with(recipe, monkeypatch, capfd):
    def interrupted(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("synmt.data.prepare.train_vocabulary", interrupted)
        assert run(patch, recipe) == 130
    assert run(monkeypatch, recipe) == 0


_SMALL_DISK = """
import resource, sys
from synmt.cli import command
from synmt.cli.prepare import prepare
import typer
resource.setrlimit(resource.RLIMIT_FSIZE, (600, 600))
app = typer.Typer()
app.command()(prepare)
sys.argv = ["synmt", "small.yaml"]
command.run(app)
"""


def test_a_disk_that_is_full_is_one_line(recipe, tmp_path):
    paths = {"PYTHONPATH": str(Path(__file__).parents[1]), "SYNMT_CACHE": str(tmp_path / "cache"), "PATH": ""}
    # Python would store modules that it compiles, cut off at the limit
    environment = {**paths, "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [sys.executable, "-c", _SMALL_DISK], cwd=tmp_path, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 1
    assert "cannot write: File too large. Make room" in done.stderr
    assert "Traceback" not in done.stderr
