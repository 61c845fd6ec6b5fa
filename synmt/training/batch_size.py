"""`training.batch_tokens: auto`: the largest batch that fits in memory.

    need(n) = memory before + (peak while a batch of n tokens is tried - memory before)

A batch of the longest sentences is tried with 1,024 tokens, then with twice as many, as long as
twice what it needed more than before is free. The number is a power of two, so that a little more
or less free memory rarely changes it; it is stored in the run, which goes on with it.
"""

from __future__ import annotations

import logging

import torch

from synmt.errors import UsageError
from synmt.training.meter import linux_memory, peak_memory
from synmt.training.trainer import Trainer

SMALLEST, LARGEST = 1 << 10, 1 << 15
_SHARE = 0.8
"""How much of the free memory a batch may take: the allocator and validations need some, too."""

_logger = logging.getLogger(__name__)


def fit_batch(trainer: Trainer) -> int:
    """Find the number of tokens of a batch, and log it; all processes call this together."""
    device, tokens = trainer.device, SMALLEST
    before, free = peak_memory(device), _SHARE * free_memory(device)
    while True:
        trainer.train_reader = trainer.train_reader.with_batches_of(tokens)
        trainer.try_longest()
        fits = tokens < LARGEST and 2 * (peak_memory(device) - before) < free
        # as large as the memory of each process allows
        [agreeing] = trainer.processes.sum(int(fits))
        if agreeing < trainer.processes.count:
            break
        tokens *= 2
    _logger.info("training.batch_tokens: %s fit in memory", f"{tokens:,}")
    return tokens


def free_memory(device: torch.device) -> int:
    """Measure the memory that is free, in bytes; raises UsageError if that is not known."""
    if device.type == "cuda":
        return torch.cuda.mem_get_info(device)[0]
    if free := linux_memory("/proc/meminfo", "MemAvailable"):
        return free
    raise UsageError(
        "`training.batch_tokens: auto` needs a GPU of CUDA, or Linux, which tells how much memory "
        "is free",
        do="Give a number, such as 4096",
    )
