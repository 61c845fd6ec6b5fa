"""The runs of a grid side by side on a cluster: what is trained there is what is trained here, bit
for bit."""

import json
import shutil
import threading
from _thread import interrupt_main
from contextlib import contextmanager
from itertools import chain, repeat
from pathlib import Path
from unittest.mock import Mock

import pytest
from clusters import LocalCluster, wait_for
from safetensors.torch import load_file, save_file
from same_runs import StopAfter, assert_same_run
from tiny import TRAINING, snapshot, succeed, synmt, write_corpus, write_recipe

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
SHORT = {
    **TRAINING,
    "max_steps": 24,
    "validate_every": 12,
    "validation_beam_size": 1,
    "log_every": 4,
    "save_every": 2,
}
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
    write(folder, "plain", syntax={})
    write(folder, "pascal")
    write(folder, "broken", syntax={})
    for name in ("plain", "pascal"):
        list(pipeline.train(folder / f"{name}.yaml", runs=folder / "here", data=folder / "data"))
    return folder


def write(folder, name, **sections):
    return write_recipe(
        folder / f"{name}.yaml", folder / "text", training=SHORT, decoding=GREEDY, **sections
    )


@pytest.fixture
def small_tables(monkeypatch):
    for name in ("SAMPLES", "SWAPS"):
        monkeypatch.setattr(comparison, name, 10)


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


@pytest.mark.usefixtures("small_tables")
def test_runs_are_the_same_if_a_worker_is_killed_and_a_failed_one_is_named(cluster, place, scratch):
    command = ["train", *(place / f"{name}.yaml" for name in ("plain", "broken", "pascal"))]
    command += ["--runs", place / "there", "--data", place / "data"]
    command += ["--cluster", cluster.complete(2)]
    killed = cluster.workers.pop()
    with once(lambda: any(scratch.glob("*/*/checkpoints/step-00000006")), killed.kill):
        done = synmt(*command)
    said = done.stderr.decode()
    assert done.returncode == 1
    assert "the cluster trains 3 runs, side by side\n" in said
    broken = f"{place / 'there' / 'broken'}: RuntimeError: CUDA error: unspecified launch failure."
    assert said.rstrip().endswith(broken)
    for name in ("plain", "pascal"):
        assert_same_run(place / "there" / name, place / "here" / name)
        there, here = (Run(place / at / name) for at in ("there", "here"))
        assert there.info().keys() == here.info().keys()
        found = [(run.test_folder("test") / "made_from.json").read_text() for run in (there, here)]
        assert found[0] == found[1]
        assert {"source", "target"} <= json.loads(found[0]).keys()
    runs = [place / "there" / name for name in ("plain", "pascal")]
    assert done.stdout == succeed("score", "--cost", *runs).stdout
    # only the failed one is tried again
    records = list(steps_of(place, "there", "plain", "broken", "pascal"))
    assert [record.done for record in records if isinstance(record, NextRun)] == [True, False, True]
    assert not records[-1].failed


def test_a_grid_that_is_stopped_comes_back_and_goes_on_anywhere(cluster, place, scratch):
    stop = threading.Event()
    with using_cluster(cluster.complete(1)):
        begun = lambda: any(scratch.glob("*/*/checkpoints/step-00000004"))  # noqa: E731
        with once(begun, stop.set):
            *records, last = steps_of(place, "stopped", "plain", "pascal", stop=stop)
    assert [type(record) for record in records if isinstance(record, NextRun | ClusterStarted)][
        -1
    ] is ClusterStarted
    assert last == GridRecord("interrupted", [], [], {})
    assert not list(scratch.iterdir())
    reached = Run(place / "stopped" / "plain").checkpoints()[-1].name
    assert "step-00000000" < reached < "step-00000024"
    assert not Run(place / "stopped" / "pascal").checkpoints()
    # one goes on here, the other one on the cluster
    here = list(steps_of(place, "stopped", "plain"))
    assert [record.step for record in here if isinstance(record, StartRecord)] == [
        int(reached[-8:])
    ]
    with using_cluster(cluster.complete(1)):
        *_, last = steps_of(place, "stopped", "plain", "pascal")
    assert [run.name for run in last.finished] == ["plain", "pascal"]
    for name in ("plain", "pascal"):
        assert_same_run(place / "stopped" / name, place / "here" / name)


