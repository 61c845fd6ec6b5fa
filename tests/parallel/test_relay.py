"""What processes of this machine log reaches the user, and what is said when one of them is
killed."""

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

import meeting
import pytest
from tiny import environment

from synmt.cli import console
from synmt.errors import SynmtError
from synmt.parallel.processes import in_processes, process_count, started_processes
from synmt.parallel.threads import threads
from synmt.parallel.worker_log import LoggedResult, Relay, run_logged

pytestmark = pytest.mark.journey
GUARD = "if __name__ == '__main__': "


def work(state, item):
    if item == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    logging.getLogger("synmt.somewhere").info("nobody asked")
    logging.getLogger("synmt.somewhere").warning("%s: the same for all", state)
    logging.getLogger("synmt.elsewhere").error("item %d", item)
    return item * 10


@pytest.mark.parametrize("workers", [1, 2])
def test_warnings_of_processes_are_logged_here_once_each(
    caplog, tmp_path, workers, capfd, monkeypatch
):
    # a command that ran before in this process leaves its handler
    monkeypatch.setattr(logging.getLogger("synmt"), "handlers", [])
    assert sorted(in_processes(work, "odd", iter(range(4)), workers, where=tmp_path)) == [
        0,
        10,
        20,
        30,
    ]
    said = [(record.name, record.levelname, record.getMessage()) for record in caplog.records]
    once = said if workers == 2 else [line for line in dict.fromkeys(said) if line[1] != "INFO"]
    assert sorted(line for line in once if line[1] != "INFO") == [
        *[("synmt.elsewhere", "ERROR", f"item {number}") for number in range(4)],
        ("synmt.somewhere", "WARNING", "odd: the same for all"),
    ]
    # the processes themselves write nothing
    assert capfd.readouterr().err == ""


class _Warning:
    def __reduce__(self):
        return _warned, ()


def _warned():
    logging.getLogger("synmt.somewhere").warning("the model that is loaded is odd")
    return "even"


def test_what_processes_say_about_the_model_that_they_load_is_shown_once_if_this_one_has_said_it(
    tmp_path, capfd, monkeypatch
):
    monkeypatch.setattr(logging.getLogger("synmt"), "handlers", [])
    console.configure()
    for known in (0, 1):
        assert sorted(in_processes(work, _Warning(), iter(range(4)), 2, where=tmp_path)) == [
            0,
            10,
            20,
            30,
        ]
        said = capfd.readouterr().err.splitlines()
        assert said.count("warning: the model that is loaded is odd") == 1 - known
        assert said.count("warning: even: the same for all") == 1 - known
    assert not any("odd" in line for line in said)


def test_a_process_computes_with_one_thread(tmp_path, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    # of a command that ran in this process before
    monkeypatch.delenv("SYNMT_THREADS", raising=False)
    assert list(in_processes(threads_here, None, iter(range(3)), 2, where=tmp_path)) == [1, 1, 1]
    assert threads_here(None, 0) == 7


def threads_here(state, item):
    return threads()


def test_processes_start_side_by_side_with_a_state_that_no_pipe_holds(tmp_path, monkeypatch):
    with socket.create_server(("127.0.0.1", 0)) as place, ThreadPoolExecutor() as pool:
        place.settimeout(20)
        monkeypatch.setenv("MEETING", str(place.getsockname()[1]))
        met = pool.submit(let_in, place, 2)
        done = in_processes(meeting.length, b"x" * 10**6, iter([1, 2]), 2, where=tmp_path)
        assert (sorted(done), met.result()) == ([1000001, 1000002], 2)


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


def test_a_killed_process_is_a_message_with_the_remedy_of_the_command(tmp_path):
    with pytest.raises(
        SynmtError,
        match=r"was killed.*fewer processes \(`--threads 1`\): what is finished is kept\.$",
    ):
        list(in_processes(work, "odd", iter([1, "kill"]), 2, where=tmp_path))
    with pytest.raises(SynmtError, match=r"was killed.*fewer processes \(`--threads 1`\)\.$"):
        list(in_processes(work, "odd", iter([1, "kill"]), 2, where=tmp_path, keeps=False))


def worker_and_sum(state, item):
    return os.getpid(), len(state) + item


def deaf(state, item):
    return signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, ())


def test_ctrl_c_while_processes_start_leaves_none_and_they_do_not_hear_it(tmp_path, monkeypatch):
    assert list(in_processes(deaf, None, iter(range(2)), 2, where=tmp_path)) == [True, True]
    submit = ProcessPoolExecutor.submit

    def submit_and_interrupt(*arguments):
        future = submit(*arguments)
        signal.raise_signal(signal.SIGINT)
        return future

    monkeypatch.setattr(ProcessPoolExecutor, "submit", submit_and_interrupt)
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt), started_processes(2):
        pass
    assert not multiprocessing.active_children()
    assert (signal.getsignal(signal.SIGINT), signal.pthread_sigmask(signal.SIG_BLOCK, ())) == (
        before,
        set(),
    )


def test_where_no_process_can_start_the_message_says_so(tmp_path, monkeypatch):
    def refuse(*_):
        raise OSError(errno.EAGAIN, os.strerror(errno.EAGAIN))

    monkeypatch.setattr(multiprocessing.util, "spawnv_passfds", refuse)
    message = r"no other process can start \(Resource temporarily unavailable\).*"
    with pytest.raises(SynmtError, match=f"{message}--threads 1"):
        list(in_processes(work, "odd", iter(range(4)), 2, where=tmp_path))
    with pytest.raises(SynmtError, match=f"{message}--workers 1"):
        list(in_processes(work, "odd", iter(range(4)), 2, where=tmp_path, fewer="`--workers 1`"))
    assert not multiprocessing.active_children()


