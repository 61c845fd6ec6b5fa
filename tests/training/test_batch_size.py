"""`training.batch_tokens: auto`."""

import pytest
import torch
from copy_task import make_trainer
from refusing import assert_refused

from synmt.training import batch_size
from synmt.training.batch_size import fit_batch, free_memory

pytestmark = pytest.mark.journey


@pytest.mark.parametrize(("free", "expected"), [(0, 1024), (10e6, 4096), (1e12, 32_768)])
def test_it_is_the_largest_power_of_two_that_fits(free, expected, tmp_path, monkeypatch):
    trainer = make_trainer(tmp_path)
    peaks = [5e6]
    monkeypatch.setattr(
        trainer, "try_longest", lambda: peaks.append(5e6 + 1e3 * trainer.train_reader.batch_tokens)
    )
    monkeypatch.setattr(batch_size, "peak_memory", lambda device: peaks[-1])
    monkeypatch.setattr(batch_size, "free_memory", lambda device: free)
    assert fit_batch(trainer) == expected


def test_without_a_number_of_free_bytes_it_is_refused(monkeypatch):
    assert free_memory(torch.device("cpu")) > 1 << 20
    monkeypatch.setattr("pathlib.Path.exists", lambda path: False)
    assert_refused("Give a number, such as 4096", free_memory, torch.device("cpu"))
