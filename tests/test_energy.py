"""Energy from the counters of Linux, which begin at 0 again when they are full."""

from __future__ import annotations

import pytest
import torch

from synmt.training.distributed import Processes
from synmt.training.meter import EnergyMeter, Meter, Update


@pytest.fixture
def packages(tmp_path):
    """Make the counters of two processor packages, and of a part of the first one, which must not count twice."""
    folders = [tmp_path / name for name in ("intel-rapl:0", "intel-rapl:1", "intel-rapl:0:0")]
    for folder in folders:
        folder.mkdir()
        (folder / "max_energy_range_uj").write_text("10000000\n")
        (folder / "energy_uj").write_text("9000000\n")
    return tmp_path, folders


def test_energy_is_that_of_all_packages_since_the_last_call(packages):
    powercap, (first, second, part) = packages
    meter = EnergyMeter(torch.device("cpu"), powercap)
    (first / "energy_uj").write_text("9500000")
    (second / "energy_uj").write_text("2000000")
    (part / "energy_uj").write_text("9999999")
    assert meter.joules() == pytest.approx(0.5 + (10 - 9 + 2))
    assert meter.joules() == 0


def test_energy_is_unknown_where_the_machine_does_not_tell(tmp_path, packages):
    assert EnergyMeter(torch.device("cpu"), tmp_path / "nothing").joules() is None
    powercap, (first, second, _) = packages
    for folder in (first, second):
        (folder / "energy_uj").write_text("not a number")
    assert EnergyMeter(torch.device("cpu"), powercap).joules() is None


def test_the_processor_time_of_a_record_is_that_of_all_processes(monkeypatch):
    given = []
    monkeypatch.setattr(Processes, "sum", lambda self, *values: given.append(values) or [8_000_000])
    for processes in (Processes(), Processes(rank=0, count=2)):
        meter = Meter(torch.device("cpu"), processes=processes)
        losses = [{"loss": torch.tensor(6.0), "nll": torch.tensor(4.0)}]
        meter.add(Update(1, losses, [[0]], 2, 2 * processes.count, 0.1, torch.tensor(1.0)))
        record = meter.record(1)
        assert (record.processor_seconds == 8, record.tokens) == (processes.count == 2, 2 * processes.count)
    assert len(given) == 1
