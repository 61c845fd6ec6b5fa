"""Jobs of Slurm as the workers of a Dask cluster."""

from __future__ import annotations

import logging
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from synmt.cluster.worker_errors import INSTALL
from synmt.errors import UsageError

_logger = logging.getLogger(__name__)

_WHERE = "--cluster slurm"
_DESCRIBE = (
    "the section jobqueue.slurm of ~/.config/dask/jobqueue.yaml, as `synmt --docs scale` shows it"
)
_FIX = f"press Ctrl-C and correct {_DESCRIBE}"


@contextmanager
def slurm_jobs() -> Iterator[Any]:
    """Start by Slurm as many workers as there is work for, within the limits of Dask's
    configuration."""
    make = _dask_jobqueue().SLURMCluster
    # the scheduler is in this process: workers that come and go are no errors
    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    try:
        cluster = make()
    except ValueError as error:
        raise UsageError(
            f"Dask's configuration does not describe the jobs ({error})",
            where=_WHERE,
            do=f"Write {_DESCRIBE}",
        ) from None
    with cluster:
        check_job(cluster.job_script())
        limits = import_module("dask.config").get("distributed.adaptive")
        # so short that Dask requests one worker for each shard or run, and all of them at once; by
        # its own estimate it would request a few, and more only after these have left Slurm's queue
        cluster.adapt(minimum=limits["minimum"], maximum=limits["maximum"], target_duration="1us")
        yield cluster


def most_workers() -> int:
    """Read from Dask's configuration how many workers there may be; 0 if there is no limit."""
    most = import_module("dask.config").get("distributed.adaptive.maximum")
    return most if isinstance(most, int) else 0


def _dask_jobqueue() -> Any:
    ours = signal.getsignal(signal.SIGINT)
    try:
        return import_module("dask_jobqueue")
    except ImportError:
        raise UsageError(
            "Slurm needs dask-jobqueue, which is not installed", where="--cluster", do=INSTALL
        ) from None
    finally:
        # the module lets Ctrl-C end the process at once, with success
        if signal.getsignal(signal.SIGINT) is not ours:
            signal.signal(signal.SIGINT, ours)


def check_job(script: str) -> None:
    """Warn if Slurm cannot start a job at present: Dask does not tell, and the command waits."""
    try:
        done = subprocess.run(
            ["sbatch", "--test-only"], input=script, capture_output=True, text=True
        )
    except OSError as error:
        raise UsageError(
            f"`sbatch` does not run here ({error.strerror})",
            where=_WHERE,
            do="Run this where you can submit jobs",
        ) from None
    if done.returncode:
        # not an error: nodes that are down may come back
        _logger.warning(
            "Slurm cannot start the jobs now (%s). If that is not for a time, %s",
            done.stderr.strip(),
            _FIX,
        )
