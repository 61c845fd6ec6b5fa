"""Slurm, where there is one: the scripts of docs/scale.md, and a command whose workers are jobs."""

import re
import shutil
import signal
import subprocess
import sys
import threading
from importlib import import_module
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest
from refusing import assert_refused
from tiny import succeed, write_lines

pytest.importorskip("synmt.cluster")

from places import ROOT

from synmt.cluster import slurm
from synmt.cluster.slurm import _dask_jobqueue, check_job
from synmt.parallel.engine import in_shards, using_cluster

pytestmark = pytest.mark.journey

PAGE = ROOT / "docs" / "scale.md"
SCRIPTS = re.findall(r"```sh\n(#!/bin/bash\n.*?)```", PAGE.read_text(), re.DOTALL)
SIZE = {"cores": 1, "processes": 1, "memory": "2GB", "walltime": "00:10:00"}
JOB = {f"jobqueue.slurm.{name}": value for name, value in SIZE.items()}


@pytest.fixture
def idle_node():
    if shutil.which("sinfo") is None:
        pytest.skip("Slurm is not installed: there is no sinfo")
    if not subprocess.run(["sinfo", "-h", "-t", "idle"], capture_output=True).stdout.strip():
        pytest.skip("sinfo shows no idle node")


@pytest.mark.parametrize("script", SCRIPTS, ids=("train", "parse"))
def test_slurm_takes_the_scripts_of_the_page(idle_node, script, tmp_path):
    path = tmp_path / "script"
    path.write_text(re.sub(r"#SBATCH --gpus.*\n", "", script))
    smaller = ("--nodes=1", "--cpus-per-task=1", "--mem-per-cpu=100M")
    subprocess.run(["sbatch", "--test-only", *smaller, path], check=True)
    subprocess.run(["bash", "-n", path], check=True)


PARSE = ("parse", "text", "--device", "cpu", "-o")


def test_jobs_parse_what_this_machine_parses_and_end(idle_node, tmp_path, monkeypatch):
    pytest.importorskip("dask_jobqueue")
    write_lines(tmp_path / "text", ["The monkey eats a banana.", "A girl sleeps."] * 3)
    monkeypatch.chdir(tmp_path)
    succeed(*PARSE, "here", "--workers", 1)
    with import_module("dask.config").set({**JOB, "distributed.adaptive.maximum": 2}):
        succeed(*PARSE, "there", "--cluster", "slurm", "--shard-lines", 1)
    assert Path("there").read_bytes() == Path("here").read_bytes()
    command = ["squeue", "-h", "-n", "dask-worker", "-t", "PD,R", "--me"]
    assert subprocess.run(command, capture_output=True).stdout == b""


def test_a_job_that_cannot_start_is_a_warning_and_no_sbatch_an_error(tmp_path, monkeypatch, caplog):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert_refused(
        r"`sbatch` does not run here.*where you can submit jobs", check_job, "#!/bin/sh\n"
    )
    (tmp_path / "sbatch").write_text("#!/bin/sh\necho invalid partition >&2\nexit 1\n")
    (tmp_path / "sbatch").chmod(0o755)
    check_job("#!/bin/sh\n")
    assert "Slurm cannot start the jobs now (invalid partition)" in caplog.text


def queue_of(asked):
    """Make a Slurm that starts no job, and ends the command when four are asked for, or for the
    third time."""
    from distributed import LocalCluster

    class Queue(LocalCluster):
        def __init__(self):
            super().__init__(n_workers=0, processes=False, dashboard_address=None)

        def job_script(self):
            return "#!/bin/sh\n"

        def scale(self, n=0, memory=None, cores=None):
            asked.append(n)
            if n == 4 or len(asked) == 3:
                signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)

    return Queue


@pytest.mark.filterwarnings("ignore")
def test_all_jobs_are_asked_for_before_the_first_one_starts(tmp_path, monkeypatch):
    pytest.importorskip("distributed")
    asked = []
    monkeypatch.setattr(slurm, "check_job", lambda script: None)
    monkeypatch.setattr(
        slurm, "_dask_jobqueue", lambda: SimpleNamespace(SLURMCluster=queue_of(asked))
    )
    limit = import_module("dask.config").set({"distributed.adaptive.maximum": 4})
    with limit, using_cluster("slurm"), pytest.raises(KeyboardInterrupt):
        list(in_shards(pow, 2, iter(range(9)), 1, where=tmp_path))
    assert 4 in asked[:3]


def test_dask_jobqueue_does_not_replace_what_ctrl_c_does(tmp_path, monkeypatch):
    code = "import signal\nsignal.signal(signal.SIGINT, lambda *_: None)\n"
    (tmp_path / "dask_jobqueue.py").write_text(code)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "dask_jobqueue", raising=False)
    before = signal.getsignal(signal.SIGINT)
    assert isinstance(_dask_jobqueue(), ModuleType)
    # not by monkeypatch, which would bring it back for other tests
    del sys.modules["dask_jobqueue"]
    assert signal.getsignal(signal.SIGINT) is before
