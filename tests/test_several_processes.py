"""Several processes train together: they equal one that accumulates, whatever their batches; one that dies or hangs."""

import subprocess
import sys
from pathlib import Path

import pytest
import torch
from ranks import systems_of, train
from safetensors.torch import load_file
from test_training import assert_same_weights, make_exact, make_recipe, make_trainer, weights

from synmt.run import Run
from synmt.training.distributed import Processes

pytestmark = pytest.mark.journey
TESTS = Path(__file__).parent


@pytest.fixture(scope="module", params=[2, 4, 8])
def together(request, tmp_path_factory):
    """Train every variant in so many processes; gives their number and the weights of the last one."""
    folder = tmp_path_factory.mktemp("ranks")
    command = [sys.executable, TESTS / "ranks.py", folder, str(request.param)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    return request.param, load_file(folder / "weights.safetensors")


def test_processes_equal_one_that_accumulates_with_every_variant(together):
    count, weights = together
    alone = {}
    for name in systems_of(count):
        alone |= train(name, range(count), count, Processes())
    torch.testing.assert_close(weights, alone)


def test_a_divided_optimizer_trains_and_saves_what_a_whole_one_does_bit_for_bit(tmp_path):
    command = [sys.executable, TESTS / "ranks.py", tmp_path, "2", "divides"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    whole, *others = (checkpoint_of(tmp_path / name) for name in ("whole", "divided", "whole-divided", "divided-whole"))
    assert {path.split("/")[-1] for path in whole} == {"model.safetensors", "optimizer.safetensors", "state.json"}
    assert all(other == whole for other in others)
    # each process keeps the state of some weights, and of no other one
    kept = [int((tmp_path / f"kept-{rank}").read_text()) for rank in range(2)]
    states = load_file(Run(tmp_path / "whole").checkpoint(4) / "optimizer.safetensors")
    assert min(kept) > 0
    assert sum(kept) == len({path.rpartition("/")[0] for path in states})
    # one process goes on from it
    alone = [make_trainer(tmp_path / name, make_recipe(max_steps=6, accumulate=2)) for name in ("whole", "divided")]
    for trainer in alone:
        assert trainer.resume() == 4
        list(trainer.train())
    assert_same_weights(tmp_path / "whole", tmp_path / "divided")


def checkpoint_of(folder):
    return {path.name: path.read_bytes() for path in Run(folder).checkpoint(4).iterdir()}


@pytest.mark.parametrize("how", ["ends", "hangs"])
def test_a_process_that_is_lost_ends_the_training_with_a_message(tmp_path, how):
    command = [sys.executable, TESTS / "ranks.py", tmp_path, "2", how]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    said = (tmp_path / "said").read_text()
    assert said.startswith("another of the 2 processes has ended, or has not answered for")
    assert "The same command continues from the last checkpoint" in said


def test_torchrun_goes_on_from_the_checkpoint_after_a_process_was_killed(tmp_path):
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node=2", "--master-port=29511"]
    command += ["--max-restarts=1", TESTS / "two_processes.py", tmp_path]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=200)
    assert done.returncode == 0, done.stderr
    assert "exitcode: -9" in done.stderr
    assert_same_weights(tmp_path / "whole", tmp_path / "killed")
    alone = make_trainer(tmp_path / "alone", make_recipe(max_steps=2, accumulate=2))
    make_exact(alone, momentum=0.9)
    list(alone.train())
    together = load_file(Run(tmp_path / "whole").checkpoint(2) / "model.safetensors")
    torch.testing.assert_close(weights(tmp_path / "alone"), together)
