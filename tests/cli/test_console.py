"""How every command ends: exit codes, one message for a person, and Ctrl-C, SIGTERM and a closed
pipe anywhere."""

import io
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from importlib import import_module
from importlib.metadata import version

import pytest
import typer
from forked import Forked, run_command, wait_for
from test_messages import EVIL, SHOWN, cases
from tiny import environment, fail, succeed, synmt, write_lines

from synmt import __version__
from synmt.cli import COMMANDS, command, console, load
from synmt.errors import SynmtError, UsageError
from synmt.reporting.progress import progress_text
from synmt.reporting.values import Report, Table, count_column, text_column

pytestmark = pytest.mark.journey

PROGRAM = shlex.join([sys.executable, "-m", "synmt"])


def shell(line, place=None):
    """Run a line of bash; without this variable Python writes when it ends, and not at once."""
    buffered = {name: value for name, value in environment().items() if name != "PYTHONUNBUFFERED"}
    return subprocess.run(
        ["bash", "-c", line], cwd=place, env=buffered, capture_output=True, text=True
    )


@pytest.fixture
def leave(monkeypatch):
    """Run a function as a command; gives the exit code."""
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO()))
    monkeypatch.setattr(sys, "argv", ["synmt"])

    def run(function):
        one = typer.Typer()
        one.command()(function)
        with pytest.raises(SystemExit) as left:
            command.run(one)
        return left.value.code

    return run


def raising(error, blame=""):
    """Make a command that fails, and perhaps blames a file for it."""

    def go():
        try:
            raise error
        except RuntimeError:
            if not blame:
                raise
            raise SynmtError(blame, where="/x", do="Download it again") from None

    return go


OUT_OF_MEMORY = (
    "error: out of memory. "
    "Free some, or raise the limit (ulimit -v); smaller batches (training.batch_tokens, with more "
    "training.accumulate) and --threads 1 need less."
)
QUOTED = "out of memory, says the text"
ERRORS = [
    (
        SynmtError("is broken", where="file", do="Repair it"),
        1,
        "error: file: is broken. Repair it.",
    ),
    (UsageError("no such key", allowed="a, b"), 2, "error: no such key. a, b."),
    (OSError(28, "No space left", "/x"), 1, "error: /x: No space left."),
    (OSError("odd"), 1, "error: output: odd."),
    (KeyboardInterrupt(), 130, "interrupted"),
    (MemoryError(), 1, OUT_OF_MEMORY),
    (OSError(12, "Cannot allocate memory", "/x"), 1, OUT_OF_MEMORY),
    (RuntimeError("could not create a primitive"), 1, OUT_OF_MEMORY),
    (ImportError("a.so: failed to map segment from shared object"), 1, OUT_OF_MEMORY),
]


@pytest.mark.parametrize(("error", "code", "message"), ERRORS)
def test_an_error_is_a_message_and_an_exit_code(leave, capfd, error, code, message):
    assert leave(raising(error)) == code
    assert capfd.readouterr() == ("", f"synmt: {message}\n")


@pytest.mark.parametrize(
    ("cause", "message"),
    [
        ("unable to mmap 9 bytes from file <x>: Cannot allocate memory (12)", OUT_OF_MEMORY),
        ("can't start new thread", OUT_OF_MEMORY),
        ("odd", f"error: /x: {QUOTED}. Download it again."),
    ],
)
def test_a_file_is_not_blamed_for_lack_of_memory(leave, capfd, cause, message):
    assert leave(raising(RuntimeError(cause), QUOTED)) == 1
    assert capfd.readouterr().err == f"synmt: {message}\n"


def test_other_exit_codes_are_kept_and_our_own_mistakes_have_their_traceback(leave, capfd):
    assert leave(raising(typer.Exit(3))) == 3
    assert capfd.readouterr() == ("", "")
    with pytest.raises(AssertionError, match="ours"):
        leave(raising(AssertionError("ours")))


@pytest.mark.parametrize("name", COMMANDS)
def test_a_help_page_has_an_example(name):
    assert f"Example: synmt {name}" in succeed(name, "--help").stdout.decode()
    assert load(name).callback.__doc__.startswith(f"{COMMANDS[name]}\n\n")


def parsed(name, *arguments, **context):
    """Parse the arguments of a command; gives its values by name."""
    return load(name).make_context(name, list(arguments), **context).params


