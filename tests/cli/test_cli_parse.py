"""`synmt parse` on the command line."""

import os
import signal
import subprocess
import sys
import time

import pytest
from flat_parser import group_lives
from forked import Forked, Piped, run_command, wait_for
from tiny import environment, synmt

from synmt.syntax.conllu import read_parses

pytestmark = pytest.mark.journey

TEXT = "The monkey eats a banana.\n\nDon't stop.\n"
LINES = TEXT.split("\n")[:-1]


def test_text_goes_in_and_trees_come_out(tmp_path):
    done = synmt("parse", text=TEXT)
    assert (done.returncode, done.stderr) == (0, b"")
    (tmp_path / "out.conllu").write_bytes(done.stdout)
    parses = list(read_parses(tmp_path / "out.conllu", LINES))
    assert parses[0].relations == ["det", "nsubj", "root", "det", "obj", "punct"]
    assert [len(parse) for parse in parses] == [6, 0, 4]


def test_trees_go_through_a_named_pipe_as_they_come(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    reader = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    assert synmt("parse", "-o", tmp_path / "pipe", text="Go.\n").returncode == 0
    assert os.read(reader, 1 << 16) == synmt("parse", text="Go.\n").stdout
    os.close(reader)


def test_a_file_is_parsed_once(tmp_path):
    (tmp_path / "text.en").write_text(TEXT)
    target = tmp_path / "trees.conllu.gz"
    arguments = ("parse", tmp_path / "text.en", "-o", target, "--workers", 1)
    done = synmt(*arguments)
    assert (done.returncode, done.stdout) == (0, b"")
    assert b"3 lines, 10 words" in done.stderr
    assert [len(parse) for parse in read_parses(target, LINES)] == [6, 0, 4]
    assert b"unchanged, 3 lines" in synmt(*arguments).stderr
    (tmp_path / "text.en").write_text("other\n")
    refused = synmt(*arguments)
    assert (refused.returncode, b"made from another text" in refused.stderr) == (1, True)
    assert synmt("--quiet", *arguments, "--overwrite").stderr == b""


def test_with_arcs_the_trees_are_the_same_in_a_file_and_a_stream(tmp_path):
    (tmp_path / "text.en").write_text(TEXT + TEXT)
    target = tmp_path / "trees.conllu"
    arguments = "parse", tmp_path / "text.en", "-o", target, "--shard-lines", 2, "--workers", 1
    assert synmt(*arguments, "--arcs").returncode == 0
    assert synmt("parse", "--arcs", text=TEXT + TEXT).stdout == target.read_bytes()
    assert all(tree.arcs for tree in read_parses(target, LINES + LINES) if len(tree))
    assert b"by another parser" in synmt(*arguments).stderr


MISTAKES = """
--lang xx => 2 Stanza's parsers: there is no language 'xx'
--lang xx --model compact => 2 'xx'. Languages that ship with synmt: en. Use Stanza's
--nope => 2 No such option
--workers 0 => 2 --workers
--workers 3 => 2 --workers needs an output file. Add `-o FILE`
-o - --shard-lines 5 => 2 --shard-lines needs an output file
--overwrite => 2 --overwrite needs an output file
--cluster tcp://nohost:1 => 2 --cluster needs an output file
nowhere.txt => 1 nowhere.txt: cannot read the file
--model nowhere => 1 nowhere: Stanza models for 'en' not found. A folder of models has
--lang fr --model official => 1 stanza.download('fr')
--device nosuch => 1 Check language, package and device
"""


@pytest.mark.parametrize("case", MISTAKES.strip().splitlines())
def test_a_mistake_is_one_message_and_an_exit_code(tmp_path, monkeypatch, case):
    arguments, _, expected = case.partition(" => ")
    code, message = expected.split(" ", 1)
    monkeypatch.setenv("STANZA_RESOURCES_DIR", str(tmp_path))
    monkeypatch.setenv("SYNMT_OFFLINE", "1")
    done = synmt("parse", *arguments.split(), text="a\n")
    assert done.returncode == int(code), done.stderr
    assert message in done.stderr.decode()
    assert b"Traceback" not in done.stderr
    assert done.stdout == b""


def test_a_file_in_another_language_is_named_also_before_standard_output(tmp_path):
    text = "Der Junge sieht den Hund im Garten.\n" * 10
    (tmp_path / "text.de").write_text(text, encoding="utf-8")
    said = synmt("parse", tmp_path / "text.de", "--lang", "en").stderr.decode()
    assert "10 of 10 sampled lines look like language 'de', not 'en'" in said


def test_a_closed_pipe_ends_the_command_without_complaint():
    with Piped("parse") as process:
        process.stdin.write(b"First line.\n")
        assert process.stdout.readline() == b"# line = 1\n"
        process.stdout.close()
        process.stdin.write(b"Second line.\n")
        process.stdin.close()
        assert process.stderr.read() == b""
        assert process.wait() == 1


def test_ctrl_c_ends_with_130_and_the_next_run_continues(tmp_path):
    text = "".join(
        f"The monkey number {number} eats a banana with {number % 97} friends.\n"
        for number in range(240)
    )
    (tmp_path / "text.en").write_text(text)
    target = tmp_path / "out.conllu"
    arguments = ("parse", tmp_path / "text.en", "-o", target, "--shard-lines", 12, "--workers")
    log = tmp_path / "log"
    process = Forked(run_command, *map(str, arguments), "2", log=log)
    wait_for(lambda: list((tmp_path / "out.conllu.parts").glob("*.json")), 120)
    os.killpg(process.pid, signal.SIGINT)
    assert process.wait(30) == 130
    errors = log.read_bytes()
    assert b"interrupted" in errors
    assert b"Traceback" not in errors
    assert not target.exists()
    # Python's helper process ends shortly after our last one
    wait_for(lambda: not group_lives(process.pid), 120)
    # one process, which has loaded the parser already, does the rest
    done = synmt(*arguments, 1)
    assert done.returncode == 0, done.stderr
    assert b"240 lines" in done.stderr
    assert len(list(read_parses(target, text.split("\n")[:-1]))) == 240


def test_ctrl_c_in_a_finalizer_is_not_lost():
    script = """
import signal, time, typer
from synmt.cli import command
class Dying:
    def __del__(self):
        signal.raise_signal(signal.SIGINT)
app = typer.Typer()
@app.command()
def go():
    Dying()
    time.sleep(20)
command.run(app)
"""
    began = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, env=environment(), check=False
    )
    assert (done.returncode, done.stderr) == (130, b"synmt: interrupted\n")
    assert time.monotonic() - began < 15
