"""`synmt train` with several recipes and seeds: runs that are skipped, fail or are killed, and the
table at the end."""

import pickle
import shutil
import signal
import subprocess
import sys
import threading
import weakref
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from unittest.mock import Mock

import pytest
from forked import Forked
from ranks import be_command, launch
from refusing import assert_fails
from same_runs import assert_same_run, play
from tiny import (
    MODEL,
    TRAINING,
    environment,
    fail,
    snapshot,
    succeed,
    synmt,
    write_corpus,
    write_recipe,
)

from synmt.errors import SynmtError
from synmt.evaluation import comparison
from synmt.parsing.parser import StanzaParser
from synmt.training import grid, pipeline
from synmt.training.distributed import Processes
from synmt.training.grid import (
    ClusterStarted,
    FailedRun,
    GridRecord,
    NextRun,
    train_grid,
    train_run,
)
from synmt.training.grid_runs import grid_runs
from synmt.training.records import EndRecord, RunRecord

pytestmark = [pytest.mark.journey, pytest.mark.usefixtures("offline")]
SHORT = {**TRAINING, "max_steps": 2, "validate_every": 2, "validation_beam_size": 0}
COMPACT = {"workers": 1, "device": "cpu"}
GREEDY = {"beam_size": 1, "max_length_ratio": 0.1, "max_length_extra": 4}


@pytest.fixture
def here(tmp_path, monkeypatch, empty_cache):
    """Go to a folder with a tiny corpus and two short recipes; one of them reads gold trees."""
    monkeypatch.chdir(tmp_path)
    write_corpus(tmp_path / "text")
    write_short("plain", syntax={})
    write_short("pascal")
    return tmp_path


def write_short(name, text="text", **sections):
    """Write a recipe of two steps into the current folder."""
    write_recipe(
        Path(f"{name}.yaml"), Path(text).resolve(), training=SHORT, decoding=GREEDY, **sections
    )


@pytest.fixture
def untested(here):
    """Remove the test set."""
    for path in (here / "text").glob("test*"):
        path.unlink()
    return here


@pytest.fixture
def small_tables(monkeypatch):
    """Make tables in a moment."""
    for name in ("SAMPLES", "SWAPS"):
        monkeypatch.setattr(comparison, name, 10)


def grid_of(*recipes, **options):
    """Train a grid without a table; gives its own records."""
    own = (NextRun, FailedRun, GridRecord)
    return [record for record in train_grid(recipes, **options) if isinstance(record, own)]


def table_of(*arguments):
    return succeed("score", "--cost", *arguments).stdout


@pytest.mark.usefixtures("small_tables")
def test_the_table_is_that_of_score_and_finished_runs_are_skipped(here):
    done = succeed("train", "plain.yaml", "pascal", "--seeds", "2")
    names = "runs/plain runs/plain-seed2 runs/pascal runs/pascal-seed2"
    assert done.stdout == table_of("--seeds", *names.split())
    assert b"run 3 of 4: runs/plain-seed2\n" in done.stderr
    # one table of the data for plain, one for pascal, which has trees
    assert done.stderr.count(b"text, en-de: data/prepared/") == 2
    before = snapshot(here / "runs")
    again = succeed("train", "plain.yaml", "pascal", "--seeds", "2,1")
    assert again.stderr.count(b" has finished already\n") == 4
    assert snapshot(here / "runs") == before
    # one recipe with one seed makes no table
    assert not succeed("train", "pascal").stdout


def test_a_grid_that_has_finished_loads_no_torch(untested):
    assert len(grid_of("plain", "pascal")[-1].finished) == 2
    script = """
import sys
from synmt.cli import main
sys.argv = ['synmt', 'train', 'plain', 'pascal']
try:
    main()
finally:
    print(*{'torch', 'stanza'} & sys.modules.keys())
"""
    command = [sys.executable, "-c", script]
    assert subprocess.check_output(command, env=environment()) == b"\n"


@pytest.mark.usefixtures("small_tables")
def test_a_text_is_parsed_and_prepared_once_and_every_run_is_what_it_is_alone(here, monkeypatch):
    parsed, parse = [], StanzaParser.parse

    def count(self, lines, **options):
        parsed.extend(lines)
        return parse(self, lines, **options)

    monkeypatch.setattr(StanzaParser, "parse", count)
    bpe = {"kind": "bpe", "size": 340, "dropout": 0.1}
    write_short("random", parser={**COMPACT, "control": "random"})
    write_short("dropout", parser=COMPACT, vocabulary=bpe)
    finished = grid_of("plain", "random", "dropout", seeds=2)[-1].finished
    # training, validation and test text
    assert len(parsed) == 32 + 4 + 4
    # of words, and of pieces
    assert len(list(here.glob("data/prepared/*/parse-*"))) == 2
    weights = {(folder / "model.safetensors").read_bytes() for folder in finished}
    assert len(weights) == len(finished) == 6
    for name in ("random", "dropout"):
        seeded = [f"name={name}-seed2", "training.seed=2"]
        list(pipeline.train(name, seeded, runs=here / "alone", data=here / "alone-data"))
        assert_same_run(here / "runs" / f"{name}-seed2", here / "alone" / f"{name}-seed2")