DASHES = """
parse --model=--arcs | model | --arcs
parse --package --unknown | package | --unknown
parse -o - | output | -
parse -o--arcs | output | --arcs
score -s - -r a text | source | -
train recipe --data x=--runs name=--data | data | x=--runs
analyze --buckets -5 --words all | buckets | -5
train recipe -- --data --runs | arguments | recipe --data --runs
translate --run A B --beam-size 4 | run | A B
translate --run=A B -- C | run | A B
"""


@pytest.mark.parametrize(("line", "key", "value"), cases(DASHES))
def test_values_may_begin_with_a_dash_and_an_option_may_have_several(line, key, value):
    found = parsed(*line.split())[key]
    assert " ".join(map(str, found if isinstance(found, list) else [found])) == value


def test_a_shell_completes_a_line_whose_options_have_no_value_yet():
    assert parsed("analyze", "--words", "--run", resilient_parsing=True)["words"] == "--run"
    assert parsed("analyze", "--top", "3", "--top", "4", resilient_parsing=True)["top"] is not None


# each command waits in the first function that it calls
_FIRST = """
parse | synmt.parsing.parser | StanzaParser |
prepare | synmt.recipe.load | load_recipe | x.yaml
train | synmt.recipe.load | load_recipe | x.yaml
translate | synmt.run_folder | find_run |
score | synmt.evaluation.metrics | cached_score | -r text other
analyze | synmt.run_folder | find_run | --by-length
"""


def wait_in(module, function, arguments):
    """Be a command that waits in a function."""

    def wait(*arguments, **options):
        # unbuffered: a signal in the middle of a flush would let it be written twice
        os.write(2, b"ready\n")
        time.sleep(60)

    original = getattr(import_module(module), function)
    for loaded in list(sys.modules.values()):
        if vars(loaded).get(function) is original:
            setattr(loaded, function, wait)
    run_command(*arguments)


@pytest.fixture
def texts(tmp_path, monkeypatch):
    """The current folder, with two texts."""
    monkeypatch.chdir(tmp_path)
    for name in ("text", "other"):
        write_lines(tmp_path / name, ["A dog."] * 40)
    return tmp_path


@pytest.mark.parametrize(("name", "module", "function", "rest"), cases(_FIRST))
def test_ctrl_c_and_sigterm_end_every_command_with_130(name, module, function, rest, texts):
    log = texts / "log"
    process = Forked(wait_in, module, function, [name, *rest.split()], log=log)
    wait_for(lambda: log.exists() and log.read_bytes() == b"ready\n")
    process.signal(signal.SIGTERM if name in ("parse", "score") else signal.SIGINT)
    assert (process.wait(60), log.read_bytes()) == (130, b"ready\nsynmt: interrupted\n")


def test_ctrl_c_while_the_command_is_loaded_shows_no_traceback():
    script = """
import signal, sys
class Slow:
    def find_spec(self, name, path=None, target=None):
        if name == "typer":
            signal.raise_signal(signal.SIGINT)
sys.meta_path.insert(0, Slow())
from synmt.__main__ import main
main()
"""
    done = shell(shlex.join([sys.executable, "-c", script]))
    assert (done.returncode, done.stderr) == (130, "synmt: interrupted\n")


@pytest.mark.parametrize("arguments", ["--help", "score -r text other"])
def test_a_closed_pipe_ends_the_command_without_a_message(arguments, texts):
    done = shell(f"{PROGRAM} {arguments} | true; exit ${{PIPESTATUS[0]}}", texts)
    assert (done.returncode, done.stderr) == (1, "")


@pytest.mark.parametrize(("streams", "code"), [(">/dev/full", 1), ("<&-", 0), ("2>&-", 0)])
@pytest.mark.parametrize("arguments", ["--help", "score --format tsv -r text text"])
def test_lost_output_is_an_error(texts, arguments, streams, code):
    done = shell(f"{PROGRAM} {arguments} {streams}", texts)
    assert (done.returncode, bool(done.stdout)) == (code, code == 0)
    assert done.stderr.endswith("synmt: error: output: No space left on device.\n" * code)
    assert "Exception" not in done.stderr


