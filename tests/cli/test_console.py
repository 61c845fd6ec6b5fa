"""How every command ends: exit codes, one message for a person, and Ctrl-C, SIGTERM and a closed
pipe anywhere."""

import io
import os
import re
import shlex
import signal
import subprocess
import sys
import threading
import time
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace

import pytest
import typer
from forked import Forked, run_command, wait_for
from tiny import environment, fail, succeed, synmt

from synmt import __version__
from synmt.cli import app, command, console
from synmt.errors import SynmtError, UsageError
from synmt.reporting import progress
from synmt.reporting.text import fit
from synmt.reporting.values import Report, Table, count_column, text_column

pytestmark = pytest.mark.journey

COMMANDS = ["parse", "prepare", "train", "translate", "score", "analyze"]


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


def raising(error):
    def go():
        raise error

    return go


OUT_OF_MEMORY = (
    "synmt: error: out of memory. "
    "Free some, or raise the limit (ulimit -v); smaller batches and --threads 1 need less.\n"
)


def blamed(error):
    """Blame a file for an error, and quote its text."""
    try:
        try:
            raise error
        except RuntimeError:
            raise SynmtError(
                "out of memory, says the text", where="/x", do="Download it again"
            ) from None
    except SynmtError as blaming:
        return blaming


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (
            SynmtError("is broken", where="file", do="Repair it"),
            1,
            "synmt: error: file: is broken. Repair it.\n",
        ),
        (UsageError("no such key", allowed="a, b"), 2, "synmt: error: no such key. a, b.\n"),
        (
            OSError(28, "No space left on device", "/x"),
            1,
            "synmt: error: /x: No space left on device.\n",
        ),
        (OSError("odd"), 1, "synmt: error: output: odd.\n"),
        (MemoryError(), 1, OUT_OF_MEMORY),
        (OSError(12, "Cannot allocate memory", "/x"), 1, OUT_OF_MEMORY),
        (RuntimeError("could not create a primitive"), 1, OUT_OF_MEMORY),
        (
            ImportError("libtorch_cpu.so: failed to map segment from shared object"),
            1,
            OUT_OF_MEMORY,
        ),
        (
            blamed(
                RuntimeError("unable to mmap 9 bytes from file <x>: Cannot allocate memory (12)")
            ),
            1,
            OUT_OF_MEMORY,
        ),
        (blamed(RuntimeError("can't start new thread")), 1, OUT_OF_MEMORY),
        (
            blamed(RuntimeError("odd")),
            1,
            "synmt: error: /x: out of memory, says the text. Download it again.\n",
        ),
        (KeyboardInterrupt(), 130, "synmt: interrupted\n"),
        (typer.Exit(3), 3, ""),
    ],
)
def test_an_error_is_a_message_and_an_exit_code(leave, capfd, error, code, said):
    assert leave(raising(error)) == code
    assert capfd.readouterr() == ("", said)


def test_our_own_mistakes_keep_their_traceback(leave):
    with pytest.raises(AssertionError, match="ours"):
        leave(raising(AssertionError("ours")))


def test_all_commands_are_there_and_each_has_an_example():
    assert [command.callback.__name__ for command in app.registered_commands] == COMMANDS
    for name in COMMANDS:
        done = succeed(name, "--help")
        assert done.stderr == b""
        assert f"Example: synmt {name}".encode() in done.stdout


def test_the_help_of_a_command_breaks_lines_only_where_the_terminal_ends():
    # typer shows the line breaks of a docstring as they are
    for one in app.registered_commands:
        paragraphs = one.callback.__doc__.split("\n\n")
        assert len(paragraphs) > 2
        assert not any("\n" in paragraph for paragraph in paragraphs)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["trian"], "trian"),
        (["train"], "RECIPE is missing"),
        (["score", "--nope"], "--nope"),
        (["--nope"], "--nope"),
    ],
)
def test_wrong_usage_leaves_with_2(arguments, said):
    assert said in fail(2, *arguments)


def parsed(name, *arguments, **context):
    """Parse the arguments of a command; gives its values by name."""
    return (
        typer.main.get_command(app)
        .commands[name]
        .make_context(name, list(arguments), **context)
        .params
    )