def test_a_command_that_ends_at_once_frees_the_worker_and_the_next_one_goes_on(
    cluster, place, scratch
):
    begun = lambda: any(scratch.glob("*/plain/checkpoints/step-00000004"))  # noqa: E731
    with (
        using_cluster(cluster.complete(1)),
        pytest.raises(KeyboardInterrupt),
        once(begun, interrupt_main),
    ):
        list(steps_of(place, "left", "plain"))
    with using_cluster(cluster.complete(1)):
        *_, last = steps_of(place, "left", "plain")
    assert [run.name for run in last.finished] == ["plain"]
    assert_same_run(place / "left" / "plain", place / "here" / "plain")
    assert not list(scratch.iterdir())


@pytest.fixture
def pretend(monkeypatch, tmp_path):
    """Let a function of this process be the cluster: it makes the results of items by `work`.

    stops, waits: the events of the driver, and whether it waits, for each item.
    """

    def use(run, stops=(), waits=()):
        class Here:
            def run(self, work, state, items, *, where, long):
                return run(work, state, items, long)

        @contextmanager
        def ending():
            yield next(events)

        events = chain(stops, iter(threading.Event, None))
        answers = chain(waits, repeat(True))
        monkeypatch.setenv("SYNMT_CACHE", str(tmp_path / "cache"))
        monkeypatch.setattr("synmt.training.grid.cluster_in_use", Here)
        monkeypatch.setattr(trainings, "ending_with_driver", ending)
        monkeypatch.setattr(trainings, "driver_waits", lambda: next(answers))

    return use


@pytest.fixture
def gone(pretend, monkeypatch):
    """Let the first driver go away; list the steps at which a worker has begun."""
    begun = []

    def run(work, state, items, long):
        for item in items:
            result = work(state, item)
            if len(begun) == 1:
                raise KeyboardInterrupt
            yield result

    def noting(*arguments, **options):
        records = pipeline.train_prepared(*arguments, **options)
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
    assert gone[0] == 0 < gone[1] < 24
    assert_same_run(place / "gone" / "plain", place / "here" / "plain")
    assert not list((tmp_path / "cache" / "workers" / "runs").iterdir())


def test_what_began_with_other_weights_is_left_alone(place, gone, tmp_path):
    first = Path(shutil.copytree(place / "here" / "plain", tmp_path / "first"))
    model = {**load_recipe(place / "plain.yaml").model.model_dump(mode="json"), "init": str(first)}
    write(place, "tuned", syntax={}, vocabulary={}, model=model)
    with pytest.raises(KeyboardInterrupt):
        list(steps_of(place, "tuned", "tuned"))
    # another run of the same name, whose checksums would be others
    (first / "checksums.sha256").unlink()
    weights = load_file(first / "model.safetensors")
    save_file({name: 2 * weight for name, weight in weights.items()}, first / "model.safetensors")
    list(steps_of(place, "tuned", "tuned"))
    assert gone == [0, 0]


@pytest.mark.parametrize("overwrite", [False, True])
def test_a_run_that_failed_on_a_cluster_is_not_begun_anew_by_what_its_error_advises(
    place, tmp_path, pretend, monkeypatch, overwrite
):
    error = SynmtError("gone", do="Run the same command again")

    def losing(work, state, items, long):
        # one run ends with an error, the worker of the other one is lost
        first, second = items
        yield from (work(state, first), long.lost(second, error))

    pretend(losing)
    monkeypatch.setattr(trainings, "train_prepared", Mock(side_effect=error))
    *_, last = steps_of(place, tmp_path / "lost", "plain", "pascal", overwrite=overwrite)
    more = " Leave out --overwrite to resume the run instead of restarting it." * overwrite
    reasons = [failed.reason for failed in last.failed]
    assert reasons == [f"gone. Run the same command again.{more}"] * 2