def test_a_work_that_waits_for_its_caller_keeps_its_processes(tmp_path):
    with started_processes(2):
        waiting = in_processes(worker_and_sum, "", iter(range(40)), 2, where=tmp_path)
        first = next(waiting)
        meanwhile = list(in_processes(worker_and_sum, "xyz", iter(range(40)), 2, where=tmp_path))
        rest = [first, *waiting]
        after = list(in_processes(worker_and_sum, "x", iter(range(4)), 2, where=tmp_path))
    assert sorted(number for _, number in rest) == list(range(40))
    assert sorted(number for _, number in meanwhile) == list(range(3, 43))
    assert sorted(number for _, number in after) == [1, 2, 3, 4]
    assert not {worker for worker, _ in rest} & {worker for worker, _ in meanwhile}
    assert {worker for worker, _ in after} <= {worker for worker, _ in rest}


def test_started_processes_do_one_work_after_the_other(tmp_path):
    with started_processes(2):
        first = list(in_processes(worker_and_sum, "x" * 10**6, iter(range(4)), 2, where=tmp_path))
        # one item: only one process reads this state, and the other one finds it before the next
        second = list(in_processes(worker_and_sum, "y" * 10**5, iter([7]), 2, where=tmp_path))
        third = list(in_processes(worker_and_sum, "", iter(range(4)), 2, where=tmp_path))
        alone = list(in_processes(worker_and_sum, "", iter([1]), 1, where=tmp_path))
        with pytest.raises(SynmtError, match="worker process was killed"):
            list(in_processes(work, "odd", iter(["kill"]), 2, where=tmp_path))
    assert [sorted(number for _, number in done) for done in (first, second, third, alone)] == [
        [10**6, 10**6 + 1, 10**6 + 2, 10**6 + 3],
        [10**5 + 7],
        [0, 1, 2, 3],
        [1],
    ]
    workers = {worker for worker, _ in first + second + third}
    assert len(workers) <= 2
    assert os.getpid() not in workers
    assert alone[0][0] == os.getpid()
    assert not any(map(is_alive, workers))


def is_alive(process):
    with suppress(ProcessLookupError):
        os.kill(process, 0)
        return True
    return False


def test_started_processes_that_nobody_needed_end(tmp_path):
    others = multiprocessing.active_children()
    with started_processes(2):
        assert len(multiprocessing.active_children()) == len(others) + 2
    assert multiprocessing.active_children() == others


class _Unreadable:
    def __reduce__(self):
        return int, ("no number",)


def test_a_process_that_cannot_read_its_state_was_not_killed(tmp_path):
    with pytest.raises(SynmtError, match="could not start; see its message above"):
        list(in_processes(work, _Unreadable(), iter([1]), 2, where=tmp_path))


@pytest.mark.parametrize(
    ("start", "said"), [("", "could not start; see its message above"), (GUARD, None)]
)
def test_a_script_that_its_workers_would_start_again_is_told_what_to_do(tmp_path, start, said):
    lines = [
        "from pathlib import Path",
        "from synmt.parallel.processes import in_processes",
        f"{start}print(sorted(in_processes(max, 1, iter(range(4)), 2, where=Path('here'))))",
    ]
    (tmp_path / "script.py").write_text("\n".join(lines))
    command = [sys.executable, tmp_path / "script.py"]
    done = subprocess.run(command, capture_output=True, text=True, env=environment(), timeout=100)
    if said:
        # Python may still warn of what the workers have left
        assert any(said in line and GUARD.strip() in line for line in done.stderr.splitlines())
    else:
        assert (done.stdout, done.stderr) == ("[1, 1, 2, 3]\n", "")


def test_a_process_that_is_killed_while_it_starts_is_told_however_large_the_state(tmp_path):
    lines = [
        "import os",
        "from pathlib import Path",
        "from synmt.parallel.processes import in_processes",
        f"{GUARD}list(in_processes(max, 'x' * 10**6, iter(['a', 'b']), 2, where=Path('here')))",
        "else: os.kill(os.getpid(), 9)",
    ]
    (tmp_path / "script.py").write_text("\n".join(lines))
    command = [sys.executable, tmp_path / "script.py"]
    done = subprocess.run(command, capture_output=True, text=True, env=environment(), timeout=60)
    assert "SynmtError: here: a worker process was killed" in done.stderr


def test_the_remedy_leaves_one_process(monkeypatch):
    monkeypatch.setenv("SYNMT_THREADS", "1")
    assert process_count(5) == 1
    monkeypatch.setenv("SYNMT_THREADS", "3")
    assert [process_count(items) for items in (0, 2, 5)] == [1, 2, 3]


def test_what_was_collected_is_not_collected_again(caplog):
    logged = run_logged(lambda item: work("odd", item), 1)
    assert logged == LoggedResult(
        10, (("synmt.somewhere", 30, "odd: the same for all"), ("synmt.elsewhere", 40, "item 1"))
    )
    caplog.clear()
    logging.getLogger("synmt").warning("later")
    relay = Relay()
    assert [relay.result_of(logged), relay.result_of(logged)] == [10, 10]
    assert [record.getMessage() for record in caplog.records] == [
        "later",
        "odd: the same for all",
        "item 1",
    ]