@pytest.mark.parametrize(
    ("name", "arguments", "lacking", "following"),
    [
        ("parse", ["-o", "--overwrite", "text"], "-o", "--overwrite"),
        ("parse", ["--model", "-o", "trees"], "--model", "-o"),
        ("prepare", ["--data", "--dry-run", "recipe"], "--data", "--dry-run"),
        ("train", ["recipe", "--seeds", "--runs=here"], "--seeds", "--runs"),
        ("translate", ["--run", "--beam-size", "4"], "--run", "--beam-size"),
        ("translate", ["--run", "A", "B", "--device", "--threads", "2"], "--device", "--threads"),
        ("score", ["-r", "--metrics", "bleu", "text"], "-r", "--metrics"),
        ("analyze", ["--words", "--run", "A", "B"], "--words", "--run"),
        ("analyze", ["--compare", "--run", "A", "B"], "--compare", "--run"),
        ("analyze", ["--tokenize", "--cased"], "--tokenize", "--cased"),
        ("analyze", ["--plot", "--help"], "--plot", "--help"),
    ],
)
def test_the_name_of_the_next_option_is_no_value(name, arguments, lacking, following):
    with pytest.raises(UsageError) as caught:
        parsed(name, *arguments)
    assert (
        str(caught.value) == f"{lacking} has no value. Write one between {lacking} and {following}."
    )


@pytest.mark.parametrize(
    ("name", "arguments", "key", "value"),
    [
        ("parse", ["--model=--arcs"], "model", "--arcs"),
        ("parse", ["--package", "--unknown"], "package", "--unknown"),
        (
            "train",
            ["recipe", "--", "--data", "--runs"],
            "arguments",
            ["recipe", "--data", "--runs"],
        ),
        ("parse", ["-o", "-"], "output", Path("-")),
        ("parse", ["-o--arcs"], "output", Path("--arcs")),
        ("score", ["-s", "-", "-r", "a", "text"], "source", Path("-")),
        ("train", ["recipe", "--data", "x=--runs", "name=--data"], "data", Path("x=--runs")),
        ("translate", ["--run", "A", "B", "--beam-size", "4"], "run", [Path("A"), Path("B")]),
        ("analyze", ["--buckets", "-5", "--words", "all"], "buckets", "-5"),
    ],
)
def test_other_values_may_begin_with_a_dash(name, arguments, key, value):
    assert parsed(name, *arguments)[key] == value


def test_a_shell_completes_a_line_whose_options_have_no_value_yet():
    assert parsed("analyze", "--words", "--run", resilient_parsing=True)["words"] == "--run"
    assert parsed("analyze", "--top", "3", "--top", "4", resilient_parsing=True)["top"] is not None


def test_the_help_writes_brackets_once():
    for name in ("parse", "translate"):
        usage = succeed(name, "--help").stdout.decode()
        assert "[INPUT]" in usage
        assert "[[" not in usage


@pytest.mark.parametrize(
    ("option", "example"),
    [("--log-file", "--log-file FILE"), ("--quiet", "--quiet"), ("--debug", "--debug")],
)
def test_an_option_of_all_commands_after_the_command_is_shown_its_place(option, example):
    said = " ".join(fail(2, "parse", option).split())
    assert (
        f"No such option: {option}. Write it before the command: `synmt {example} parse …`" in said
    )


@pytest.mark.parametrize(
    ("arguments", "advice"),
    [
        (["train", "quickstart", "--max-steps", "100"], "without dashes: `training.max_steps=100`"),
        (
            ["train", "quickstart", "--training.max_steps=100"],
            "without dashes: `training.max_steps=100`",
        ),
        (
            ["prepare", "quickstart", "--dropout", "0.1"],
            "`vocabulary.dropout=0.1` or `model.dropout=0.1`",
        ),
    ],
)
def test_a_key_of_the_recipe_that_is_typed_like_an_option_is_shown_as_it_is_written(
    arguments, advice
):
    assert advice in " ".join(fail(2, *arguments).split())
    assert "written without dashes" not in fail(2, "parse", "--dropout", "0.1")


