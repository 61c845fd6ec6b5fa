"""The runs of a grid side by side on a cluster: what is trained there is what is trained here, bit
for bit."""

import shutil
import threading
from _thread import interrupt_main
from contextlib import contextmanager, nullcontext
from itertools import chain, repeat
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import Mock

import pytest
from clusters import LocalCluster, wait_for
from refusing import assert_fails
from safetensors.torch import load_file, save_file
from same_runs import StopAfter, assert_same_run
from tiny import TRAINING, snapshot, succeed, synmt, write_corpus, write_lines, write_recipe

pytest.importorskip("synmt.cluster")

from synmt.cluster import trainings
from synmt.cluster.portable_run import newest_step, pack, unpack
from synmt.cluster.shipment import Kit
from synmt.errors import SynmtError
from synmt.evaluation import comparison
from synmt.files.reading import stored_sha256
from synmt.parallel.engine import using_cluster
from synmt.parsing.parser import StanzaParser
from synmt.recipe.load import load_recipe
from synmt.run_folder import Run
from synmt.training import pipeline
from synmt.training.grid import ClusterStarted, FailedRun, GridRecord, NextRun, train_grid
from synmt.training.records import RunRecord, StartRecord

pytestmark = [
    pytest.mark.journey,
    pytest.mark.usefixtures("offline"),
    pytest.mark.filterwarnings("ignore"),
]
SHORT = {"max_steps": 12, "validate_every": 6, "validation_beam_size": 1, "log_every": 4}
SHORT = {**TRAINING, **SHORT, "save_every": 2}
GREEDY = {"beam_size": 1, "max_length_ratio": 0.1, "max_length_extra": 4}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    pytest.importorskip("distributed")
    made = LocalCluster(tmp_path_factory.mktemp("cluster"), preload="slow_trainer.py")
    yield made
    made.stop()


@pytest.fixture
def scratch(cluster):
    """Name the folder in which the workers train."""
    folder = cluster.folder / "caches" / "workers" / "runs"
    yield folder
    # a worker keeps a run that is no longer needed: one that was given to it just before the driver
    # had it from another
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """Train a plain system and one with gold trees here."""
    folder = tmp_path_factory.mktemp("grid")
    write_corpus(folder / "text")
    for name in ("plain", "pascal", "broken"):
        write(folder, name, **({} if name == "pascal" else {"syntax": {}}))
    for name in ("plain", "pascal"):
        list(pipeline.train(folder / f"{name}.yaml", runs=folder / "here", data=folder / "data"))
    return folder


def assert_trained(place, runs, *names):
    """Compare runs with those that were trained here."""
    for name in names:
        assert_same_run(place / runs / name, place / "here" / name)


def begun_at(scratch, step):
    """Tell when a worker has saved a step."""
    return lambda: any(scratch.glob(f"*/*/checkpoints/step-{step:08}"))


def write(folder, name, **sections):
    return write_recipe(
        folder / f"{name}.yaml", folder / "text", training=SHORT, decoding=GREEDY, **sections
    )


def steps_of(place, runs, *names, **options):
    recipes = [place / f"{name}.yaml" for name in names]
    return train_grid(recipes, runs=place / runs, data=place / "data", **options)


@contextmanager
def once(condition, act):
    """Do something in a thread when it is time; the block must last as long."""

    def watch():
        wait_for(condition)
        act()

    thread = threading.Thread(target=watch)
    thread.start()
    yield
    thread.join()


def test_runs_are_the_same_if_a_worker_is_killed_and_a_failed_one_is_named(
    cluster, place, scratch, monkeypatch
):
    for name in ("SAMPLES", "SWAPS"):
        monkeypatch.setattr(comparison, name, 10)
    monkeypatch.chdir(place)
    command = "train plain.yaml broken.yaml pascal.yaml --runs there --data data --cluster"
    there = cluster.complete(2)
    killed = cluster.workers.pop()
    with once(begun_at(scratch, 4), killed.kill):
        done = synmt(*command.split(), there)
    said = done.stderr.decode()
    assert done.returncode == 1
    assert "the cluster trains runs side by side: 3\n" in said
    broken = "there/broken has failed: RuntimeError: CUDA error: unspecified launch failure"
    assert broken in said
    assert_trained(place, "there", "plain", "pascal")
    for name in ("plain", "pascal"):
        runs = [Run(place / at / name) for at in ("there", "here")]
        assert runs[0].info().keys() == runs[1].info().keys()
        sums, own = ((run.test_folder("test") / "made_from.json").read_text() for run in runs)
        assert sums == own
    assert done.stdout == succeed("score", "--cost", "there/plain", "there/pascal").stdout
    # only the failed one is tried again
    records = list(steps_of(place, "there", "plain", "broken", "pascal"))
    assert [record.done for record in records if isinstance(record, NextRun)] == [True, False, True]
    assert not records[-1].failed


