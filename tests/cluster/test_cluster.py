"""A cluster gives the files of one process, byte for byte, whichever of its processes die."""

import errno
import json
import os
import shutil
import sys
import threading
from _thread import interrupt_main
from concurrent.futures import wait
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from unittest.mock import Mock

import pytest
from clusters import FiledParser, LocalCluster, wait_for, worker_of
from preparing import CHAIN, corpus_of, recipe_of, trees_for
from small_run import make_run
from tiny import PASCAL, snapshot, synmt, write_lines

pytest.importorskip("synmt.cluster")

from synmt.cluster import dask as clusters
from synmt.cluster import worker_errors
from synmt.cluster.sent_items import LongWork
from synmt.cluster.worker_errors import incapable
from synmt.data import encoding, filtering
from synmt.data.annotate import annotate
from synmt.data.prepare import prepare
from synmt.errors import SynmtError, UsageError
from synmt.parallel import feeding
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


def trees(text, name):
    return [path.read_bytes() for path in (text.with_name(name), text.with_name(f"{name}.json"))]


def parsed_lines(text, name):
    return [
        line.split(" ", 1)[1] for line in text.with_name(f"{name}.log").read_text().splitlines()
    ]


@ignoring
def test_trees_are_the_same_if_a_worker_is_killed_and_another_one_joins(cluster, text, caplog):
    list(parsing(text, "here", workers=1))
    with using_cluster(cluster.complete(2)):
        steps = parsing(text, "there", slow=0.15)
        states = [next(steps).state for _ in range(4)]
        cluster.workers[0].kill()
        cluster.join()
        states += [step.state for step in steps]
    assert states == ["parsed"] * 21 + ["finished"]
    assert trees(text, "there") == trees(text, "here")
    for remark in ("the parser that is filed is slow", "a copy of the parser is loaded"):
        assert caplog.text.count(remark) == 1
    # the workers read their own copies of the model
    assert {line.split()[0] for line in text.with_name("there.log").read_text().splitlines()} == {
        "models"
    }
    [copy] = (cluster.folder / "caches" / "workers").glob("*/models/one")
    assert copy.read_text() == "a model"


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
    monkeypatch.setattr(feeding, "_LOOK", 0.1)
    monkeypatch.setattr(feeding, "wait", waits)
    remark = "cluster: no worker is left; the work waits for one"
    with using_cluster(cluster.complete(1)):
        steps = parsing(text, "there", slow=0.05)
        states = [next(steps).state]
        for worker in cluster.workers:
            worker.kill()

        def join_when_told() -> None:
            try:
                wait_for(lambda: remark in caplog.text)
            finally:
                cluster.join()

        joining = threading.Thread(target=join_when_told)
        joining.start()
        states += [step.state for step in steps]
        joining.join()
    assert states == ["parsed"] * 21 + ["finished"]
    assert caplog.text.count(remark) == 1


@ignoring
def test_after_the_death_of_the_scheduler_the_same_call_goes_on(cluster, text, monkeypatch):
    monkeypatch.setattr(clusters, "_WAIT", "3s")
    list(parsing(text, "here", workers=1))
    with using_cluster(cluster.complete(1)):
        steps = parsing(text, "there", slow=0.1)
        for _ in range(4):
            next(steps)
        cluster.scheduler.kill()
        with pytest.raises(
            SynmtError, match=r"connection to the scheduler is lost.*same command again"
        ):
            list(steps)
    finished = {path.stem for path in text.with_name("there.parts").glob("*.json")}
    text.with_name("there.log").unlink()
    # on a busy machine, a new scheduler takes longer to answer
    monkeypatch.undo()
    with using_cluster(cluster.complete(1)):
        states = [step.state for step in parsing(text, "there")]
    assert states.count("kept") == len(finished) >= 4
    assert trees(text, "there") == trees(text, "here")
    again = [number for number, line in enumerate(LINES) if line in parsed_lines(text, "there")]
    assert not finished & {
        f"{number // 3 + 1:06d}" for number in again if LINES.index(LINES[number]) == number
    }


@ignoring
def test_a_run_that_is_left_leaves_nothing_on_the_cluster(cluster, text):
    from distributed import Client

    with using_cluster(cluster.complete(1)):
        steps = parsing(text, "there", slow=0.1)
        next(steps)
        steps.close()
    with Client(scheduler_file=cluster.file, set_as_default=False) as client:
        wait_for(
            lambda: client.run_on_scheduler(lambda dask_scheduler: len(dask_scheduler.tasks)) == 0
        )