@pytest.mark.parametrize("command", ["parse", "score", "analyze"])
def test_a_help_page_of_80_columns_breaks_no_value(command, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    words = re.findall(r"[a-z]+", succeed(command, "--help").stdout.decode())
    assert {"official", "auto"} <= set(words)
    assert command == "parse" or {"markdown", "latex", "json"} <= set(words)


# each command waits in the first function that it calls
_FIRST = {
    "parse": ("synmt.parsing.parser", "StanzaParser", ["parse"]),
    "prepare": ("synmt.recipe.load", "load_recipe", ["prepare", "x.yaml"]),
    "train": ("synmt.recipe.load", "load_recipe", ["train", "x.yaml"]),
    "translate": ("synmt.run_folder", "find_run", ["translate"]),
    "score": ("synmt.evaluation.cache", "cached_score", ["score", "-r", "text", "other"]),
    "analyze": ("synmt.run_folder", "find_run", ["analyze", "--by-length"]),
}


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


@pytest.mark.parametrize("name", COMMANDS)
def test_ctrl_c_and_sigterm_end_every_command_with_130(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name_of_text in ("text", "other"):
        (tmp_path / name_of_text).write_text("A dog.\n" * 40)
    log = tmp_path / "log"
    process = Forked(wait_in, *_FIRST[name], log=log)
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
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, env=environment(), check=False
    )
    assert (done.returncode, done.stderr) == (130, b"synmt: interrupted\n")


def test_a_table_in_a_closed_pipe_is_no_error(tmp_path):
    for name in ("text", "other"):
        (tmp_path / name).write_text("A dog.\n" * 40)
    command, pipe = [sys.executable, "-m", "synmt", "score", "-r", "text", "other"], subprocess.PIPE
    with subprocess.Popen(
        command, cwd=tmp_path, env=environment(), stdout=pipe, stderr=pipe
    ) as process:
        process.stdout.close()
        errors = process.stderr.read()
    assert errors == b""
    assert process.returncode == 128 + signal.SIGPIPE


CLOSED = "synmt: error: standard output is closed.\n"
FULL = "synmt: error: output: No space left on device.\n"


@pytest.mark.parametrize(
    ("streams", "code", "said"),
    [
        (">&-", 1, CLOSED),
        ("<&- >&-", 1, CLOSED),
        (">/dev/full", 1, FULL),
        (">&- 2>&-", 1, ""),
        ("<&-", 0, ""),
        ("2>&-", 0, ""),
        ("2>/dev/full", 0, ""),
    ],
)
@pytest.mark.parametrize(
    "arguments", ["--help", "--version", "train --keys", "score --format tsv -r a a"]
)
def test_lost_output_is_an_error_and_lost_messages_are_not(
    tmp_path, arguments, streams, code, said
):
    (tmp_path / "a").write_text("A dog.\n" * 30)
    command = f"{shlex.join([sys.executable, '-m', 'synmt'])} {arguments} {streams}"
    # with this variable, Python would write at once, and not when it ends
    buffered = {name: value for name, value in environment().items() if name != "PYTHONUNBUFFERED"}
    done = subprocess.run(
        ["bash", "-c", command], cwd=tmp_path, env=buffered, capture_output=True, text=True
    )
    assert done.returncode == code
    assert bool(done.stdout) == (code == 0)
    assert done.stderr.endswith(said)
    assert "Exception" not in done.stderr


@pytest.mark.parametrize("streams", ["2>&-", "2>/dev/full", "2> >(true)"])
def test_wrong_usage_has_its_exit_code_without_its_message(streams):
    command = f"sleep 0.1; {shlex.join([sys.executable, '-m', 'synmt'])} train {streams}"
    assert subprocess.run(["bash", "-c", command], env=environment(), check=False).returncode == 2


@pytest.mark.parametrize("standard_input", ["<&-", "0>/dev/null"])
def test_a_standard_input_that_cannot_be_read_is_named(standard_input):
    command = (
        f"{shlex.join([sys.executable, '-m', 'synmt'])} score -r - {shlex.quote(__file__)} "
        f"{standard_input}"
    )
    done = subprocess.run(
        ["bash", "-c", command], env=environment(), capture_output=True, text=True
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("synmt: error: standard input is closed. Name a file")


def test_no_file_gets_the_number_of_a_closed_standard_output(tmp_path):
    script = """
import os
from contextlib import suppress
from synmt.files.streams import open_streams
open_streams()
with open("file", "w"), suppress(OSError):
    os.write(1, b"printed by a library")
"""
    command = f"{shlex.join([sys.executable, '-c', script])} >&-"
    assert (
        subprocess.run(
            ["bash", "-c", command], cwd=tmp_path, env=environment(), check=False
        ).returncode
        == 0
    )
    assert (tmp_path / "file").read_text() == ""


def test_quiet_says_nothing_and_warnings_are_said_all_the_same(monkeypatch, capfd):
    console.configure(quiet=True)
    console.remark("a remark")
    console.show_aside(Table(columns=[text_column("a")], rows=[["b"]]))
    with console.progress("work", 3, "lines", every=0) as advance:
        advance(3)
    console.warn("look")
    assert capfd.readouterr() == ("", "warning: look\n")


def test_progress_without_a_terminal_is_a_plain_line(monkeypatch, capfd):
    console.configure()
    with console.progress("work", 4, "lines", every=0) as advance:
        advance(1)
    assert capfd.readouterr().err.startswith("work: 1 of 4 lines, ")


@pytest.mark.parametrize(
    ("amounts", "seconds", "said"),
    [
        ([1], 12.3, "work: 1 of 2,200 lines, 0.1/s"),
        ([2, 2], 6, "work: 4 of 2,200 lines, 0.3/s"),
        ([2, 3], 2.5, "work: 5 of 2,200 lines, 1.0/s, 37 min left"),
        ([5], 60, "work: 5 of 2,200 lines, 0.1/s, 7 h 19 min left"),
        ([200], 10, "work: 200 of 2,200 lines, 20/s, 100 s left"),
        ([200], 20, "work: 200 of 2,200 lines, 10/s, 3 min left"),
        ([2200], 11, "work: 2,200 of 2,200 lines, 200/s"),
    ],
)
def test_progress_says_slow_rates_exactly_and_long_times_in_hours(
    monkeypatch, capfd, amounts, seconds, said
):
    console.configure()
    clock = [0.0]
    monkeypatch.setattr(progress, "time", SimpleNamespace(monotonic=lambda: clock[0]))
    with console.progress("work", 2200, "lines", every=0) as advance:
        for amount in amounts:
            clock[0] += seconds
            advance(amount)
    assert capfd.readouterr().err.splitlines()[-1] == said


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_in_an_import_that_swallows_it_ends_the_command_once_all_is_loaded(
    leave, tmp_path, monkeypatch, capfd, number
):
    (tmp_path / "greedy.py").write_text(
        "import os\ntry:\n"
        f"    os.kill(os.getpid(), {int(number)})\n"
        "    loaded = all(range(1, 1000))\n"
        "except BaseException:\n    loaded = False\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    found = []

    def go():
        import greedy

        found.append(greedy.loaded)
        threading.Event().wait(20)

    try:
        assert (leave(go), found) == (130, [True])
    finally:
        sys.modules.pop("greedy", None)
    assert capfd.readouterr().err == "synmt: interrupted\n"


def test_brackets_of_a_text_are_no_markup(monkeypatch, capfd):
    console.configure()
    table = Table(title="[bold]", columns=[text_column("word")], rows=[["[red]x[/]"]])
    console.show_reports({"a": Report(title="", parts=[table])})
    assert "[red]x[/]" in capfd.readouterr().out


def test_json_has_letters_as_they_are_and_null_for_infinity(capfd):
    console.print_json({"word": "größte", "limit": float("inf")})
    assert capfd.readouterr().out == '{\n  "word": "größte",\n  "limit": null\n}\n'


def test_verbose_shows_details_and_a_log_file_gets_everything_with_its_time(tmp_path):
    log = tmp_path / "synmt.log"
    done = synmt("-v", "--log-file", log, "translate", "--run", tmp_path / "none", text="A dog.\n")
    assert done.returncode == 1
    assert f"synmt {__version__}: -v --log-file" in done.stderr.decode().splitlines()[0]
    first, *_, last = log.read_text(encoding="utf-8").splitlines()
    assert re.match(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3} DEBUG synmt: synmt ", first)
    assert " ERROR synmt: " in last
    assert "error:" not in last
    # a second command adds to the file; without --verbose the details are only there
    again = synmt("--log-file", log, "translate", "--run", tmp_path / "none", text="A dog.\n")
    assert again.stderr.decode().count("\n") == 1
    assert log.read_text(encoding="utf-8").count(" DEBUG synmt: synmt ") == 2


def test_a_log_file_has_tables_and_wrong_usage_too(tmp_path, capsys):
    log = tmp_path / "synmt.log"
    console.configure(log_file=log)
    console.show_aside(
        Table(
            title="kept", columns=[text_column("split"), count_column("lines")], rows=[["train", 7]]
        )
    )
    assert capsys.readouterr().err.count("kept") == 1
    assert "kept\nsplit  lines\ntrain      7\n" in log.read_text(encoding="utf-8")
    console.configure()
    fail(2, "--log-file", log, "translate", "--nothing")
    assert "No such option: --nothing" in log.read_text(encoding="utf-8").splitlines()[-1]


def test_help_pages_show_no_types_of_python():
    for name in ([], ["train"], ["score"], ["analyze"], ["translate"], ["parse"], ["prepare"]):
        shown = succeed(*name, "--help").stdout.decode()
        assert not re.search(r"<(bool|int|str|float|list)", shown), name


def test_help_ends_as_other_commands_after_a_closed_pipe():
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        [sys.executable, "-m", "synmt", "--help"],
        stdout=writer,
        stderr=subprocess.PIPE,
        check=False,
    )
    os.close(writer)
    assert done.returncode == 128 + signal.SIGPIPE, done


def test_a_percentage_is_not_divided_between_lines():
    widths, _ = fit(["what", "share"], [["a-long-name-of-a-column", "0.000 %"]], 24)
    assert widths[1] == len("0.000 %")


def test_a_log_file_that_cannot_be_written_is_an_error_that_names_it(tmp_path):
    log = tmp_path / "no" / "folder.log"
    errors = fail(1, "--log-file", log, "score", "-r", "a", "b")
    assert f"{log}: cannot write: No such file or directory" in errors


EVIL = "a\x1b]0;title\x07\x9b31m\u202e[red]\x7f[/]"
SHOWN = r"a\x1b]0;title\x07\x9b31m\u202e[red]\x7f[/]"


@pytest.mark.parametrize(
    ("arguments", "shown"),
    [
        (["train", EVIL], SHOWN),
        (["train", "recipe.yaml"], SHOWN),
        (["train", "quickstart", f"{EVIL}=1"], SHOWN),
        (["train", "quickstart", f"model.{EVIL}=1"], SHOWN),
        (["train", "quickstart", f"training.max_steps='{EVIL[15:21]}'"], r"\u202e[red]"),
        (["train", "quickstart", f"syntax.variants=[{{name: '{EVIL[15:21]}'}}]"], r"\u202e[red]"),
        (["prepare", EVIL], SHOWN),
        (["train", "--list", EVIL], SHOWN),
        (["train", "--seeds", EVIL, "quickstart"], SHOWN),
        (["translate", "--run", EVIL], SHOWN),
        (["parse", EVIL, "--lang", "en", "--model", "compact"], SHOWN),
        (["parse", "--model", EVIL, "--lang", "en"], SHOWN),
        (["score", EVIL], SHOWN),
        (["score", "text", "-r", EVIL], SHOWN),
        (["score", "text", "-r", "text", "--metrics", EVIL], SHOWN),
        (["analyze", "--by-length", "--run", EVIL], SHOWN),
        ([EVIL], r"a\x1b]0;title\x07\x9b31m\u202e"),
        ([f"--{EVIL}"], r"a\x1b]0;title\x07\x9b31m\u202e"),
        (["score", f"--{EVIL}"], r"a\x1b]0;title\x07\x9b31m\u202e"),
        (["translate", "--beam-size", EVIL], r"a\x1b]0;title\x07\x9b31m\u202e"),
        (["score", "--format", EVIL], r"a\x1b]0;title\x07\x9b31m\u202e"),
        (["--log-file", f"{EVIL[:-4]}/{EVIL}", "score"], SHOWN[:-4]),
    ],
)
def test_control_characters_are_shown_in_errors(arguments, shown, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("text").write_text("a\n")
    Path("recipe.yaml").write_text(f'source: en\n"{SHOWN}": 1\n')
    done = synmt("--log-file", "log", *arguments)
    assert done.returncode in (1, 2)
    said = done.stderr.decode()
    # a box of typer's breaks long lines
    assert shown in "".join(part.strip(" │") for part in said.splitlines())
    for text in (said, Path("log").read_text(encoding="utf-8") if Path("log").exists() else ""):
        assert not [sign for sign in text if sign in "\x1b\x07\x9b\u202e\x7f"]


def test_remarks_warnings_and_tables_show_control_characters_and_a_pipe_gets_them_as_they_are(
    capsys, monkeypatch
):
    console.configure()
    console.remark(EVIL)
    console.warn(EVIL)
    table = Table(title=EVIL, columns=[text_column(EVIL), text_column("b")], rows=[[EVIL, EVIL]])
    report = {"a": Report(title=EVIL, parts=[table], notes=[EVIL])}
    console.show_aside(table)
    said = capsys.readouterr().err
    assert said.count(SHOWN) == 6
    for kind in ("text", "tsv"):
        console.show_reports(report, kind)
    assert EVIL in capsys.readouterr().out
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "200")
    for kind in ("text", "tsv"):
        console.show_reports(report, kind)
    with console.progress(EVIL, 2, "lines") as advance:
        advance(1)
    out, said = capsys.readouterr()
    assert out.count(SHOWN) == 9
    assert SHOWN in said
    for sign in "\x07\x9b\u202e\x7f":
        assert sign not in said + out
