"""Files of many lines are translated and scored by processes of this machine: the same bytes, and nothing is left."""

import os
import pickle
import signal
from itertools import cycle, islice
from multiprocessing import active_children

import pytest
from forked import Piped
from small_run import PASCAL, TEXT, flat_conllu, make_run
from tiny import fail, succeed, write_lines

from synmt.decode import travelling
from synmt.decode.translator import Translator
from synmt.decode.travelling import CopiedTranslator, elsewhere
from synmt.parallel import processes

pytestmark = pytest.mark.journey

COUNT = 130
"""A batch of one sentence makes windows of 16 lines, and two processes need four windows each."""
LINES = [f"{line} {number}" for number, line in enumerate(islice(cycle([*TEXT[:3], ""]), COUNT))]


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """Make a run that reads trees, a text, and its trees."""
    folder = tmp_path_factory.mktemp("many")
    make_run(folder / "run", PASCAL, max_pieces=40)
    write_lines(folder / "text", LINES)
    (folder / "trees").write_text(flat_conllu(LINES))
    return folder


@pytest.fixture
def works(monkeypatch):
    """Record how many processes each work has."""
    counts, made = [], processes._Pool
    monkeypatch.setattr(processes, "_Pool", lambda count: counts.append(count) or made(count))
    return counts


def run(place, command, *options, threads):
    done = succeed(command, *options, "--batch-size", 1, "--threads", threads, cwd=place)
    return done.stdout, done.stderr.splitlines()[-1:]


@pytest.mark.parametrize(
    "options", [["--parses", "trees", "--alignments", "pairs"], ["--sample", "--seed", 1, "--n-best", 2, "--jsonl"]]
)
def test_processes_write_what_one_writes(place, works, options):
    if "--jsonl" in options:
        write_lines(place / "lines", [f'{{"source": "{line}"}}' for line in LINES])
        options = ["lines", *options]
    else:
        options = ["text", *options]
    options += ["--run", "run"]
    alone = run(place, "translate", *options, threads=1)
    assert not works
    assert run(place, "translate", *options, threads=2) == alone
    assert works == [2]
    assert alone[0].count(b"\n") >= COUNT


def test_processes_score_what_one_scores(place, works):
    options = ["--model", "run", "--source", "text", "--target", "text", "--parses", "trees", "--json"]
    alone = run(place, "score", *options, threads=1)
    assert not works
    assert run(place, "score", *options, threads=2) == alone
    assert works == [2]


def test_few_lines_a_pipe_or_a_gpu_need_no_processes(place, monkeypatch):
    monkeypatch.setenv("SYNMT_THREADS", "3")
    translator = Translator.load(place / "run", batch_size=2)

    def chosen(lines):
        return elsewhere(translator, [place / "run"], {"batch_size": 2}, lines=lines)

    assert translator.window == 16
    assert chosen(None) is chosen(127) is None
    assert [chosen(lines).processes for lines in (128, 191, 192, 10_000)] == [2, 2, 3, 3]
    translator.device = type("Device", (), {"type": "cuda"})()
    assert chosen(10_000) is None


def test_a_process_that_is_killed_is_reported_and_the_output_stays_as_it_was(place, monkeypatch):
    (place / "out").write_text("old\n")
    monkeypatch.setattr(travelling, "_translate", _die)
    error = fail(1, "translate", "text", "-o", "out", "--run", "run", "--batch-size", 1, "--threads", 2, cwd=place)
    assert "run: a worker process was killed, most likely for lack of memory" in error
    # nothing of the output is kept
    assert error.rstrip().endswith("with fewer processes (`--threads 1`).")
    assert (place / "out").read_text() == "old\n"
    # the thread that has waited for a process may not have noted its end yet
    assert not [child for child in active_children() if exists(child.pid)]


def exists(process):
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


def _die(translator, window):
    os.kill(os.getpid(), signal.SIGKILL)


def test_control_c_ends_the_processes_too(place):
    many = write_lines(place / "many", LINES * 200)
    with Piped("translate", many, "--run", place / "run", "--batch-size", 1, "--threads", 2) as process:
        assert process.stdout.readline()
        process.signal(signal.SIGINT)
        # it ends when the last process that could write into it has ended
        assert process.stderr.read().endswith(b"synmt: interrupted\n")
        assert process.wait() == 130


def test_what_a_process_unpickles_is_a_translator(place):
    copied = CopiedTranslator((place / "run",), {"beam_size": 3, "device": "cpu"}, 2)
    translator = pickle.loads(pickle.dumps(copied))
    assert isinstance(translator, Translator)
    assert translator.options.beam_size == 3
