"""A cluster gives the files of one process, byte for byte, whichever of its processes die."""

import errno
import json
import re
import shutil
import sys
import threading
from _thread import interrupt_main
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from unittest.mock import Mock

import pytest
from cases import cases
from clusters import FiledParser, LocalCluster, wait_for, worker_of
from preparing import CHAIN, corpus_of, recipe_of, trees_for
from refusing import assert_fails
from small_run import make_run
from tiny import PASCAL, fail, snapshot, succeed, write_lines

pytest.importorskip("synmt.cluster")

from synmt.cluster import dask as clusters
from synmt.cluster.sent_items import LongWork
from synmt.cluster.worker_errors import incapable
from synmt.data import encoding, filtering
from synmt.data.annotate import annotate
from synmt.data.prepare import prepare
from synmt.errors import SynmtError
from synmt.parallel import processes
from synmt.parallel.engine import cluster_in_use, using_cluster
from synmt.parsing.bulk import parse_file

pytestmark = pytest.mark.journey
# those of Dask and tornado are theirs
ignoring = pytest.mark.filterwarnings("ignore")

LINES = [f"line {number % 31} of {number}" for number in range(60)] + ["", "line 3 of 3", "the end"]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    pytest.importorskip("distributed")
    made = LocalCluster(tmp_path_factory.mktemp("cluster"))
    yield made
    made.stop()


@pytest.fixture
def text(tmp_path):
    (tmp_path / "text").write_text("".join(f"{line}\n" for line in LINES))
    (tmp_path / "model").write_text("a model")
    return tmp_path / "text"


def parsing(text, name, slow=0.0, **options):
    """Parse in shards of three lines: 21 of them."""
    parser = FiledParser(text.with_name("model"), text.with_name(f"{name}.log"), slow)
    return parse_file(text, text.with_name(name), parser, shard_lines=3, **options)


PARSED = ["parsed"] * 21 + ["finished"]


def trees(text, name):
    return [text.with_name(f"{name}{end}").read_bytes() for end in ("", ".json")]


def logged(text):
    """List where the model of the parser was, and what it has parsed."""
    lines = text.with_name("there.log").read_text().splitlines()
    return [line.split(" ", 1) for line in lines]


def client_of(cluster):
    from distributed import Client

    return Client(scheduler_file=cluster.file, set_as_default=False)


def wait_for_all(cluster):
    """Wait until the scheduler knows each worker; gives the addresses of those without a GPU."""
    with client_of(cluster) as client:
        wait_for(lambda: len(client.nthreads()) == len(cluster.workers))
        workers = client.scheduler_info()["workers"].items()
    return {address for address, state in workers if not state["resources"]}


def lasting():
    """Make long work whose lost items are said."""
    return LongWork(threading.Event(), lost=lambda item, error: f"{item}: {error}")


@contextmanager
def alone(folder, seconds):
    """Start a cluster without workers for work that must end in time."""
    pytest.importorskip("distributed")
    made, too_long = LocalCluster(folder), threading.Timer(seconds, interrupt_main)
    try:
        made.complete(0)
        too_long.start()
        yield made
    finally:
        too_long.cancel()
        made.stop()


@ignoring
def test_trees_are_the_same_if_a_worker_is_killed_and_another_one_joins(cluster, text, caplog):
    list(parsing(text, "here", workers=1))
    with using_cluster(cluster.complete(2)):
        states = []
        for step in parsing(text, "there", slow=0.1):
            states.append(step.state)
            if len(states) == 4:
                cluster.workers[0].kill()
                cluster.join()
    assert states == PARSED
    assert trees(text, "there") == trees(text, "here")
    for remark in ("the parser that is filed is slow", "a copy of the parser is loaded"):
        assert caplog.text.count(remark) == 1
    # the workers read their own copies of the model
    assert {place for place, _ in logged(text)} == {"models"}


def wait_for_two(items, **options):
    """Wait as if two items always ended in the same moment."""
    if (finished := wait(items, **options)[0]) and (others := items.keys() - finished):
        wait(others, timeout=1, return_when=options["return_when"])
    return wait(items, timeout=0)


@ignoring
@pytest.mark.parametrize("waits", [wait, wait_for_two])
def test_work_waits_for_a_worker_if_the_last_one_is_killed_and_says_so_once(
    waits, cluster, text, monkeypatch, caplog
):
    monkeypatch.setattr(processes, "wait", waits)
    remark = "cluster: no worker is left; the work waits for one"
    with using_cluster(cluster.complete(1)), ThreadPoolExecutor() as pool:
        steps = parsing(text, "there", slow=0.02)
        first = next(steps)
        for worker in cluster.workers:
            worker.kill()
        told = pool.submit(wait_for, lambda: remark in caplog.text)
        told.add_done_callback(lambda _: cluster.join())
        assert [step.state for step in (first, *steps)] == PARSED
    assert caplog.text.count(remark) == 1