def test_quiet_shows_nothing_but_warnings(capfd):
    console.configure(quiet=True)
    console.remark("a remark")
    console.show_aside(Table(columns=[text_column("a")], rows=[["b"]]))
    with console.progress("work", 3, "lines", every=0) as advance:
        advance(3)
    console.warn("look")
    assert capfd.readouterr() == ("", "warning: look\n")


def test_progress_without_a_terminal_is_a_plain_line(capfd):
    console.configure()
    with console.progress("work", 4, "lines", every=0) as advance:
        advance(1)
    assert capfd.readouterr().err.startswith("work: 1 of 4 lines, ")


PROGRESS = """
1 | 12.3 | 1 of 2,200 lines, 0.1/s
4 | 12 | 4 of 2,200 lines, 0.3/s
5 | 5 | 5 of 2,200 lines, 1.0/s, 36 min 35 s left
5 | 60 | 5 of 2,200 lines, 0.1/s, 7 h 19 min left
200 | 10 | 200 of 2,200 lines, 20/s, 1 min 40 s left
200 | 20 | 200 of 2,200 lines, 10/s, 3 min 20 s left
2200 | 11 | 2,200 of 2,200 lines, 200/s
"""


@pytest.mark.parametrize(("done", "seconds", "text"), cases(PROGRESS))
def test_progress_has_slow_rates_exactly_and_long_times_in_hours(done, seconds, text):
    assert progress_text(float(done), 2200, "lines", float(seconds)) == text


def test_json_has_letters_as_they_are_and_null_for_infinity(capfd):
    console.print_json({"word": "größte", "limit": float("inf")})
    assert capfd.readouterr().out == '{\n  "word": "größte",\n  "limit": null\n}\n'


def test_verbose_shows_details_and_a_log_file_gets_everything_with_its_time(tmp_path, capsys):
    log = tmp_path / "synmt.log"
    line = ["--log-file", log, "translate", "--run", tmp_path / "none"]
    done = synmt("-v", *line)
    assert f"synmt {__version__}: -v --log-file" in done.stderr.decode().splitlines()[0]
    first, *_, last = log.read_text(encoding="utf-8").splitlines()
    assert re.match(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3} DEBUG synmt: synmt ", first)
    assert (" ERROR synmt: " in last, "error:" in last) == (True, False)
    # a second command adds to the file; without --verbose the details are only there
    assert synmt(*line).stderr.count(b"\n") == 1
    assert log.read_text(encoding="utf-8").count(" DEBUG synmt: synmt ") == 2
    fail(2, "--log-file", log, "translate", "--nothing")
    assert "No such option: --nothing" in log.read_text(encoding="utf-8").splitlines()[-1]
    console.configure(log_file=log)
    columns = [text_column("split"), count_column("lines")]
    console.show_aside(Table(title="kept", columns=columns, rows=[["train", 7]]))
    assert capsys.readouterr().err.count("kept") == 1
    assert "kept\nsplit  lines\ntrain      7\n" in log.read_text(encoding="utf-8")


def test_a_terminal_gets_no_control_characters_and_a_pipe_gets_them_as_they_are(
    capsys, monkeypatch
):
    console.configure()
    console.remark(EVIL)
    console.warn(EVIL)
    table = Table(title=EVIL, columns=[text_column(EVIL), text_column("b")], rows=[[EVIL, EVIL]])
    report = {"a": Report(title=EVIL, parts=[table], notes=[EVIL])}
    console.show_aside(table)
    assert capsys.readouterr().err.count(SHOWN) == 6
    for kind in ("text", "tsv"):
        console.show_reports(report, kind)
    assert EVIL in capsys.readouterr().out
    for stream in (sys.stdout, sys.stderr):
        monkeypatch.setattr(stream, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "200")
    for kind in ("text", "tsv"):
        console.show_reports(report, kind)
    with console.progress(EVIL, 2, "lines") as advance:
        advance(1)
    out, errors = capsys.readouterr()
    assert out.count(SHOWN) == 9
    assert SHOWN in errors
    assert not set("\x07\x9b\u202e\x7f") & set(out + errors)


def test_a_report_of_a_fault_can_say_what_it_was_found_with():
    found = json.loads(succeed("--version", "--json").stdout)
    assert (found["synmt"], found["packages"]["torch"]) == (__version__, version("torch"))
    assert b"--json needs --version here" in synmt("--json", "train", "--list").stderr