@ignoring
def test_a_corpus_is_the_same_if_a_worker_is_killed_while_it_is_encoded_and_annotated(
    cluster, tmp_path, monkeypatch
):
    monkeypatch.setattr(encoding, "SHARD_LINES", 4)
    monkeypatch.setattr(filtering, "_FEW", 0)
    monkeypatch.setattr(filtering, "_CHUNK", 7)
    corpus = corpus_of(tmp_path / "text", [(line or "x", f"{line} !") for line in LINES])
    parses = trees_for(corpus, tmp_path)

    def make(folder):
        prepare(recipe_of(vocabulary={"kind": "word", "size": 100, "joint": False}), corpus, folder)
        annotate(folder, corpus, parses, parser=CHAIN)

    @contextmanager
    def killing(what, total, unit):
        done = []

        def advance(amount):
            done.append(amount)
            if sum(done) == 12 and what in ("prepare: train", "prepare: trees of train"):
                cluster.workers[0].kill()
                cluster.workers[0].wait()
                cluster.complete(2)

        yield advance

    make(tmp_path / "here")
    monkeypatch.setattr("synmt.reporting.progress._display", killing)
    with using_cluster(cluster.complete(2)):
        make(tmp_path / "there")
    assert snapshot(tmp_path / "there") == snapshot(tmp_path / "here")


@ignoring
def test_the_compact_parser_travels_and_its_trees_are_those_of_this_machine(cluster, tmp_path):
    (tmp_path / "text").write_text("The monkey eats a banana.\nA girl sleeps.\n" * 3)
    assert (
        synmt("parse", tmp_path / "text", "-o", tmp_path / "here", "--workers", 1).returncode == 0
    )
    on = ("--cluster", cluster.complete(1), "--shard-lines", 1, "--device", "cpu")
    done = synmt("parse", tmp_path / "text", "-o", tmp_path / "there", *on)
    assert done.returncode == 0, done.stderr
    assert b"cluster: tcp://" in done.stderr
    assert b"dashboard: http://" in done.stderr
    assert (tmp_path / "there").read_bytes() == (tmp_path / "here").read_bytes()


@ignoring
def test_long_work_goes_to_workers_with_a_gpu_and_what_kills_them_is_one_result(
    cluster, tmp_path, monkeypatch
):
    from distributed import Client

    cluster.complete(1)
    with_gpu = [cluster.join("", "--resources", "GPU=1") for _ in range(4)]
    with Client(scheduler_file=cluster.file, set_as_default=False) as client:
        wait_for(lambda: len(client.nthreads()) == len(cluster.workers))
        plain = {
            address
            for address, state in client.scheduler_info()["workers"].items()
            if not state["resources"]
        }
    long = LongWork(threading.Event(), lost=lambda item, error: f"{item}: {error}")
    with using_cluster(cluster.file):
        run = partial(cluster_in_use().run, worker_of, None, where=tmp_path)
        assert not plain & set(run(iter(range(6)), long=long))
        assert plain & set(run(iter(range(12)), long=replace(long, gpu=False)))
        *_, last = run(iter([1, 13]), long=long)
    assert last.startswith(
        f"13: {tmp_path}: 4 workers died while they worked on the same shard or run, most likely"
    )
    assert all(worker.wait() == 1 for worker in with_gpu)


@ignoring
def test_what_kills_every_worker_is_an_error_on_one_worker_that_starts_again_each_time(tmp_path):
    pytest.importorskip("distributed")
    alone = LocalCluster(tmp_path)
    long = LongWork(threading.Event(), lost=lambda item, error: f"{item}: {error}")
    too_long = threading.Timer(120, interrupt_main)
    try:
        alone.complete(0)
        alone.join(nanny=True)
        too_long.start()
        with using_cluster(alone.file):
            found = list(
                cluster_in_use().run(worker_of, None, iter([13, 1]), where=tmp_path, long=long)
            )
            with pytest.raises(
                SynmtError, match="4 workers died while they worked on the same shard"
            ):
                list(cluster_in_use().run(worker_of, None, iter([13]), where=tmp_path))
    finally:
        too_long.cancel()
        alone.stop()
    assert any(one.startswith("13: ") and "4 workers died" in one for one in found)
    assert any(one.startswith("tcp://") for one in found)


@pytest.mark.parametrize(
    "error",
    [
        ModuleNotFoundError("No module named 'synmt'"),
        Exception("ModuleNotFoundError(\"No module named 'synmt'\")"),
    ],
)
def test_a_worker_without_synmt_is_named_with_the_remedy(error):
    said = incapable("tcp://a:1", error)
    assert said.where == "worker tcp://a:1"
    assert "cannot load synmt" in str(said)
    assert "No module named 'synmt'" in str(said)
    assert "Install the same synmt there" in said.do


@ignoring
def test_long_work_that_waits_for_a_worker_is_given_up_when_it_has_to_stop(tmp_path):
    pytest.importorskip("distributed")
    alone = LocalCluster(tmp_path)
    long = LongWork(threading.Event(), lost=lambda item, error: error)
    too_long = threading.Timer(60, interrupt_main)
    try:
        with using_cluster(alone.complete(0)):
            too_long.start()
            threading.Timer(0.1, long.stop.set).start()
            assert (
                list(cluster_in_use().run(worker_of, None, iter([1]), where=tmp_path, long=long))
                == []
            )
    finally:
        too_long.cancel()
        alone.stop()


