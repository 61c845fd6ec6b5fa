"""Memory that is freed, and settings of GPUs."""

from __future__ import annotations

import os
import platform
import subprocess
import sys

import pytest
import torch
from copy_task import make_trainer
from refusing import assert_fails, assert_refused
from torch.utils._python_dispatch import TorchDispatchMode

from synmt.fast import instructions
from synmt.model.device import autocast, choose_device, fixed_order, sum_type
from synmt.training import loss

BATCHES = """
import pathlib, resource, torch
from synmt.model.device import keep_freed_memory

def grown():
    before = resident()
    blocks = [torch.zeros(5 << 20) for _ in range(10)]
    del blocks
    return resident() - before

def resident():
    return int(pathlib.Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()

returned = grown()
keep_freed_memory()
print(returned, grown())
"""


@pytest.mark.journey
@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="mallopt is glibc's")
def test_memory_that_has_been_freed_stays_with_the_process():
    done = subprocess.run([sys.executable, "-c", BATCHES], capture_output=True, check=True)
    returned, kept = map(int, done.stdout.split())
    assert kept > 180 << 20
    assert returned < 20 << 20


def test_mps_is_chosen_by_its_name_where_there_is_one(monkeypatch):
    assert_refused(r"there is no device 'mps'.*mps \(0 here\)", choose_device, "mps")
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: True)
    assert choose_device("mps") == torch.device("mps")
    assert choose_device("auto").type != "mps"
    assert_refused("there is no device 'mps:1'", choose_device, "mps:1")


def test_training_in_a_precision_that_the_processor_lacks_is_advised_against(monkeypatch, caplog):
    monkeypatch.setattr(instructions, "multiplies", lambda precision: precision != "bf16")
    for precision in ("float32", "fp16", "bf16"):
        autocast(torch.device("cpu"), precision)
    (warning,) = caplog.messages
    assert "no instructions for bf16: use training.precision=float32" in warning


def test_sums_of_a_gpu_have_a_fixed_order_where_it_is_wanted_and_other_operations_are_named():
    gpu = torch.device("cuda")
    for device, wanted in ((gpu, False), (torch.device("cpu"), True)):
        with fixed_order(device, wanted=wanted):
            assert not torch.are_deterministic_algorithms_enabled()
    what = "cumsum_cuda_kernel does not have a deterministic implementation"

    @fixed_order(gpu, wanted=True)
    def compute():
        assert torch.are_deterministic_algorithms_enabled()
        assert os.environ["CUBLAS_WORKSPACE_CONFIG"] == ":4096:8"
        raise RuntimeError(f"{what}, but you set 'torch.use_deterministic_algorithms(True)'. You")

    assert_fails(rf"^{what}\. Leave out training\.deterministic", compute)
    assert not torch.are_deterministic_algorithms_enabled()


class WithoutFloat64(TorchDispatchMode):
    """Refuses operators that make float64, as mps does."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        made = func(*args, **(kwargs or {}))
        for one in made if isinstance(made, tuple | list) else [made]:
            assert not isinstance(one, torch.Tensor) or one.dtype != torch.float64, func
        return made


@pytest.mark.journey
def test_training_needs_no_float64(tmp_path, monkeypatch):
    monkeypatch.setattr(loss, "sum_type", lambda device: sum_type(torch.device("mps")))
    trained = make_trainer(tmp_path)
    with WithoutFloat64():
        assert len(list(trained.train())) > 4


def test_to_choose_a_device_restrains_cudnn():
    torch.backends.cudnn.allow_tf32 = True
    torch.backends.cuda.enable_cudnn_sdp(True)
    choose_device("auto")
    assert not torch.backends.cudnn.allow_tf32
    assert not torch.backends.cuda.cudnn_sdp_enabled()
