"""Files of many lines are translated and scored by processes of this machine: the same bytes, and
nothing is left."""

import os
import signal
import sys
import threading
from functools import cache
from itertools import cycle, islice
from multiprocessing import active_children
from types import SimpleNamespace
from unittest.mock import Mock

import numpy as np
import pytest
from forked import Piped, wait_for
from in_a_worker import die, warn
from small_run import PASCAL, TEXT, flat_conllu, make_run
from tiny import fail, succeed, write_lines

from synmt.decode import remote
from synmt.decode.remote import shared_translator
from synmt.decode.translator import Translator
from synmt.evaluation.model_scores import PairOptions, score_files
from synmt.parallel import processes, worker_log
from synmt.parallel.processes import Pool

pytestmark = pytest.mark.journey

COUNT = 52
"""A batch of one sentence makes windows of 16 lines: two for each of two processes."""
SHORT = {"batch_size": 4, "max_length_ratio": 0.25, "max_length_extra": 2}
LINES = [f"{line} {number}" for number, line in enumerate(islice(cycle([*TEXT[:3], ""]), COUNT))]
TRANSLATE = "translate text --run run --parses trees"


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """Make a run that reads trees, a text, and its trees."""
    folder = tmp_path_factory.mktemp("many")
    make_run(folder / "run", PASCAL, max_pieces=40, decoding=SHORT)
    for name in ("text", "target"):
        write_lines(folder / name, LINES)
    write_lines(folder / "lines", (f'{{"source": "{line}"}}' for line in LINES))
    (folder / "trees").write_text(flat_conllu(LINES))
    return folder


