"""Processes of this machine: what they log reaches the user, what is said when one of them is
killed, and how long they live."""

import errno
import logging
import multiprocessing.util
import os
import signal
import socket
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import suppress
from itertools import chain
from unittest.mock import Mock

import meeting
import pytest
from forked import wait_for
from refusing import assert_fails
from tiny import environment

from synmt.parallel import worker_log
from synmt.parallel.processes import in_processes, process_count, started_processes
from synmt.parallel.threads import threads

pytestmark = pytest.mark.journey
GUARD = "if __name__ == '__main__': "


@pytest.fixture
def done(tmp_path):
    """List what processes make of items, in order."""

    def run(work, state, items, workers=2, **how):
        return sorted(in_processes(work, state, iter(items), workers, where=tmp_path, **how))

    return run


def work(state, item):
    if item == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    logging.getLogger("synmt.somewhere").info("nobody asked")
    logging.getLogger("synmt.somewhere").warning("%s: the same for all", state)
    logging.getLogger("synmt.elsewhere").error("item %d", item)
    return item * 10


@pytest.mark.parametrize("workers", [1, 2])
def test_warnings_of_processes_are_logged_here_once_each(done, caplog, workers, capfd, monkeypatch):
    monkeypatch.setattr(worker_log, "_known", set())
    # a command that ran before in this process leaves its handler
    monkeypatch.setattr(logging.getLogger("synmt"), "handlers", [])
    assert done(work, "odd", range(4), workers) == [0, 10, 20, 30]
    said = [one.getMessage() for one in caplog.records if one.levelname != "INFO"]
    once = said if workers == 2 else set(said)
    assert sorted(once) == [*(f"item {number}" for number in range(4)), "odd: the same for all"]
    # the processes themselves write nothing
    assert capfd.readouterr().err == ""


def test_a_process_computes_with_one_thread(done, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    # of a command that ran in this process before
    monkeypatch.delenv("SYNMT_THREADS", raising=False)
    assert done(threads_here, None, range(3)) == [1, 1, 1]
    assert threads() == 7


def threads_here(state, item):
    return threads()


def test_processes_start_side_by_side_with_a_state_that_no_pipe_holds(done, monkeypatch):
    with socket.create_server(("127.0.0.1", 0)) as place, ThreadPoolExecutor() as pool:
        place.settimeout(20)
        monkeypatch.setenv("MEETING", str(place.getsockname()[1]))
        met = pool.submit(let_in, place, 2)
        assert done(meeting.length, b"x" * 10**6, [1, 2]) == [1000001, 1000002]
        assert met.result() == 2


def let_in(place, guests):
    """Let guests in when all have come, or no other comes; returns how many have come by then."""
    here = []
    with suppress(TimeoutError):
        while len(here) < guests:
            here.append(place.accept()[0])
    for guest in chain(here, (place.accept()[0] for _ in range(guests - len(here)))):
        guest.sendall(b"!")
        guest.close()
    return len(here)


def test_a_killed_process_is_a_message_with_a_remedy(done):
    assert_fails(r"was killed.*fewer processes: `--threads 1`", done, work, "odd", [1, "kill"])


def worker_and_sum(state, item):
    return os.getpid(), len(state) + item


def deaf(state, item):
    return signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, ())


def test_ctrl_c_while_processes_start_leaves_none_and_they_do_not_hear_it(done, monkeypatch):
    assert done(deaf, None, range(2)) == [True, True]
    submit = ProcessPoolExecutor.submit

    def submit_and_interrupt(*arguments):
        future = submit(*arguments)
        signal.raise_signal(signal.SIGINT)
        return future

    monkeypatch.setattr(ProcessPoolExecutor, "submit", submit_and_interrupt)
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt), started_processes(2):
        pass
    # another thread may have seen one end, and not have noted it yet
    wait_for(lambda: not multiprocessing.active_children(), 5)
    assert signal.getsignal(signal.SIGINT) == before
    assert signal.pthread_sigmask(signal.SIG_BLOCK, ()) == set()


