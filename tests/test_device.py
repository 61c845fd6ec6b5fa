"""Memory that is freed, and settings of GPUs."""

from __future__ import annotations

import platform
import subprocess
import sys

import pytest
import torch

from synmt.model.device import choose_device

# a block that is larger than all before it is one that glibc gives back at once
GROWING = """
import resource, sys, torch
from synmt.model.device import keep_freed_memory
if sys.argv[1] == "keep":
    keep_freed_memory()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for megabytes in range(10, 31):
    torch.zeros(megabytes << 18)
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


@pytest.mark.journey
@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="mallopt is glibc's")
def test_memory_that_has_been_freed_is_used_again_as_it_is():
    pages = {
        which: int(subprocess.run([sys.executable, "-c", GROWING, which], capture_output=True, check=True).stdout)
        for which in ("keep", "return")
    }
    assert pages["keep"] < pages["return"] / 2


def test_to_choose_a_device_restrains_cudnn():
    torch.backends.cudnn.allow_tf32 = True
    torch.backends.cuda.enable_cudnn_sdp(True)
    choose_device("auto")
    assert not torch.backends.cudnn.allow_tf32
    assert not torch.backends.cuda.cudnn_sdp_enabled()
