"""Commands that are played one after the other, and runs that must be the same."""

import json
import threading
from pathlib import Path
from tempfile import TemporaryDirectory

import killing
from forked import Forked


def play(*scenes):
    """Have `killing` run the scenes one after the other; gives what became of each."""
    with TemporaryDirectory() as folder:
        log, results = Path(folder) / "log", Path(folder) / "results.json"
        assert Forked(killing.play, list(scenes), results, log=log).wait() == 0, log.read_text()
        return json.loads(results.read_text())


def log_of(folder):
    """Read the log without what depends on the hour and the machine."""
    records = [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]
    measured = {"tokens", "tokens_per_second", "memory", "seconds", "processor_seconds"}
    return [
        {key: value for key, value in record.items() if key not in measured} for record in records
    ]


def assert_same_run(one, other):
    """Compare all that two runs have learnt, said and translated, bit for bit."""
    for name in (
        "model.safetensors",
        "average.safetensors",
        "tests/test/hypothesis.txt",
        "tests/test/scores.json",
    ):
        assert (one / name).read_bytes() == (other / name).read_bytes(), name
    assert log_of(one) == log_of(other)
    assert files_of(one) == files_of(other)


def files_of(folder):
    # the names of TensorBoard's files, if it is installed, contain the time
    names = (str(path.relative_to(folder)) for path in folder.rglob("*"))
    return sorted(name for name in names if not name.startswith("tensorboard"))


class StopAfter(threading.Event):
    """An event that is set when it has been asked a number of times."""

    def __init__(self, times):
        super().__init__()
        self.left = times

    def is_set(self):
        self.left -= 1
        return self.left < 0