def test_where_no_process_can_start_the_message_says_so(done, monkeypatch):
    refuse = Mock(side_effect=OSError(errno.EAGAIN, os.strerror(errno.EAGAIN)))
    monkeypatch.setattr(multiprocessing.util, "spawnv_passfds", refuse)
    message = r"no other process can start \(Resource temporarily unavailable\).*--workers 1"
    assert_fails(message, done, work, "odd", range(4))
    assert not multiprocessing.active_children()


def test_a_work_that_waits_for_its_caller_keeps_its_processes(done, tmp_path):
    with started_processes(2):
        waiting = in_processes(worker_and_sum, "", iter(range(40)), 2, where=tmp_path)
        first = next(waiting)
        meanwhile = done(worker_and_sum, "xyz", range(40))
        rest = [first, *waiting]
        after = done(worker_and_sum, "x", range(4))
    sums = [sum(number for _, number in found) for found in (rest, meanwhile, after)]
    assert sums == [sum(range(40)), sum(range(3, 43)), sum(range(1, 5))]
    workers, others, later = ({one for one, _ in some} for some in (rest, meanwhile, after))
    assert not workers & others
    assert later <= workers


def test_started_processes_do_one_work_after_the_other(done):
    with started_processes(2):
        found = done(worker_and_sum, "x" * 10**6, range(4))
        # one item: only one process reads this state, and the other one finds it before the next
        found += done(worker_and_sum, "y" * 10**5, [7])
        found += done(worker_and_sum, "", range(4))
        assert done(worker_and_sum, "", [1], 1) == [(os.getpid(), 1)]
        assert_fails("worker process was killed", done, work, "odd", ["kill"])
    sums = sorted(number for _, number in found)
    assert sums == [*range(4), 10**5 + 7, *range(10**6, 10**6 + 4)]
    workers = {worker for worker, _ in found}
    assert len(workers) <= 2
    assert os.getpid() not in workers
    assert not any(map(is_alive, workers))


def is_alive(process):
    with suppress(ProcessLookupError):
        os.kill(process, 0)
        return True
    return False


def test_started_processes_that_nobody_needed_end():
    # some of these may be ending
    others = {*multiprocessing.active_children()}
    with started_processes(2):
        assert len({*multiprocessing.active_children()} - others) == 2
    assert {*multiprocessing.active_children()} <= others


SCRIPT = """
import os
from pathlib import Path
from synmt.parallel.processes import in_processes
"""
SUMS = "print(sorted(in_processes(max, 1, iter(range(4)), 2, where=Path('here'))))"
LARGE = "list(in_processes(max, 'x' * 10**6, iter(['a', 'b']), 2, where=Path('here')))"


@pytest.mark.parametrize(
    ("code", "out", "said"),
    [
        (GUARD + SUMS, "[1, 1, 2, 3]\n", ""),
        # workers would start the script again
        (SUMS, "", f"what it does must be under `{GUARD.strip()}`"),
        # killed while it starts, with a large state
        (f"{GUARD}{LARGE}\nelse: os.kill(os.getpid(), 9)", "", "here: a worker process was killed"),
    ],
)
def test_a_script_that_is_not_guarded_or_is_killed_is_told_what_to_do(tmp_path, code, out, said):
    (tmp_path / "script.py").write_text(SCRIPT + code)
    command = [sys.executable, tmp_path / "script.py"]
    done = subprocess.run(command, capture_output=True, text=True, env=environment(), timeout=100)
    assert done.stdout == out
    # Python may still warn of what the workers have left
    assert said in done.stderr
    assert bool(said) == bool(done.stderr)


def test_the_remedy_leaves_one_process(monkeypatch):
    for cores, counts in (("1", [1, 1, 1]), ("3", [1, 2, 3])):
        monkeypatch.setenv("SYNMT_THREADS", cores)
        assert [process_count(items) for items in (0, 2, 5)] == counts
