"""The choice of the engine: processes of this machine, or the cluster of the wing
`synmt.cluster`."""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from functools import partial
from importlib import import_module, metadata
from pathlib import Path
from pkgutil import resolve_name
from typing import Any, Protocol, TypeVar

import synmt
from synmt.errors import UsageError
from synmt.parallel.processes import in_processes, started_processes

T = TypeVar("T")
R = TypeVar("R")
S = TypeVar("S")


class Engine(Protocol):
    """What a wing offers that works on other machines."""

    def run(
        self, work: Callable[[S, T], R], state: S, items: Iterator[T], *, where: Path
    ) -> Iterator[R]:
        """Yield `work(state, item)` of each item in the order in which they finish."""
        ...


_in_use: ContextVar[Engine | None] = ContextVar("cluster", default=None)


@contextmanager
def using_cluster(address: str | None) -> Iterator[None]:
    """Use a cluster for the work of this block that falls into shards; with None, this machine does
    it.

    address: of a Dask scheduler (`tcp://host:8786`), the path of a scheduler file, or `slurm` for
        jobs that Dask's own configuration describes.
    """
    if not address:
        yield
        return
    with _wing("dask:Cluster").connect(address) as cluster:
        before = _in_use.set(cluster)
        try:
            yield
        finally:
            _in_use.reset(before)


def _wing(name: str) -> Any:
    try:
        import_module("synmt.cluster")
        return resolve_name(f"synmt.cluster.{name}")
    except ModuleNotFoundError as error:
        if not str(error.name).startswith("synmt"):
            raise
        what = "clusters need the package synmt.cluster, which this installation lacks"
        raise UsageError(
            what, where="--cluster", do="Install synmt as a whole, or leave it out"
        ) from None


def trainings_on(cluster: Engine) -> Any:
    """Return the function of the wing that trains the runs of a grid side by side on a cluster."""
    return partial(_wing("trainings:train_side_by_side"), cluster)


def cluster_in_use() -> Engine | None:
    """Return the cluster of the block that runs, if there is one."""
    return _in_use.get()


def in_shards(
    work: Callable[[S, T], R],
    state: S,
    items: Iterator[T],
    workers: int,
    *,
    where: Path,
    **local: Any,
) -> Iterator[R]:
    """Yield `work(state, item)` of each item in the order in which they finish, from the cluster or
    from processes.

    A few items per worker are in memory. Only the caller writes files.

    state: is sent to each worker once.
    workers: processes of this machine if no cluster is in use; one is this process itself.
    where: the folder that errors name.
    local: other arguments of `in_processes`.
    """
    if cluster := cluster_in_use():
        return cluster.run(work, state, items, where=where)
    return in_processes(work, state, items, workers, where=where, **local)


def started_workers(workers: int) -> AbstractContextManager[None]:
    """Start processes of this machine for all works of a block; a cluster in use has its own.

    workers: one starts none.
    """
    return started_processes(1 if cluster_in_use() else workers)


def in_order(
    work: Callable[[S, T], R],
    state: S,
    items: Iterator[T],
    workers: int,
    *,
    where: Path,
    **local: Any,
) -> Iterator[R]:
    """Yield what `in_shards` does, with the same arguments, in the order of the items."""
    early: dict[int, R] = {}
    following = 0
    for number, result in in_shards(
        partial(with_number, work), state, enumerate(items), workers, where=where, **local
    ):
        early[number] = result
        while following in early:
            yield early.pop(following)
            following += 1


def with_number(work: Callable[[S, T], R], state: S, item: tuple[int, T]) -> tuple[int, R]:
    """Work on a numbered item, and keep its number."""
    number, content = item
    return number, work(state, content)


def versions() -> dict[str, str]:
    """List the versions that results may depend on; a package that is not installed has none."""
    versions = {"synmt": synmt.__version__, "Python": ".".join(platform.python_version_tuple()[:2])}
    for name in ("stanza", "torch", "sentencepiece", "numpy", "pyarrow"):
        try:
            # `+cpu` and `+cu130` are builds of the same version
            versions[name] = metadata.version(name).partition("+")[0]
        except metadata.PackageNotFoundError:
            versions[name] = "none"
    return versions
