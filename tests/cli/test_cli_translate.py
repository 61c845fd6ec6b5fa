"""`synmt translate` in its plain uses."""

import gzip
import io
import json
import os
import re
import select
import shutil
import signal
import sys
import threading
from contextlib import nullcontext
from functools import partial
from types import SimpleNamespace

import pytest
import tiny
from forked import Piped
from small_run import PASCAL, TEXT, flat_conllu, make_run
from tiny import fail, lines_of, succeed

from synmt.cli import console

pytestmark = pytest.mark.journey

LINES = [TEXT[0], "", "  ", "A dog \u2028 sees.", TEXT[1]]
INPUT = "".join(f"{line}\n" for line in LINES)


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Make a plain run, the newer one, and a PASCAL run."""
    folder = tmp_path_factory.mktemp("project") / "runs"
    make_run(folder / "pascal", PASCAL)
    plain = make_run(folder / "plain", parser=False, max_pieces=40)
    plain.write_info(finished_at="2026-01-02T00:00:00+00:00")
    return folder


synmt = partial(tiny.synmt, "translate")


def warnings_in(errors):
    """Leave out the line about degenerate output: translations by random weights often loop."""
    return b"".join(
        line
        for line in errors.splitlines(True)
        if not line.startswith(b"degenerate translations: ")
    )


def test_without_arguments_the_newest_run_translates_standard_input(runs):
    done = synmt(text=INPUT, cwd=runs.parent)
    assert (done.returncode, warnings_in(done.stderr)) == (0, b"run: runs/plain\n")
    assert [bool(line) for line in lines_of(done)] == [bool(line.strip()) for line in LINES]
    for named in (("--run", "runs/plain"), ("runs/plain",)):
        assert synmt(*named, text=INPUT, cwd=runs.parent).stdout == done.stdout


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


@pytest.mark.parametrize(
    ("output", "shown"), [([], []), (["-o", "-"], []), (["-o", "out"], ["translating"])]
)
def test_progress_is_shown_on_a_terminal_unless_the_translations_appear_there(
    runs, tmp_path, monkeypatch, output, shown
):
    jobs, terminal = [], io.StringIO()
    terminal.isatty = lambda: True
    for module in ("synmt.cli.translate", "synmt.files.writing"):
        monkeypatch.setattr(sys.modules[module], "sys", SimpleNamespace(stdout=terminal))
    monkeypatch.setattr(
        console, "progress", lambda what, *_: jobs.append(what) or nullcontext(lambda amount: None)
    )
    (tmp_path / "in").write_text("A dog.\n")
    succeed("translate", "in", *output, "--run", runs / "plain", cwd=tmp_path)
    assert jobs == shown
    assert (terminal.getvalue() or (tmp_path / "out").read_text()).count("\n") == 1


def test_n_best_lists_have_the_format_of_moses_and_scores_follow_a_tab(runs):
    best = lines_of(synmt("--run", runs / "plain", text=INPUT))
    listed = synmt("--run", runs / "plain", "--n-best", 3, text=INPUT)
    rows = [line.split(" ||| ") for line in lines_of(listed)]
    assert [row[0] for row in rows] == ["0"] * 3 + ["1", "2"] + ["3"] * 3 + ["4"] * 3
    assert rows[0][1] == best[0]
    assert rows[3][1:] == ["", "0.0000"]
    scores = [float(row[2]) for row in rows if row[0] == "0"]
    assert scores == sorted(scores, reverse=True)
    scored = lines_of(synmt("--run", runs / "plain", "--scores", text=INPUT))
    assert scored[:2] == [f"{best[0]}\t{rows[0][2]}", "\t0.0000"]


@pytest.fixture
def process(runs):
    """Start the command in its own process and give it a line."""
    with Piped("translate", "--run", runs / "plain") as process:
        process.stdin.write(f"{TEXT[0]}\n".encode())
        yield process


def test_the_first_line_comes_out_before_the_last_goes_in(process):
    ready, _, _ = select.select([process.stdout], [], [], 60)
    assert ready
    first = process.stdout.readline()
    rest, errors = process.communicate(f"{TEXT[1]}\n".encode())
    assert (process.wait(), warnings_in(errors)) == (0, b"")
    assert len(first) > 1
    assert rest.count(b"\n") == 1


def test_a_line_that_is_too_long_is_translated_in_part_and_reported(runs):
    done = succeed("translate", "--run", runs / "plain", text=f"{TEXT[0]}\n{'dog ' * 5000}\n")
    assert done.stdout.count(b"\n") == 2
    assert b"\n\n" not in done.stdout
    assert re.search(
        rb"warning: line 2 has \d{4,} pieces; the model takes 40 .*the last \d+ are not",
        done.stderr,
    )


def test_a_pascal_run_parses_its_input_or_takes_trees(runs, tmp_path):
    done = synmt("--run", runs / "pascal", text=INPUT)
    assert (done.returncode, warnings_in(done.stderr)) == (0, b"")
    assert [bool(line) for line in lines_of(done)] == [bool(line.strip()) for line in LINES]
    trees = tmp_path / "trees.conllu"
    succeed("parse", "-o", trees, text=INPUT)
    given = synmt("--run", runs / "pascal", "--parses", trees, text=INPUT)
    assert (given.returncode, given.stdout, warnings_in(given.stderr)) == (0, done.stdout, b"")
    facts = tmp_path / "trees.conllu.json"
    facts.write_text(facts.read_text().replace('"language": "en"', '"language": "xx"'))
    other = synmt("--run", runs / "pascal", "--parses", trees, text=INPUT)
    assert other.stdout == done.stdout
    assert (
        b"not made by the parser that the model was trained with: language xx instead of en"
        in other.stderr
    )


@pytest.mark.parametrize(("trees", "message"), [(2, "has 2 sentences"), (4, "has 4 sentences")])
def test_different_numbers_of_trees_and_lines_are_an_error(runs, tmp_path, trees, message):
    (tmp_path / "trees.conllu").write_text(flat_conllu(TEXT[:trees]))
    text = "".join(f"{line}\n" for line in TEXT[:3])
    done = synmt("--run", runs / "pascal", "--parses", tmp_path / "trees.conllu", text=text)
    errors = done.stderr.decode()
    assert (done.returncode, message in errors, "Traceback" in errors) == (1, True, False)
    assert "the text has 3 lines" in errors


@pytest.mark.parametrize(
    ("arguments", "text", "code", "message"),
    [
        (["--run", "nowhere"], "x\n", 1, "nowhere: no such folder"),
        (
            ["--run", "runs/plain", "gone.txt"],
            "x\n",
            2,
            "gone.txt: there is neither a run folder nor a text of this name",
        ),
        (["--checkpoint", "bset"], "x\n", 2, "Did you mean 'best'?"),
        (["--checkpoint", "last"], "x\n", 1, "has no checkpoints"),
        (["--beam-size", "2", "--n-best", "3"], "x\n", 2, "a beam of 2 cannot give 3 translations"),
        (["--beam-size", "0"], "x\n", 2, "'--beam-size': must be 1 or more, not '0'"),
        (["--beam-size", "x"], "x\n", 2, "'--beam-size': must be a whole number, not 'x'"),
        (
            ["--precision", "fp16"],
            "x\n",
            2,
            "Invalid value for '--precision': 'fp16' is not one of",
        ),
        (["--length-penalty", "nan"], "x\n", 2, "--length-penalty"),
        (["--length-penalty", "inf"], "x\n", 2, "--length-penalty cannot be inf"),
        (["--device", "toaster"], "x\n", 2, "there is no device 'toaster'"),
        (
            ["--parses", "-", "--run", "runs/pascal"],
            "x\n",
            2,
            "INPUT and --parses: standard input",
        ),
        (["--parses", "gone.conllu", "--run", "runs/pascal"], "x\n", 1, "gone.conllu: cannot read"),
        (["gone.txt"], "", 1, "gone.txt: cannot read the file"),
        ([], b"good\nb\xe4d\n", 1, "standard input: line 2 is not UTF-8"),
    ],
)
def test_a_mistake_is_one_clear_message(runs, arguments, text, code, message):
    assert message in fail(code, "translate", *arguments, text=text, cwd=runs.parent)


def test_a_broken_or_unfinished_run_says_what_is_wrong(tmp_path):
    run = make_run(tmp_path / "runs" / "one", parser=False)
    run.weights.write_bytes(b"no weights")
    assert "the run folder is broken" in fail(1, "translate", "--run", run.folder, text="x\n")
    run.weights.unlink()
    run.write_info(status="training")
    assert "the run has not finished" in fail(1, "translate", "--run", run.folder, text="x\n")
    assert "there is no finished run in runs/" in fail(1, "translate", text="x\n", cwd=tmp_path)


def test_the_output_never_replaces_the_input(runs, tmp_path):
    (tmp_path / "text").write_text("A dog.\n")
    fail(2, "translate", tmp_path / "text", "-o", tmp_path / "text", "--run", runs / "plain")
    assert (tmp_path / "text").read_text() == "A dog.\n"


def test_an_output_takes_away_what_killed_commands_left_of_it(runs, tmp_path):
    for name in (".out.gz.abcdefgh.unfinished", ".pairs.abcdefgh.unfinished"):
        (tmp_path / name).touch()
    outputs = ["-o", "out.gz", "--alignments", "pairs"]
    succeed("translate", *outputs, "--run", runs / "plain", text="A dog.\n", cwd=tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {"out.gz", "pairs"}


@pytest.mark.parametrize("name", ["out", "out.gz"])
def test_what_was_translated_before_an_error_is_kept_until_the_output_is_complete(
    runs, tmp_path, name
):
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    lines = [b"A dog.\n"] * 600
    whole.write_bytes(b"".join(lines))
    broken.write_bytes(b"".join([*lines, b"\xff\n"]))
    how = ["-o", name, "--run", runs / "plain", "--batch-size", "8", "--beam-size", "1"]
    errors = fail(1, "translate", *how, broken, cwd=tmp_path)
    kept = tmp_path / {"out": "out.unfinished", "out.gz": "out.unfinished.gz"}[name]
    assert f"the output is not complete: what is finished is in {kept}" in errors
    assert kept.stat().st_mode & 0o777 == broken.stat().st_mode & 0o777
    # an attempt that finishes less, or nothing, leaves it alone
    before = kept.read_bytes()
    for text in (b"\xff\n", b"A dog.\n" * 8 + b"\xff\n"):
        broken.write_bytes(text)
        fail(1, "translate", *how, broken, cwd=tmp_path)
        assert kept.read_bytes() == before
    opened = gzip.open if name.endswith("gz") else open
    with opened(kept, "rt", encoding="utf-8") as stream:
        finished = stream.read().splitlines()
    assert 0 < len(finished) <= 600
    assert not (tmp_path / name).exists()
    succeed("translate", *how, whole, cwd=tmp_path)
    with opened(tmp_path / name, "rt", encoding="utf-8") as stream:
        assert stream.read().splitlines()[: len(finished)] == finished
    assert not kept.exists()


def test_after_an_interruption_the_same_command_translates_only_what_is_missing(runs, tmp_path):
    lines = [f"A dog {number}.\n".encode() for number in range(300)]
    text, folder = tmp_path / "text", tmp_path / ".out.windows"
    command = [
        "translate",
        text,
        "--run",
        runs / "plain",
        "--batch-size",
        "8",
        "--beam-size",
        "1",
        "--threads",
        "1",
    ]
    text.write_bytes(b"".join([*lines, b"\xff\n"]))
    fail(1, *command, "-o", tmp_path / "out")
    text.write_bytes(b"".join(lines))
    damaged, *finished = sorted(folder.iterdir())
    assert finished
    damaged.write_bytes(damaged.read_bytes()[:-9])
    # so that one sees what is read again
    for path in finished:
        marked = json.loads(path.read_text())
        for one in marked:
            one["candidates"][0]["text"] = "again"
        path.write_text(json.dumps(marked))
    shutil.copytree(folder, tmp_path / ".other.windows")
    for name, *options in (["fresh"], ["out"], ["other", "--length-penalty", "0.3"]):
        succeed(*command, *options, "-o", tmp_path / name)
    expected, found, other = (
        (tmp_path / name).read_text().splitlines() for name in ("fresh", "out", "other")
    )
    assert {mine for mine, theirs in zip(found, expected, strict=True) if mine != theirs} == {
        "again"
    }
    assert len(lines) > found.count("again") >= len(finished)
    assert "again" not in other
    assert {path.name for path in tmp_path.iterdir()} == {"text", "fresh", "out", "other"}


def test_outputs_with_another_compression_are_refused_before_the_model_is_loaded(tmp_path):
    error = fail(
        2, "translate", "-o", "a.xz", "--alignments", "b.bz2", "--run", "none", cwd=tmp_path
    )
    for name in ("a.xz", "b.bz2"):
        assert f"{name}: outputs are compressed with gzip only. Let the name end in .gz." in error
    assert not list(tmp_path.iterdir())


def test_a_closed_output_pipe_ends_the_command_quietly(process):
    assert process.stdout.readline()
    process.stdout.close()
    process.stdin.write(f"{TEXT[1]}\n".encode())
    process.stdin.close()
    assert process.stderr.read() == b""
    assert process.wait() == 128 + signal.SIGPIPE


def test_control_c_says_so_and_leaves_with_130(process):
    assert process.stdout.readline()
    process.signal(signal.SIGINT)
    assert process.stderr.read() == b"synmt: interrupted\n"
    assert process.wait() == 130


def test_a_named_pipe_is_read_once_and_whole(runs, tmp_path):
    pipe, out = tmp_path / "pipe", tmp_path / "out.de"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_text, args=(INPUT,))
    writer.start()
    succeed("translate", pipe, "-o", out, cwd=runs.parent)
    writer.join()
    assert out.read_bytes().count(b"\n") == len(LINES)