@pytest.fixture(scope="module")
def started(place):
    """Start two processes there, which load torch once for several works."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(place)
        pool = Pool(2)
    yield pool
    pool.end()


@pytest.fixture
def works(monkeypatch, request):
    """Record how many processes each work has, and how they start; those that load the models have
    started already."""
    pools = []

    def find(workers, **inherited):
        pools.append((workers, "fork" if inherited else "spawn"))
        if inherited:
            return Pool(workers, **inherited)
        pool = request.getfixturevalue("started")
        return SimpleNamespace(run=pool.run, end=int, busy=False)

    for module in (processes, remote):
        monkeypatch.setattr(module, "Pool", find)
    return pools


@pytest.fixture(params=["fork", "spawn"])
def start(request, monkeypatch):
    """Let processes be copies, or load the models; two are enough for a text of a few windows."""
    if request.param == "fork" and sys.platform != "linux":
        pytest.skip("processes are copied on Linux only")
    # a worker of the tests has threads of its own, which hold no lock that a copy needs
    monkeypatch.setattr(remote, "can_fork", lambda: request.param == "fork")
    monkeypatch.setattr(remote, "_LINES", COUNT // 2)
    monkeypatch.setattr(remote, "_WINDOWS", 1)
    return 2, request.param


def run(place, command, threads, made=succeed):
    return made(*command.split(), "--batch-size", 1, "--threads", threads, cwd=place)


@cache
def written(place, command, threads, *start):
    """Run a command, by one process once for both ways in which several start."""
    done = run(place, command, threads)
    return done.stdout, done.stderr.splitlines()[-1:]


@pytest.mark.parametrize(
    "command",
    [
        f"{TRANSLATE} --alignments pairs",
        "translate lines --run run --sample --seed 1 --n-best 2 --jsonl",
        "score --model run --source text --target target --parses trees --json",
    ],
)
def test_processes_write_what_one_writes(place, works, start, command):
    alone = written(place, command, 1)
    assert works == []
    assert written(place, command, 2, *start) == alone
    assert works == [start]


def test_two_models_score_by_turns(place, works, started, monkeypatch):
    # there are copies for the first model; the second one finds threads
    forks = iter([True, False])
    monkeypatch.setattr(remote, "can_fork", lambda: next(forks, False))
    monkeypatch.setattr(remote, "_LINES", COUNT // 2)
    monkeypatch.setattr(remote, "_WINDOWS", 1)
    before = {*active_children()}
    make_run(place / "other", max_pieces=40)
    files = {"source": place / "text", "target": place / "target", "parses": place / "trees"}
    pairs = [PairOptions(model=place / name, **files, batch_size=1) for name in ("run", "other")]
    scores = []
    for threads in "21":
        monkeypatch.setenv("SYNMT_THREADS", threads)
        turns = zip(*map(score_files, pairs), strict=True)
        scores.append([[one.log_probability for one in turn] for turn in turns])
    assert works == [(2, "fork"), (2, "spawn")]
    there, alone = np.array(scores, dtype=float)
    assert len(np.unique(alone[~np.isnan(alone)].round(3))) > COUNT
    np.testing.assert_allclose(there, alone, atol=1e-4)
    assert {*active_children()} == before


def test_lines_of_a_pipe_do_not_wait_until_a_cluster_has_enough(tmp_path, monkeypatch):
    make_run(tmp_path / "run", parser=False)
    os.mkfifo(tmp_path / "pipe")
    translate_here, first, sizes, came = remote.translate_windows, threading.Event(), [], []

    def translate(shared, windows, finished):
        for window in windows:
            sizes.append(len(window))
            first.set()
            yield from translate_here(shared, [window])

    def write():
        with open(tmp_path / "pipe", "w") as out:
            print(TEXT[0], TEXT[1], sep="\n", file=out, flush=True)
            came.append(first.wait(30))
            print(TEXT[2], file=out)

    monkeypatch.setattr(remote, "translate_windows", translate)
    writer = threading.Thread(target=write)
    writer.start()
    done = succeed("translate", "pipe", "--run", "run", cwd=tmp_path)
    writer.join()
    assert (came, sizes, done.stdout.count(b"\n")) == ([True], [2, 1], 3)


@pytest.mark.parametrize(("forks", "enough"), [(True, 256), (False, 128)])
def test_few_lines_a_pipe_or_a_gpu_need_no_processes(place, monkeypatch, forks, enough):
    monkeypatch.setenv("SYNMT_THREADS", "3")
    monkeypatch.setattr(remote, "can_fork", lambda: forks)
    monkeypatch.setattr(remote, "Pool", lambda workers, inherited: Mock())
    translator = Translator.load(place / "run", batch_size=2)

    def chosen(lines):
        with shared_translator(translator, [place / "run"], {}, lines=lines) as other:
            return other.processes, other.window

    assert translator.window == 16
    assert chosen(None) == chosen(enough - 1) == (1, 16)
    more = enough * 3 // 2
    assert [chosen(lines) for lines in (enough, more - 1)] == [(2, 16)] * 2
    assert [chosen(lines) for lines in (more, 10_000)] == [(3, 16)] * 2
    # all processes have as many windows, and windows differ by one line at most
    assert chosen(400) == (3, 15 if forks else 16)
    translator.device = SimpleNamespace(type="cuda")
    assert chosen(10_000) == (1, 16)


def test_a_process_with_another_thread_is_not_copied():
    timer = threading.Timer(300, int)
    timer.start()
    try:
        assert not processes.can_fork()
    finally:
        timer.cancel()
        timer.join()


@pytest.mark.usefixtures("works", "start")
def test_what_processes_warn_of_is_logged_once(place, tmp_path, monkeypatch):
    monkeypatch.setattr(remote, "_translate", warn)
    # what this process has shown before
    worker_log._known.clear()
    # a copy of this process has the file open, too
    run(place, f"--log-file {tmp_path}/log {TRANSLATE}", 2)
    assert (tmp_path / "log").read_text().count("odd") == 1


def test_a_process_that_is_killed_is_reported_and_the_output_stays_as_it_was(
    place, monkeypatch, start
):
    before = {*active_children()}
    (place / "out").write_text("old\n")
    monkeypatch.setattr(remote, "_translate", die)
    error = run(place, f"{TRANSLATE} -o out", 2, lambda *typed, **how: fail(1, *typed, **how))
    assert "run: a worker process was killed, most likely for lack of memory" in error
    # windows that are finished are on disk
    assert "fewer processes: `--threads 1`" in error
    assert (place / "out").read_text() == "old\n"
    # the thread that has waited for a process may not have noted its end yet
    wait_for(lambda: {*active_children()} <= before, 5)


def test_control_c_ends_the_processes_too(tmp_path):
    many = write_lines(tmp_path / "many", LINES * 400)
    # it would parse for seconds before its first line
    run = make_run(tmp_path / "run", parser=False, max_pieces=40, decoding=SHORT)
    options = f"--run {run.folder} --batch-size 1 --threads 2"
    with Piped("translate", many, *options.split()) as process:
        assert process.stdout.readline()
        process.signal(signal.SIGINT)
        # it ends when the last process that could write into it has ended
        assert process.stderr.read().endswith(b"synmt: interrupted\n")
        assert process.wait() == 130