@ignoring
def test_a_worker_that_cannot_work_is_named_with_the_remedy(cluster, text):
    from distributed import Client

    cluster.complete(1)
    text.write_text("a\nout of memory\n")
    with (
        using_cluster(cluster.file),
        pytest.raises(SynmtError, match=r"worker tcp://.*out of memory.*more memory"),
    ):
        list(parsing(text, "there"))
    text.write_text("a\n")
    old = cluster.join("old_worker.py")
    with Client(scheduler_file=cluster.file, set_as_default=False) as client:
        wait_for(lambda: len(client.nthreads()) == len(cluster.workers))
    with using_cluster(cluster.file), pytest.raises(SynmtError) as caught:
        list(parsing(text, "there"))
    old.kill()
    assert "synmt 0.0.1 (here " in str(caught.value)
    assert caught.value.where.startswith("worker tcp://127.0.0.1:")
    assert "Install the same versions there" in caught.value.do


def test_a_scheduler_that_no_longer_answers_is_lost_and_a_full_disk_is_not(tmp_path):
    # nobody says so if a machine or its network is gone
    client = Mock(status="running")
    client.nthreads.side_effect = OSError(
        "Timed out trying to connect to tcp://head:8786 after 10 s"
    )
    with pytest.raises(SynmtError, match="connection to the scheduler is lost"):
        list(clusters.Cluster(client).run(pow, 2, iter(range(2)), where=tmp_path))
    client.nthreads.side_effect = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    with pytest.raises(OSError, match="No space left"):
        list(clusters.Cluster(client).run(pow, 2, iter(range(2)), where=tmp_path))


def test_without_dask_the_message_says_what_to_install(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "distributed", None)
    (tmp_path / "text").write_text("a\n")
    done = synmt(
        "parse", tmp_path / "text", "-o", tmp_path / "out", "--cluster", "tcp://127.0.0.1:1"
    )
    assert (done.returncode, done.stdout) == (2, b"")
    assert b"pip install 'synmt[cluster]'" in done.stderr


@ignoring
def test_a_wrong_address_is_a_message(monkeypatch, tmp_path):
    pytest.importorskip("distributed")
    monkeypatch.setattr(clusters, "_WAIT", "100ms")
    with (
        pytest.raises(SynmtError, match=r"no Dask scheduler answers.*dask scheduler"),
        using_cluster("tcp://127.0.0.1:1"),
    ):
        pass
    with (
        pytest.raises(SynmtError, match=r"no Dask scheduler answers.*certificates"),
        using_cluster("tls://127.0.0.1:1"),
    ):
        pass
    with (
        pytest.raises(UsageError, match=r"no such scheduler file.*slurm"),
        using_cluster(str(tmp_path / "none.json")),
    ):
        pass
    done = synmt("parse", "x", "-o", tmp_path / "out", "--cluster", "x", "--workers", 2)
    assert b"--workers counts processes of this machine" in done.stderr


@ignoring
def test_a_file_is_translated_and_scored_as_on_this_machine(cluster, place, monkeypatch):
    # the files of the parser travel; it is not loaded, since that takes seconds
    run, plain = (
        make_run(place / "run", PASCAL).folder,
        make_run(place / "plain", parser=False).folder,
    )
    trees = ("--parses", place / "corpus" / "train.en.conllu")
    source, target = place / "corpus" / "train.en", place / "corpus" / "train.de"
    size = ("--batch-size", 1, "--device", "cpu")
    translate = ("translate", source, "--run", run, *trees, "--beam-size", 2, "--jsonl", *size)
    other = shutil.copy(target, place / "other.de")
    score = ("score", "--model", plain, "--source", other, "--target", target, *size)
    write_lines(source, (json.dumps({"source": line}) for line in source.read_text().splitlines()))
    here = [synmt(*command) for command in (translate, score)]
    monkeypatch.setenv("SYNMT_CLUSTER", cluster.complete(2))
    # a worker dies while it loads the model or translates
    copies = cluster.folder / "caches" / "workers"
    killing = threading.Thread(
        target=lambda: (wait_for(lambda: any(copies.glob("*/0/run.json"))), killed.kill())
    )
    killed = cluster.workers.pop()
    killing.start()
    there = [synmt(*command) for command in (translate, score)]
    killing.join()
    assert killed.wait() == -9
    assert [done.returncode for done in (*here, *there)] == [0] * 4
    assert [done.stdout for done in there] == [done.stdout for done in here]
    assert all(b"cluster: tcp://" in done.stderr for done in there)


@pytest.mark.parametrize("name", ["synmt", "stanza", "torch"])
def test_other_versions_are_named(monkeypatch, name):
    ours = {"synmt": "1", "stanza": "2", "torch": "3"}
    monkeypatch.setattr(worker_errors, "versions", lambda: ours)
    worker_errors.check_versions("tcp://a", ours)
    with pytest.raises(SynmtError) as caught:
        worker_errors.check_versions("tcp://a", ours | {name: "9"})
    assert str(caught.value) == (
        f"worker tcp://a: other versions than here: {name} 9 (here {ours[name]}). Install the same "
        "versions there, "
        "restart the worker, and run the same command again: "
        "`parse`, `prepare`, `train` and `translate -o` keep what is finished."
    )