@ignoring
def test_after_the_death_of_the_scheduler_the_same_call_goes_on(cluster, text, monkeypatch):
    monkeypatch.setattr(clusters, "_WAIT", "1500ms")
    list(parsing(text, "here", workers=1))
    message = r"connection to the scheduler is lost.*same command again"
    with using_cluster(cluster.complete(1)):
        steps = parsing(text, "there", slow=0.1)
        for _ in range(4):
            next(steps)
        cluster.scheduler.kill()
        assert_fails(message, list, steps)
    finished = {int(path.stem) for path in text.with_name("there.parts").glob("*.json")}
    text.with_name("there.log").unlink()
    # on a busy machine, a new scheduler takes longer to answer
    monkeypatch.undo()
    with using_cluster(cluster.complete(1)):
        states = [step.state for step in parsing(text, "there")]
    assert states.count("kept") == len(finished) >= 4
    assert trees(text, "there") == trees(text, "here")
    again = {line for _, line in logged(text) if LINES.count(line) == 1}
    assert not finished & {LINES.index(line) // 3 + 1 for line in again}


@ignoring
def test_a_run_that_is_left_leaves_nothing_on_the_cluster(cluster, text):
    with using_cluster(cluster.complete(1)):
        steps = parsing(text, "there", slow=0.1)
        next(steps)
        steps.close()
    with client_of(cluster) as client:
        wait_for(lambda: not client.run_on_scheduler(lambda dask_scheduler: dask_scheduler.tasks))


@ignoring
def test_a_corpus_is_the_same_if_a_worker_is_killed_while_it_is_encoded_and_annotated(
    cluster, tmp_path, monkeypatch
):
    monkeypatch.setattr(encoding, "SHARD_LINES", 4)
    monkeypatch.setattr(filtering, "_CHUNK", 7)
    monkeypatch.setattr(filtering, "_FEW", 0)
    corpus = corpus_of(tmp_path / "text", [(line or "x", f"{line} !") for line in LINES[-32:]])
    parses = trees_for(corpus, tmp_path)
    recipe = recipe_of(vocabulary={"kind": "word", "size": 100, "joint": False})

    def made(folder):
        prepare(recipe, corpus, folder)
        annotate(folder, corpus, parses, parser=CHAIN)
        return snapshot(folder)

    @contextmanager
    def killing(what, total, unit):
        done = []

        def advance(amount):
            done.append(amount)
            if sum(done) == 12 and what in ("prepare: train", "prepare: trees of train"):
                cluster.workers[0].kill()
                cluster.complete(2)

        yield advance

    expected = made(tmp_path / "here")
    monkeypatch.setattr("synmt.reporting.progress._display", killing)
    with using_cluster(cluster.complete(2)):
        assert made(tmp_path / "there") == expected


@ignoring
def test_the_compact_parser_travels_and_its_trees_are_those_of_this_machine(cluster, tmp_path):
    write_lines(tmp_path / "text", ["The monkey eats a banana.", "A girl sleeps."] * 3)
    parse = ("parse", "text", "--device", "cpu", "-o")
    succeed(*parse, "here", "--workers", 1, cwd=tmp_path)
    on = ("--cluster", cluster.complete(1), "--shard-lines", 1)
    done = succeed(*parse, "there", *on, cwd=tmp_path)
    assert b"cluster: tcp://" in done.stderr
    assert (tmp_path / "there").read_bytes() == (tmp_path / "here").read_bytes()


@ignoring
def test_long_work_goes_to_workers_with_a_gpu(cluster, tmp_path):
    cluster.complete(1)
    cluster.join("", "--resources", "GPU=1")
    plain, long = wait_for_all(cluster), lasting()
    with using_cluster(cluster.file):
        run = partial(cluster_in_use().run, worker_of, None, where=tmp_path)
        assert not plain & set(run(iter(range(6)), long=long))
        assert plain & set(run(iter(range(12)), long=replace(long, gpu=False)))
    cluster.workers.pop().kill()


@ignoring
def test_what_kills_every_worker_is_an_error_on_one_worker_that_starts_again_each_time(tmp_path):
    few = {"allowed_failures": 1}
    message = f"{tmp_path}: 2 workers died while they worked on the same shard"
    with alone(tmp_path, 120) as cluster, using_cluster(cluster.file):
        with client_of(cluster) as client:
            # by default three, and each worker that starts needs a second
            client.run_on_scheduler(lambda dask_scheduler: vars(dask_scheduler).update(few))
        cluster.join(nanny=True)
        run = partial(cluster_in_use().run, worker_of, None, where=tmp_path)
        lost, worked = sorted(run(iter([13, 1]), long=lasting()))
        assert_fails(message, list, run(iter([13])))
    assert lost.startswith(f"13: {message}")
    assert worked.startswith("tcp://")


@pytest.mark.parametrize(
    "error", [ModuleNotFoundError("no synmt"), Exception('ModuleNotFoundError("no synmt")')]
)
def test_a_worker_without_synmt_is_named_with_the_remedy(error):
    message = r"worker tcp://a:1: .*cannot load synmt.*no synmt.*Install the same synmt there"
    assert re.match(message, str(incapable("tcp://a:1", error)))


@ignoring
def test_long_work_that_waits_for_a_worker_is_given_up_when_it_has_to_stop(tmp_path):
    long = lasting()
    with alone(tmp_path, 60) as cluster, using_cluster(cluster.file):
        threading.Timer(0.1, long.stop.set).start()
        assert not [*cluster_in_use().run(worker_of, None, iter([1]), where=tmp_path, long=long)]


@ignoring
def test_a_worker_that_cannot_work_is_named_with_the_remedy(cluster, text):
    cluster.complete(1)
    text.write_text("a\nout of memory\n")
    memory = r"worker tcp://.*out of memory.*more memory"
    with using_cluster(cluster.file):
        assert_fails(memory, list, parsing(text, "there"))
    text.write_text("a\n")
    old = cluster.join("old_worker.py")
    wait_for_all(cluster)
    versions = r"worker tcp://127\.0\.0\.1:.*synmt 0\.0\.1 \(here .*Install the same versions there"
    with using_cluster(cluster.file):
        assert_fails(versions, list, parsing(text, "there"))
    old.kill()


@pytest.mark.parametrize(
    ("error", "raised", "said"),
    [
        # nobody says so if a machine or its network is gone
        (
            OSError("Timed out trying to connect to tcp://head:8786 after 10 s"),
            SynmtError,
            "connection to the scheduler is lost",
        ),
        (OSError(errno.ENOSPC, "No space left"), OSError, "No space left"),
    ],
)
def test_a_scheduler_that_no_longer_answers_is_lost_and_a_full_disk_is_not(
    tmp_path, error, raised, said
):
    client = Mock(status="running", **{"nthreads.side_effect": error})
    with pytest.raises(raised, match=said):
        list(clusters.Cluster(client).run(pow, 2, iter(range(2)), where=tmp_path))


def test_without_dask_the_message_says_what_to_install(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "distributed", None)
    write_lines(tmp_path / "text", ["a"])
    parse = ["parse", "text", "-o", "out", "--cluster", "tcp://127.0.0.1:1"]
    assert "pip install 'synmt[cluster]'" in fail(2, *parse, cwd=tmp_path)


ADDRESSES = """
tcp://127.0.0.1:1 => no Dask scheduler answers.*dask scheduler
tls://127.0.0.1:1 => no Dask scheduler answers.*certificates
/nowhere/none.json => no such scheduler file.*slurm
"""


@ignoring
@pytest.mark.parametrize(("address", "message"), cases(ADDRESSES))
def test_a_wrong_address_is_a_message(monkeypatch, address, message):
    pytest.importorskip("distributed")
    monkeypatch.setattr(clusters, "_WAIT", "100ms")
    with pytest.raises(SynmtError, match=message), using_cluster(address):
        pass


@ignoring
def test_a_file_is_translated_and_scored_as_on_this_machine(cluster, place, monkeypatch):
    # the files of the parser travel; it is not loaded, since that takes seconds
    short = {"batch_size": 4, "max_length_ratio": 0.25, "max_length_extra": 2}
    make_run(place / "run", PASCAL, decoding=short)
    make_run(place / "plain", parser=False)
    source = place / "corpus" / "train.en"
    shutil.copy(place / "corpus" / "train.de", place / "other.de")
    write_lines(source, (json.dumps({"source": line}) for line in source.read_text().splitlines()))
    monkeypatch.chdir(place)
    translate = "translate corpus/train.en --run run --parses corpus/train.en.conllu --jsonl"
    score = "score --model plain --source other.de --target corpus/train.de"
    commands = [[*line.split(), *SIZE.split()] for line in (f"{translate} --beam-size 2", score)]
    here = [succeed(*command).stdout for command in commands]
    monkeypatch.setenv("SYNMT_CLUSTER", cluster.complete(2))
    # a worker dies while it loads the model or translates
    copies, killed = cluster.folder / "caches" / "workers", cluster.workers.pop()
    with ThreadPoolExecutor() as pool:
        loads = pool.submit(wait_for, lambda: any(copies.glob("*/0/run.json")))
        loads.add_done_callback(lambda _: killed.kill())
        there = [succeed(*command) for command in commands]
    assert killed.wait() == -9
    assert [done.stdout for done in there] == here
    assert all(b"cluster: tcp://" in done.stderr for done in there)


SIZE = "--batch-size 1 --device cpu"