def test_a_grid_that_is_stopped_comes_back_and_goes_on_anywhere(cluster, place, scratch):
    stop = threading.Event()
    with using_cluster(cluster.complete(1)), once(begun_at(scratch, 4), stop.set):
        *records, last = steps_of(place, "stopped", "plain", "pascal", stop=stop)
    *_, begun = (record for record in records if isinstance(record, NextRun | ClusterStarted))
    assert isinstance(begun, ClusterStarted)
    assert last == GridRecord("interrupted", [], [], {})
    assert not list(scratch.iterdir())
    reached = int(Run(place / "stopped" / "plain").checkpoints()[-1].name[-8:])
    assert 0 < reached < 12
    assert not Run(place / "stopped" / "pascal").checkpoints()
    # one goes on here, the other one on the cluster
    here = list(steps_of(place, "stopped", "plain"))
    assert [record.step for record in here if isinstance(record, StartRecord)] == [reached]
    with using_cluster(cluster.complete(1)):
        *_, last = steps_of(place, "stopped", "plain", "pascal")
    assert [run.name for run in last.finished] == ["plain", "pascal"]
    assert_trained(place, "stopped", "plain", "pascal")


def test_a_command_that_ends_at_once_frees_the_worker_and_the_next_one_goes_on(
    cluster, place, scratch
):
    here = using_cluster(cluster.complete(1))
    with here, pytest.raises(KeyboardInterrupt), once(begun_at(scratch, 4), interrupt_main):
        list(steps_of(place, "left", "plain"))
    with using_cluster(cluster.complete(1)):
        list(steps_of(place, "left", "plain"))
    assert_trained(place, "left", "plain")
    assert not list(scratch.iterdir())


@pytest.fixture
def pretend(monkeypatch, tmp_path):
    """Let a function of this process be the cluster: it makes the results of items by `work`.

    stops, waits: the events of the driver, and whether it waits, for each item.
    """

    def use(run, stops=(), waits=()):
        events = chain(stops, iter(threading.Event, None))
        monkeypatch.setenv("SYNMT_CACHE", str(tmp_path / "cache"))
        here = SimpleNamespace(run=run)
        monkeypatch.setattr("synmt.training.grid.cluster_in_use", lambda: here)
        monkeypatch.setattr(trainings, "ending_with_driver", lambda: nullcontext(next(events)))
        monkeypatch.setattr(trainings, "driver_waits", chain(waits, repeat(True)).__next__)

    return use


@pytest.fixture
def gone(pretend, monkeypatch):
    """Let the first driver go away; list the steps at which a worker has begun."""
    begun = []

    def run(work, state, items, where, long):
        for item in items:
            result = work(state, item)
            if len(begun) == 1:
                raise KeyboardInterrupt
            yield result

    def noting(*arguments, train=trainings.train_prepared, **options):
        records = train(*arguments, **options)
        begun.append(next(records).step)
        return (yield from records)

    pretend(run, [StopAfter(5)], [False])
    monkeypatch.setattr(trainings, "train_prepared", noting)
    return begun


def test_what_was_trained_for_a_driver_that_is_gone_is_there_for_the_next_one(
    place, gone, tmp_path
):
    with pytest.raises(KeyboardInterrupt):
        list(steps_of(place, "gone", "plain"))
    assert not Run(place / "gone" / "plain").checkpoints()
    list(steps_of(place, "gone", "plain"))
    assert gone[0] == 0 < gone[1] < 12
    assert_trained(place, "gone", "plain")
    assert not list((tmp_path / "cache" / "workers" / "runs").iterdir())


def test_what_began_with_other_weights_is_left_alone(place, gone, tmp_path):
    first = Path(shutil.copytree(place / "here" / "plain", tmp_path / "first"))
    write(place, "tuned", syntax={}, vocabulary={}, model=from_weights(place, first))
    with pytest.raises(KeyboardInterrupt):
        list(steps_of(place, "tuned", "tuned"))
    # another run of the same name, whose checksums would be others
    (first / "checksums.sha256").unlink()
    path = first / "model.safetensors"
    save_file({name: 2 * weight for name, weight in load_file(path).items()}, path)
    list(steps_of(place, "tuned", "tuned"))
    assert gone == [0, 0]


def from_weights(place, run):
    """Describe the plain model, which starts from the weights of a run."""
    model = load_recipe(place / "plain.yaml").model.model_dump(mode="json")
    return {**model, "init": str(run)}


