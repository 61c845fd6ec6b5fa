"""How many threads compute: what the user asks for, else what the process may use."""

import os
import subprocess
import sys

import pytest
from refusing import assert_refused
from tiny import write_lines

from synmt.parallel import threads as module
from synmt.parallel.threads import threads, usable_cores, use_threads


@pytest.fixture
def environment(monkeypatch):
    """Have neither variable, on a machine of eight cores."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: set(range(8)), raising=False)
    for name in ("SYNMT_THREADS", "OMP_NUM_THREADS"):
        # what the test sets itself is taken back, too
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)
    return monkeypatch


LIMITS = """
8 |
8 | cpu.max: max 100000
3 | cpu.max: 300000 100000
2 | cpu.max: 150000 100000
1 | cpu.max: 10000 100000
8 | cpu.max: 9900000 100000
4 | cpu/cpu.cfs_quota_us: 400000 | cpu/cpu.cfs_period_us: 100000
8 | cpu/cpu.cfs_quota_us: -1 | cpu/cpu.cfs_period_us: 100000
"""
"""The cores, and the settings of the control group."""


@pytest.mark.parametrize("limit", LIMITS.strip().splitlines())
def test_cores_are_limited_by_the_affinity_and_by_a_quota(environment, tmp_path, limit):
    cores, *settings = limit.split("|")
    for setting in filter(str.strip, settings):
        name, value = setting.strip().split(": ")
        write_lines(tmp_path / name, [value])
    assert usable_cores(tmp_path) == int(cores)


@pytest.mark.parametrize(
    ("variables", "option", "expected"),
    [("", None, 8), ("OMP", None, 3), ("OMP SYNMT", None, 5), ("OMP SYNMT", 2, 2)],
)
def test_the_option_comes_before_the_variables_and_these_before_the_cores(
    environment, variables, option, expected
):
    environment.setattr(module, "usable_cores", lambda: 8)
    values = {"OMP": ("OMP_NUM_THREADS", "3"), "SYNMT": ("SYNMT_THREADS", "5")}
    for name in variables.split():
        environment.setenv(*values[name])
    use_threads(option)
    assert (threads(), os.environ["OMP_NUM_THREADS"]) == (expected, str(expected))


@pytest.mark.parametrize("value", ["0", "-1", "two", "1.5"])
def test_a_wrong_number_of_threads_is_named(environment, value):
    environment.setenv("SYNMT_THREADS", value)
    assert_refused(f"SYNMT_THREADS: '{value}' is not a number of threads", use_threads)


COMMAND = """
import sys
from synmt.cli import main
sys.argv = "synmt translate --threads 1 --run none".split()
try:
    main()
except SystemExit:
    pass
import torch
print(torch.get_num_threads())
"""
SCRIPT = """
import synmt
from synmt.parallel.threads import threads
try:
    threads()
except synmt.errors.UsageError as error:
    print(type(error).__name__)
else:
    import torch
    print(torch.get_num_threads())
"""


def output_of(program, *without, **variables):
    """Run a program with other variables, and without some."""
    env = {name: value for name, value in os.environ.items() if name not in without} | variables
    command = [sys.executable, "-c", program]
    return subprocess.run(command, capture_output=True, text=True, env=env).stdout


@pytest.mark.journey
def test_every_command_sets_its_threads_before_torch_is_loaded():
    assert output_of(COMMAND, OMP_NUM_THREADS="2") == "1\n"


@pytest.mark.parametrize(("chosen", "expected"), [("1", "1"), ("two", "UsageError")])
def test_a_script_that_imports_synmt_has_the_threads_of_the_variable(chosen, expected):
    assert output_of(SCRIPT, OMP_NUM_THREADS="2", SYNMT_THREADS=chosen) == f"{expected}\n"


@pytest.mark.parametrize(
    ("own", "expected"),
    [
        ({}, "4000 passive"),
        ({"GOMP_SPINCOUNT": "7"}, "7 None"),
        ({"OMP_WAIT_POLICY": "active"}, "None active"),
    ],
)
def test_waiting_threads_spin_for_a_moment_unless_the_user_says_otherwise(own, expected):
    pytest.importorskip("synmt.fast")
    names = ("GOMP_SPINCOUNT", "OMP_WAIT_POLICY")
    program = f"import synmt, os; print(*map(os.environ.get, {names}))"
    assert output_of(program, *names, **own) == f"{expected}\n"
