"""Memory that is freed, and settings of GPUs."""

from __future__ import annotations

import platform
import subprocess
import sys

import pytest
import torch

from synmt.model.device import choose_device

BATCH = """
import pathlib, resource, sys, torch
from synmt.model.device import keep_freed_memory

def resident():
    return int(pathlib.Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()

if sys.argv[1] == "keep":
    keep_freed_memory()
before = resident()
blocks = [torch.zeros(5 << 20) for _ in range(10)]
del blocks
print(resident() - before)
"""


@pytest.mark.journey
@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="mallopt is glibc's")
def test_memory_that_has_been_freed_stays_with_the_process():
    kept, returned = (
        int(subprocess.run([sys.executable, "-c", BATCH, which], capture_output=True, check=True).stdout)
        for which in ("keep", "return")
    )
    assert kept > 180 << 20
    assert returned < 20 << 20


def test_to_choose_a_device_restrains_cudnn():
    torch.backends.cudnn.allow_tf32 = True
    torch.backends.cuda.enable_cudnn_sdp(True)
    choose_device("auto")
    assert not torch.backends.cudnn.allow_tf32
    assert not torch.backends.cuda.cudnn_sdp_enabled()