@pytest.mark.parametrize("overwrite", [False, True])
def test_a_run_that_failed_on_a_cluster_is_not_begun_anew_by_what_its_error_advises(
    place, tmp_path, pretend, monkeypatch, overwrite
):
    error = SynmtError("gone", do="Run the same command again")

    def losing(work, state, items, where, long):
        # one run ends with an error, the worker of the other one is lost
        first, second = items
        yield from (work(state, first), long.lost(second, error))

    pretend(losing)
    monkeypatch.setattr(trainings, "train_prepared", Mock(side_effect=error))
    *_, last = steps_of(place, tmp_path / "lost", "plain", "pascal", overwrite=overwrite)
    for failed in last.failed:
        assert failed.reason.startswith("gone. Run the same command again.")
        assert overwrite == ("Leave out --overwrite" in failed.reason)
    assert len(last.failed) == 2


def test_a_run_reads_nothing_but_what_travels_with_it(place, pretend, monkeypatch, tmp_path):
    # the cluster is this process, and the files of the driver are out of sight
    away, hidden = tmp_path / "project", tmp_path / "hidden"
    shutil.copytree(place / "text", away / "text")
    write(away, "plain", syntax={})
    plain = away / "runs" / "plain"
    # it parses the test set with a copy of the parser
    parser = {"workers": 1, "device": "cpu"}
    write(away, "tuned", vocabulary={}, model=from_weights(away, plain), parser=parser)

    def run(work, state, items, where, long):
        kit = Kit.pack(work, state)
        for name, path in state.files().items():
            assert kit.hashes[name] == stored_sha256(path)
            (kit.folder() / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, kit.folder() / name)
        for item in items:
            away.rename(hidden)
            result = kit.open()(item)
            hidden.rename(away)
            yield result

    pretend(run)
    load = Mock(side_effect=StanzaParser.from_identity)
    monkeypatch.setattr(StanzaParser, "from_identity", load)
    waves = []
    for record in steps_of(away, "runs", "tuned", "plain"):
        assert not isinstance(record, FailedRun), record
        waves += [record.runs] if isinstance(record, ClusterStarted) else []
        waves += [record.folder.name] if isinstance(record, RunRecord) else []
    assert waves == [1, "plain", 1, "tuned"]
    [call] = load.call_args_list
    assert Path(call.args[0]["model"]).parent.parent == tmp_path / "cache" / "workers"
    assert Run(away / "runs" / "tuned").info()["init"]["run"] == str(plain)
    own, other = (run / "model.safetensors" for run in (plain, place / "here" / "plain"))
    assert own.read_bytes() == other.read_bytes()


def test_the_content_of_a_run_folder_is_written_as_it_is_and_others_are_removed(place, tmp_path):
    whole, other = pack(Run(place / "here" / "plain")), Run(tmp_path / "plain")
    assert newest_step(whole) == "step-00000012"
    old = ("lock", "checkpoints/step-00000002/state.json", "tests/old/x", "run.json")
    unpack(other, dict.fromkeys(old, b"{}"))
    unpack(other, whole)
    written = snapshot(other.folder)
    written.pop("lock", None)
    assert written == whole
    assert not (other.folder / "tests" / "old").exists()
    # interrupted before the end: it is not yet the folder of a finished run
    broken = Run(tmp_path / "broken")
    with pytest.raises(TypeError):
        unpack(broken, {**whole, "log.jsonl": None})
    assert not broken.exists()
    assert (broken.checkpoints()[-1] / "state.json").exists()


OUTSIDE = r"""
../x /tmp/x tests/../../x checkpoints/../x checkpoints/step-1/../../x tests/.x a\b C:x a//b
"""


@pytest.mark.parametrize("name", OUTSIDE.split())
def test_a_worker_writes_no_file_outside_the_run_folder(tmp_path, name):
    run = Run(tmp_path / "runs" / "own")
    assert_fails(
        "a worker of the cluster sent a file that no run has",
        unpack,
        run,
        {"run.json": b"{}", name: b"x"},
    )
    assert not list(tmp_path.iterdir())


def test_workers_have_the_code_of_a_variant_that_is_allowed_here(
    cluster, place, tmp_path, monkeypatch
):
    code = "from synmt.model.variants.pascal import Pascal as Base\nclass Pascal(Base): pass\n"
    write_lines(tmp_path / "mylab" / "pascal.py", code.splitlines())
    monkeypatch.chdir(tmp_path)
    shutil.copytree(place / "text", "text")
    variant = {"variants": [{"name": "mylab.pascal", "layers": [1], "heads": 2}]}
    short = {"training": {**SHORT, "max_steps": 2}, "decoding": GREEDY}
    write_recipe(Path("own.yaml"), Path("text"), syntax=variant, **short)
    there = ("--cluster", cluster.complete(1))
    train = ["train", "own.yaml", "--seeds", "1,2", *there]
    assert b"--allow-code" in synmt(*train).stderr
    succeed(*train, "--allow-code")
    run, _ = sorted(Path("runs").iterdir())
    assert (run / "code" / "mylab" / "pascal.py").read_text() == code
    translate = ["translate", "text/test.en", "--run", run, "--parses", "text/test.en.conllu"]
    assert succeed(*translate, *there).stdout == succeed(*translate).stdout