def test_a_run_reads_nothing_but_what_travels_with_it(place, pretend, monkeypatch, tmp_path):
    # the cluster is this process, and the files of the driver are out of sight
    away = tmp_path / "project"
    away.mkdir()
    shutil.copytree(place / "text", away / "text")
    write(away, "plain", syntax={})
    model = {
        **load_recipe(away / "plain.yaml").model.model_dump(mode="json"),
        "init": str(away / "runs" / "plain"),
    }
    # it parses the test set with a copy of the parser
    write(away, "tuned", vocabulary={}, model=model, parser={"workers": 1, "device": "cpu"})

    def run(work, state, items, long):
        kit = Kit.pack(work, state)
        for name, path in state.files().items():
            assert kit.hashes[name] == stored_sha256(path)
            (kit.folder() / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, kit.folder() / name)
        for item in items:
            away.rename(tmp_path / "hidden")
            result = kit.open()(item)
            (tmp_path / "hidden").rename(away)
            yield result

    pretend(run)
    loaded, waves = [], []
    load = StanzaParser.from_identity.__func__

    def from_identity(kind, identity, **options):
        loaded.append(identity["model"])
        return load(kind, identity, **options)

    monkeypatch.setattr(StanzaParser, "from_identity", classmethod(from_identity))
    for record in steps_of(away, "runs", "tuned", "plain"):
        assert not isinstance(record, FailedRun), record
        waves += [record.runs] if isinstance(record, ClusterStarted) else []
        waves += [record.folder.name] if isinstance(record, RunRecord) else []
    assert waves == [1, "plain", 1, "tuned"]
    assert [Path(model).parent.parent for model in loaded] == [tmp_path / "cache" / "workers"]
    assert Run(away / "runs" / "tuned").info()["init"]["run"] == str(away / "runs" / "plain")
    weights = "model.safetensors"
    assert (away / "runs" / "plain" / weights).read_bytes() == (
        place / "here" / "plain" / weights
    ).read_bytes()


def test_the_content_of_a_run_folder_is_written_as_it_is_and_others_are_removed(place, tmp_path):
    whole = pack(Run(place / "here" / "plain"))
    assert newest_step(whole) == "step-00000024"
    other = Run(tmp_path / "plain")
    old = ("lock", "checkpoints/step-00000002/state.json", "tests/old/x", "run.json")
    unpack(other, dict.fromkeys(old, b"{}"))
    unpack(other, whole)
    assert {name: data for name, data in snapshot(other.folder).items() if name != "lock"} == whole
    assert not (other.folder / "tests" / "old").exists()
    # interrupted before the end: it is not yet the folder of a finished run
    broken = Run(tmp_path / "broken")
    with pytest.raises(TypeError):
        unpack(broken, {**whole, "log.jsonl": None})
    assert not broken.exists()
    assert (broken.checkpoints()[-1] / "state.json").exists()


@pytest.mark.parametrize(
    "name",
    [
        r"../x",
        r"/tmp/x",
        r"tests/../../x",
        r"checkpoints/../x",
        r"checkpoints/step-1/../../x",
        r"tests/.x",
        r"a\b",
        r"C:x",
        r"a//b",
    ],
)
def test_a_worker_writes_no_file_outside_the_run_folder(tmp_path, name):
    run = Run(tmp_path / "runs" / "own")
    with pytest.raises(SynmtError, match="a worker of the cluster sent a file that no run has"):
        unpack(run, {"run.json": b"{}", name: b"x"})
    assert not list(tmp_path.iterdir())


def test_workers_have_the_code_of_a_variant_that_is_allowed_here(
    cluster, place, tmp_path, monkeypatch
):
    (tmp_path / "mylab").mkdir()
    text = "from synmt.model.variants.pascal import Pascal as Base\nclass Pascal(Base): pass\n"
    (tmp_path / "mylab" / "pascal.py").write_text(text)
    monkeypatch.chdir(tmp_path)
    variant = {"variants": [{"name": "mylab.pascal", "layers": [1], "heads": 2}]}
    short = {**SHORT, "max_steps": 2}
    recipe = write_recipe(
        tmp_path / "own.yaml", place / "text", training=short, decoding=GREEDY, syntax=variant
    )
    there = ("--cluster", cluster.complete(1))
    train = ["train", recipe, "--seeds", "1,2", "--data", place / "data", *there]
    assert b"--allow-code" in synmt(*train).stderr
    succeed(*train, "--allow-code")
    run, _ = sorted((tmp_path / "runs").iterdir())
    assert (run / "code" / "mylab" / "pascal.py").read_text() == text
    test = place / "text" / "test.en"
    translate = ["translate", test, "--run", run, "--parses", f"{test}.conllu"]
    assert succeed(*translate, *there).stdout == succeed(*translate).stdout
