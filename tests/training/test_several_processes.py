"""Several processes train together: they equal one that accumulates, whatever their batches; one
that dies or hangs."""

import signal
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
import torch
from copy_task import assert_same_weights, make_exact, make_recipe, make_trainer, resume, weights
from forked import Forked, run_together
from ranks import launch, lose_one, share_state, systems_of, train, train_twice, train_variants
from refusing import assert_refused
from safetensors.torch import load_file
from tiny import fail, snapshot

from synmt.parallel.torchrun import Started, started
from synmt.run_folder import Run
from synmt.training.distributed import Processes, join_processes, name_of_start

pytestmark = pytest.mark.journey

TORCHRUN = "WORLD_SIZE=2 RANK=1 LOCAL_RANK=1 MASTER_ADDR=127.0.0.1 MASTER_PORT=29519"


@pytest.mark.parametrize("count", [2, 3])
def test_processes_equal_one_that_accumulates_with_every_variant(tmp_path, count):
    log = tmp_path / "log"
    assert run_together(count, train_variants, tmp_path, log=log) == [0] * count, log.read_text()
    alone = {}
    for name in systems_of(count):
        alone |= train(name, range(count), count, Processes())
    torch.testing.assert_close(load_file(tmp_path / "weights.safetensors"), alone)


def test_a_divided_optimizer_trains_and_saves_what_a_whole_one_does_bit_for_bit(tmp_path):
    log = tmp_path / "log"
    assert run_together(2, share_state, tmp_path, log=log) == [0, 0], log.read_text()
    whole, *others = (
        snapshot(Run(tmp_path / name).checkpoint(4))
        for name in ("whole", "divided", "whole-divided", "divided-whole")
    )
    assert len(whole) == 4
    assert all(other == whole for other in others)
    # each process keeps the state of some weights, and of no other one
    kept = [int((tmp_path / f"kept-{rank}").read_text()) for rank in range(2)]
    states = load_file(Run(tmp_path / "whole").checkpoint(4) / "optimizer.safetensors")
    assert min(kept) > 0
    assert sum(kept) == len({path.rpartition("/")[0] for path in states})
    # one process goes on from it
    for name in ("whole", "divided"):
        trainer, step = resume(tmp_path / name, make_recipe(max_steps=6, accumulate=2))
        assert step == 4
        list(trainer.train())
    assert_same_weights(tmp_path / "whole", tmp_path / "divided")


@pytest.mark.parametrize(("how", "ends"), [("ends", 0), ("hangs", -signal.SIGKILL)])
def test_a_process_that_is_lost_ends_the_training_with_a_message(tmp_path, how, ends):
    log = tmp_path / "log"
    assert run_together(2, lose_one, tmp_path, how, log=log) == [0, ends], log.read_text()
    said = (tmp_path / "said").read_text()
    assert said.startswith("another of the 2 processes has ended, or has not answered for")
    assert "The same command continues from the last checkpoint" in said


WRONG_VARIABLES = """
WORLD_SIZE=x   invalid literal
RANK=   invalid literal
LOCAL_RANK=1.5   invalid literal
MASTER_PORT=   MASTER_PORT
"""


def set_variables(monkeypatch, changed=""):
    for variable in f"{TORCHRUN} {changed}".split():
        monkeypatch.setenv(*variable.split("="))


@pytest.mark.parametrize("line", WRONG_VARIABLES.strip().splitlines())
def test_a_wrong_variable_of_torchrun_is_named(monkeypatch, line):
    variable, message = line.split("   ")
    set_variables(monkeypatch, variable)
    for seeds in ([], ["--seeds", "2"]):
        assert message in fail(2, "train", "quickstart", *seeds)
    assert_refused("Start the command with `torchrun`", join_processes)


def test_the_variables_of_torchrun_tell_which_process_this_is(monkeypatch):
    set_variables(monkeypatch)
    assert started() == Started(count=2, rank=1, local_rank=1)
    monkeypatch.delenv("LOCAL_RANK")
    assert started() == Started(count=2, rank=1, local_rank=0)
    # one process needs nothing else, and an empty variable is none
    monkeypatch.delenv("RANK")
    for alone in ("1", ""):
        monkeypatch.setenv("WORLD_SIZE", alone)
        assert started() == Started()


def test_processes_agree_on_another_name_at_each_start(monkeypatch):
    monkeypatch.setattr("synmt.training.distributed._ANSWER", timedelta(seconds=0.2))
    store = torch.distributed.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
    names = set()
    for _ in range(3):
        with ThreadPoolExecutor(3) as pool:
            # the first process comes last: the others find the name of an earlier start
            found = [pool.submit(name_of_start, store.clone(), rank, 3) for rank in (2, 1, 0)]
        [name] = {future.result() for future in found}
        names.add(name)
    assert len(names) == 3


def test_torchrun_goes_on_from_the_checkpoint_after_a_process_was_killed(tmp_path):
    log = tmp_path / "log"
    # sums of two numbers do not depend on the order, those of four do
    assert Forked(launch, 4, 29511, train_twice, tmp_path, log=log).wait() == 0, log.read_text()
    assert (tmp_path / "has been killed").exists()
    assert_same_weights(tmp_path / "whole", tmp_path / "killed")
    alone = make_trainer(
        tmp_path / "alone", make_recipe(max_steps=2, accumulate=4, batch_tokens=30)
    )
    make_exact(alone, momentum=0.9)
    list(alone.train())
    together = load_file(Run(tmp_path / "whole").checkpoint(2) / "model.safetensors")
    torch.testing.assert_close(weights(tmp_path / "alone"), together)