@pytest.mark.usefixtures("small_tables")
def test_a_failed_run_does_not_stop_the_others_and_is_tried_again(here):
    text = shutil.copytree(here / "text", here / "broken-text")
    (text / "train.de").rename(text / "train.fr")
    write_short("broken", text)
    done = synmt("train", "plain", "broken", "pascal")
    assert done.returncode == 1
    missing = "train.en and train.de must be there"
    assert f"warning: runs/broken has failed: {text}: {missing}" in done.stderr.decode()
    assert done.stdout == table_of("runs/plain", "runs/pascal")
    (text / "train.fr").rename(text / "train.de")
    again = succeed("train", "plain", "broken", "pascal")
    assert again.stderr.count(b" has finished already\n") == 2
    assert again.stdout == table_of("runs/plain", "runs/broken", "runs/pascal")


def test_under_torchrun_a_failed_run_ends_the_grid_because_the_others_wait_for_it(
    here, monkeypatch
):
    processes = Mock(spec=Processes, rank=0, count=2)
    processes.sum.side_effect = lambda *values: list(values)

    def train(*_, **__):
        raise SynmtError("out of memory")
        yield

    monkeypatch.setattr(pipeline, "train", train)
    assert_fails("out of memory", grid_of, "plain", "pascal", processes=processes)


def test_a_run_may_be_given_to_an_executor(untested):
    good, bad = grid_runs(["plain", "pascal"])
    (untested / "text" / "train.en.conllu").unlink()
    with ThreadPoolExecutor(1) as pool:
        # as it travels to another process, and back
        work = pickle.dumps([partial(train_run, run, untested / "data") for run in (good, bad)])
        ends = [pool.submit(each).result() for each in pickle.loads(work)]
    finished, failed = pickle.loads(pickle.dumps(ends))
    assert finished == RunRecord(good.folder, "finished", 2)
    assert "comes without trees" in failed.reason


def test_a_system_starts_from_the_weights_of_another_one_of_the_grid(untested):
    write_short("tuned", vocabulary={}, model={**MODEL, "init": "runs/plain"})
    assert len(grid_of("plain", "tuned")[-1].finished) == 2


def test_an_error_of_any_kind_is_one_failed_run_and_frees_its_memory(untested, monkeypatch, caplog):
    trainers = []

    def fail_at_once(trainer, batches):
        trainers.append(weakref.ref(trainer))
        raise RuntimeError("CUDA error: unspecified launch failure")

    monkeypatch.setattr("synmt.training.trainer.Trainer.update", fail_at_once)
    for record in train_grid(["plain", "pascal"]):
        if isinstance(record, NextRun):
            assert not any(trainer() for trainer in trainers)
    reason = "RuntimeError: CUDA error: unspecified launch failure"
    assert [failed.reason for failed in record.failed] == [reason] * len(trainers) == [reason] * 2
    assert "Traceback" in caplog.text


def test_torchrun_trains_run_by_run_and_one_process_speaks(untested):
    log = untested / "said"
    ended = Forked(launch, 2, 29513, be_command, "train", "plain", "pascal", log=log).wait()
    said = log.read_text(encoding="utf-8")
    assert ended == 0, said
    for line in ("run: runs/plain\n", "run: runs/pascal\n", "run 2 of 2: runs/pascal\n"):
        assert said.count(line) == 1


def test_a_request_to_stop_at_the_end_of_a_run_leaves_the_next_one(untested):
    stop = threading.Event()
    for record in train_grid(["plain", "pascal"], stop=stop):
        if isinstance(record, EndRecord):
            stop.set()
    assert record == GridRecord("interrupted", [grid_runs(["plain"])[0].folder], [], {})


def test_a_grid_that_is_killed_or_interrupted_goes_on_with_the_same_command(here):
    steps = "training.max_steps=12 training.log_every=1 training.validate_every=6"

    def scene(runs, **trap):
        command = f"train plain pascal --runs {runs} {steps} training.save_every=2"
        return {"arguments": command.split(), **trap}

    # the first run is interrupted when it logs its first step, the second one is killed
    stopped = scene("again", signal=signal.SIGINT)
    killed = scene("again", rename="pascal/checkpoints/step-00000006")
    played = play(scene("whole"), stopped, killed, scene("again"))
    assert [each["code"] for each in played] == [0, 130, -signal.SIGKILL, 0]
    assert "again/plain has finished already" in played[3]["errors"]
    for name in ("plain", "pascal"):
        assert_same_run(here / "whole" / name, here / "again" / name)


def test_the_second_ctrl_c_ends_the_command_in_each_wave_of_a_cluster(here, monkeypatch):
    asked = []

    def waves(*_, stop, **__):
        yield ClusterStarted(2)
        yield ClusterStarted(1)
        for _ in range(2):
            signal.raise_signal(signal.SIGINT)
            asked.append(stop.is_set())

    monkeypatch.setattr(grid, "train_grid", waves)
    errors = fail(130, "train", "plain", "pascal")
    assert asked == [True]
    assert errors.count("stopping after this step") == 1
