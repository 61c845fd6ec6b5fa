"""`synmt translate` in its plain uses."""

import contextlib
import gzip
import io
import os
import re
import select
import signal
import subprocess
import sys
import threading
from pathlib import Path
from unittest.mock import patch

import pytest
from small_run import PASCAL, TEXT, make_run

from synmt.cli import main
from synmt.syntax.conllu import format_conllu
from synmt.syntax.parse import flat_parse

ROOT = Path(__file__).parents[1]
LINES = [TEXT[0], "", "  ", "A dog \u2028 sees.", TEXT[1]]
INPUT = "".join(f"{line}\n" for line in LINES)


@pytest.fixture(scope="module", autouse=True)
def cache(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SYNMT_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Make a plain run, the newer one, and a PASCAL run."""
    folder = tmp_path_factory.mktemp("project") / "runs"
    make_run(folder / "pascal", PASCAL)
    plain = make_run(folder / "plain", parser=False, max_pieces=40)
    plain.write_info(finished_at="2026-01-02T00:00:00+00:00")
    return folder


def command(*arguments):
    return [sys.executable, "-m", "synmt", *map(str, arguments)]


def environment():
    return {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}


def synmt(*arguments, text="", cwd=None):
    """Run the command in this process, where torch is loaded already."""
    given = text.encode() if isinstance(text, str) else text
    streams = [io.TextIOWrapper(io.BytesIO(part)) for part in (given, b"", b"")]
    before = os.getcwd()
    os.chdir(cwd or before)
    try:
        with (
            patch.multiple(sys, argv=["synmt", "translate", *map(str, arguments)], stdin=streams[0], stdout=streams[1]),
            contextlib.redirect_stderr(streams[2]),
        ):
            code = _exit_code()
    finally:
        os.chdir(before)
    for stream in streams:
        stream.flush()
    output, errors = (stream.buffer.getvalue() for stream in streams[1:])
    return subprocess.CompletedProcess(arguments, code, output, errors)


def _exit_code():
    try:
        main()
    except SystemExit as leaving:
        return leaving.code or 0
    return 0


def warnings_in(errors):
    """Leave out the line about degenerate output: translations by random weights often loop."""
    return b"".join(line for line in errors.splitlines(True) if not line.startswith(b"degenerate translations: "))


def start(*arguments):
    pipe = subprocess.PIPE
    return subprocess.Popen(
        command("translate", *arguments), stdin=pipe, stdout=pipe, stderr=pipe, env=environment(), bufsize=0
    )


def test_without_arguments_the_newest_run_translates_standard_input(runs):
    done = synmt(text=INPUT, cwd=runs.parent)
    assert (done.returncode, warnings_in(done.stderr)) == (0, b"run: runs/plain\n")
    lines = done.stdout.decode().split("\n")
    assert len(lines) == len(LINES) + 1
    assert [bool(line) for line in lines] == [True, False, False, True, True, False]
    assert synmt("--run", "runs/plain", text=INPUT, cwd=runs.parent).stdout == done.stdout


def test_a_file_is_translated_into_a_file(runs, tmp_path):
    with gzip.open(tmp_path / "in.gz", "wt", encoding="utf-8") as stream:
        stream.write(INPUT)
    done = synmt(tmp_path / "in.gz", "-o", tmp_path / "out.gz", "--run", runs / "plain")
    assert (done.returncode, done.stdout) == (0, b"")
    written = gzip.decompress((tmp_path / "out.gz").read_bytes())
    assert written == synmt("--run", runs / "plain", text=INPUT).stdout


def test_the_last_newline_is_optional_and_no_text_gives_no_text(runs):
    whole = synmt("--run", runs / "plain", text=INPUT)
    assert synmt("--run", runs / "plain", text=INPUT[:-1]).stdout == whole.stdout
    empty = synmt("--run", runs / "plain", text="")
    assert (empty.returncode, empty.stdout) == (0, b"")


def test_n_best_lists_have_the_format_of_moses_and_scores_follow_a_tab(runs):
    best = synmt("--run", runs / "plain", text=INPUT).stdout.decode().split("\n")
    listed = synmt("--run", runs / "plain", "--n-best", 3, text=INPUT).stdout.decode().split("\n")[:-1]
    rows = [line.split(" ||| ") for line in listed]
    assert [row[0] for row in rows] == ["0"] * 3 + ["1", "2"] + ["3"] * 3 + ["4"] * 3
    assert rows[0][1] == best[0]
    assert rows[3][1:] == ["", "0.0000"]
    scores = [float(row[2]) for row in rows if row[0] == "0"]
    assert scores == sorted(scores, reverse=True)
    scored = synmt("--run", runs / "plain", "--scores", text=INPUT).stdout.decode().split("\n")
    assert scored[0] == f"{best[0]}\t{rows[0][2]}"
    assert scored[1] == "\t0.0000"


def test_the_first_line_comes_out_before_the_last_goes_in(runs):
    process = start("--run", runs / "plain")
    process.stdin.write(f"{TEXT[0]}\n".encode())
    ready, _, _ = select.select([process.stdout], [], [], 60)
    assert ready
    first = process.stdout.readline()
    rest, errors = process.communicate(f"{TEXT[1]}\n".encode())
    assert (process.returncode, warnings_in(errors)) == (0, b"")
    assert len(first) > 1
    assert rest.count(b"\n") == 1


def test_a_line_that_is_too_long_is_translated_in_part_and_reported(runs):
    done = synmt("--run", runs / "plain", text=f"{TEXT[0]}\n{'dog ' * 5000}\n")
    assert done.returncode == 0
    assert done.stdout.count(b"\n") == 2
    assert b"\n\n" not in done.stdout
    assert re.search(rb"warning: line 2 has \d{4,} pieces; the model takes 40 .*the last \d+ are not", done.stderr)


def test_a_pascal_run_parses_its_input_or_takes_trees(runs, tmp_path):
    done = synmt("--run", runs / "pascal", text=INPUT)
    assert (done.returncode, warnings_in(done.stderr)) == (0, b"")
    assert [bool(line) for line in done.stdout.decode().split("\n")] == [True, False, False, True, True, False]
    trees = tmp_path / "trees.conllu"
    subprocess.run(command("parse", "-o", trees), input=INPUT.encode(), env=environment(), check=True)
    given = synmt("--run", runs / "pascal", "--parses", trees, text=INPUT)
    assert (given.returncode, given.stdout, warnings_in(given.stderr)) == (0, done.stdout, b"")
    facts = tmp_path / "trees.conllu.json"
    facts.write_text(facts.read_text().replace('"language": "en"', '"language": "xx"'))
    other = synmt("--run", runs / "pascal", "--parses", trees, text=INPUT)
    assert other.stdout == done.stdout
    assert b"not made by the parser that the model was trained with: language xx instead of en" in other.stderr


@pytest.mark.parametrize(("trees", "message"), [(2, "has 2 sentences"), (4, "has 4 sentences")])
def test_different_numbers_of_trees_and_lines_are_an_error(runs, tmp_path, trees, message):
    blocks = "".join(format_conllu(flat_parse(line), line, number) for number, line in enumerate(TEXT[:trees], 1))
    (tmp_path / "trees.conllu").write_text(blocks)
    text = "".join(f"{line}\n" for line in TEXT[:3])
    done = synmt("--run", runs / "pascal", "--parses", tmp_path / "trees.conllu", text=text)
    assert done.returncode == 1
    assert message in done.stderr.decode()
    assert "the text has 3 lines" in done.stderr.decode()
    assert "Traceback" not in done.stderr.decode()


@pytest.mark.parametrize(
    ("arguments", "text", "code", "message"),
    [
        (["--run", "nowhere"], "x\n", 1, "not a run folder"),
        (["--checkpoint", "bset"], "x\n", 2, "Did you mean 'best'?"),
        (["--checkpoint", "last"], "x\n", 1, "has no checkpoints"),
        (["--beam-size", "2", "--n-best", "3"], "x\n", 2, "a beam of 2 cannot give 3 translations"),
        (["--beam-size", "0"], "x\n", 2, "beam-size"),
        (["--length-penalty", "nan"], "x\n", 2, "--length-penalty"),
        (["--length-penalty", "inf"], "x\n", 2, "--length-penalty cannot be inf"),
        (["--device", "toaster"], "x\n", 2, "there is no device 'toaster'"),
        (["--parses", "-", "--run", "runs/pascal"], "x\n", 2, "standard input cannot be both"),
        (["--parses", "gone.conllu", "--run", "runs/pascal"], "x\n", 1, "gone.conllu: cannot read"),
        (["gone.txt"], "", 1, "gone.txt: cannot read the file"),
        ([], b"good\nb\xe4d\n", 1, "standard input: line 2 is not UTF-8"),
    ],
)
def test_a_mistake_is_one_clear_message(runs, arguments, text, code, message):
    done = synmt(*arguments, text=text, cwd=runs.parent)
    assert done.returncode == code
    assert message in done.stderr.decode()
    assert "Traceback" not in done.stderr.decode()


def test_a_broken_or_unfinished_run_says_what_is_wrong(tmp_path):
    run = make_run(tmp_path / "runs" / "one", parser=False)
    run.weights.write_bytes(b"no weights")
    done = synmt("--run", run.folder, text="x\n")
    assert (done.returncode, done.stdout) == (1, b"")
    assert b"the run folder is broken" in done.stderr
    run.weights.unlink()
    run.write_info(status="training")
    done = synmt("--run", run.folder, text="x\n")
    assert done.returncode == 1
    assert b"the run has not finished" in done.stderr
    done = synmt(text="x\n", cwd=tmp_path)
    assert done.returncode == 1
    assert b"there is no finished run in runs/" in done.stderr


def test_the_output_never_replaces_the_input(runs, tmp_path):
    (tmp_path / "text").write_text("A dog.\n")
    done = synmt(tmp_path / "text", "-o", tmp_path / "text", "--run", runs / "plain")
    assert done.returncode == 2
    assert (tmp_path / "text").read_text() == "A dog.\n"


def test_a_closed_output_pipe_ends_the_command_quietly(runs):
    process = start("--run", runs / "plain")
    process.stdin.write(f"{TEXT[0]}\n".encode())
    assert process.stdout.readline()
    process.stdout.close()
    process.stdin.write(f"{TEXT[1]}\n".encode())
    process.stdin.close()
    errors = process.stderr.read()
    assert process.wait(60) != 0
    assert errors == b""


def test_control_c_says_so_and_leaves_with_130(runs):
    process = start("--run", runs / "plain")
    process.stdin.write(f"{TEXT[0]}\n".encode())
    assert process.stdout.readline()
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert errors == b"synmt: interrupted\n"


def test_the_help_page_has_an_example():
    done = synmt("--help")
    assert done.returncode == 0
    assert b"Example: synmt translate" in done.stdout


def test_a_named_pipe_is_read_once_and_whole(runs, tmp_path):
    pipe, out = tmp_path / "pipe", tmp_path / "out.de"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_text, args=(INPUT,))
    writer.start()
    done = synmt(pipe, "-o", out, cwd=runs.parent)
    writer.join()
    assert done.returncode == 0
    assert out.read_bytes().count(b"\n") == len(LINES)
