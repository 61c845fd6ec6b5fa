"""How many threads compute: what the user asks for, else what the process may use."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from synmt.errors import UsageError
from synmt.parallel import threads as module
from synmt.parallel.threads import threads, usable_cores, use_threads


@pytest.fixture
def environment(monkeypatch):
    """Have neither variable, on a machine of eight cores."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: set(range(8)), raising=False)
    for name in ("SYNMT_THREADS", "OMP_NUM_THREADS"):
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)
    return monkeypatch


def groups(folder, lines, settings):
    """Write what Linux tells about control groups; return the arguments of `usable_cores`."""
    (folder / "cgroup").write_text("".join(f"{line}\n" for line in lines))
    for name, value in settings.items():
        (folder / "fs" / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / "fs" / name).write_text(f"{value}\n")
    return folder / "cgroup", folder / "fs"


@pytest.mark.parametrize(
    ("lines", "settings", "cores"),
    [
        ([], {}, 8),
        (["0::/"], {"cpu.max": "max 100000"}, 8),
        (["0::/"], {"cpu.max": "300000 100000"}, 3),
        (["0::/job/step"], {"job/cpu.max": "200000 100000", "job/step/cpu.max": "max 100000"}, 2),
        (["0::/job"], {"job/cpu.max": "150000 100000"}, 2),
        (["0::/job"], {"job/cpu.max": "10000 100000"}, 1),
        (["0::/job"], {"job/cpu.max": "9900000 100000"}, 8),
        (
            ["4:cpu,cpuacct:/a", "0::/"],
            {"cpu/a/cpu.cfs_quota_us": "400000", "cpu/a/cpu.cfs_period_us": "100000"},
            4,
        ),
        (
            ["4:cpu,cpuacct:/a"],
            {"cpu/a/cpu.cfs_quota_us": "-1", "cpu/a/cpu.cfs_period_us": "100000"},
            8,
        ),
        (
            ["3:memory:/a"],
            {"cpu/a/cpu.cfs_quota_us": "100000", "cpu/a/cpu.cfs_period_us": "100000"},
            8,
        ),
    ],
)
def test_cores_are_limited_by_the_affinity_and_by_every_quota(
    environment, tmp_path, lines, settings, cores
):
    assert usable_cores(*groups(tmp_path, lines, settings)) == cores


def test_a_system_without_control_groups_has_the_cores_of_the_affinity(environment, tmp_path):
    assert usable_cores(tmp_path / "none", tmp_path) == 8


@pytest.mark.parametrize(
    ("variables", "option", "expected"),
    [
        ({}, None, 8),
        ({"OMP_NUM_THREADS": "3"}, None, 3),
        ({"OMP_NUM_THREADS": "3", "SYNMT_THREADS": "5"}, None, 5),
        ({"OMP_NUM_THREADS": "3", "SYNMT_THREADS": "5"}, 2, 2),
    ],
)
def test_the_option_comes_before_the_variables_and_these_before_the_cores(
    environment, variables, option, expected
):
    environment.setattr(module, "usable_cores", lambda: 8)
    for name, value in variables.items():
        environment.setenv(name, value)
    use_threads(option)
    assert (threads(), os.environ["OMP_NUM_THREADS"]) == (expected, str(expected))


@pytest.mark.parametrize("value", ["0", "-1", "two", "1.5"])
def test_a_wrong_number_of_threads_is_named(environment, value):
    environment.setenv("SYNMT_THREADS", value)
    with pytest.raises(
        UsageError, match=rf"SYNMT_THREADS: '{value}' is not a number of threads. Allowed: whole"
    ):
        use_threads()


@pytest.mark.journey
def test_every_command_sets_its_threads_before_torch_is_loaded():
    script = (
        "import sys\nfrom synmt.cli import main\nsys.argv = ['synmt', 'translate', '--threads', "
        "'1', '--run', 'none']\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        "import torch\nprint(torch.get_num_threads())"
    )
    two = {**os.environ, "OMP_NUM_THREADS": "2"}
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, env=two)
    assert done.stdout == "1\n"


@pytest.mark.parametrize(("chosen", "expected"), [("1", "1"), ("two", "UsageError")])
def test_a_script_that_imports_synmt_has_the_threads_of_the_variable(chosen, expected):
    script = (
        "import synmt\nfrom synmt.parallel.threads import threads\n"
        "try:\n    threads()\nexcept synmt.errors.UsageError as error:\n    "
        "print(type(error).__name__)\n"
        "else:\n    import torch\n    print(torch.get_num_threads())"
    )
    environment = {**os.environ, "OMP_NUM_THREADS": "2", "SYNMT_THREADS": chosen}
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, env=environment, check=True
    )
    assert done.stdout == f"{expected}\n"


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
    others = {name: value for name, value in os.environ.items() if name not in names}
    program = f"import synmt, os; print(*map(os.environ.get, {names}))"
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=others | own,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == f"{expected}\n"
