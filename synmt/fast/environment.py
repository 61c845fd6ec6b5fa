"""Variables that the libraries below torch read when torch is loaded, so that they wait and
remember less in vain."""

from __future__ import annotations

import os


def set_variables() -> None:
    """Set variables of OpenMP and oneDNN, unless the user has; this must happen before torch is
    loaded."""
    # Threads of OpenMP spin while they wait for each other. On a machine that others use, too, they
    # wait for a thread that has no core, and three quarters of the processor time do nothing.
    # Threads that never spin train a fifth slower on a quiet machine. Here they spin for some 0.1
    # ms, where torch has GNU's OpenMP.
    if not {"GOMP_SPINCOUNT", "OMP_WAIT_POLICY"} & os.environ.keys():
        os.environ.update(GOMP_SPINCOUNT="4000", OMP_WAIT_POLICY="passive")
    # oneDNN generates code for each shape, and keeps that of the last 1024; torch keeps shapes,
    # too, with buffers. Batches of training rarely repeat a shape, so this would waste gigabytes
    # (256 take some 0.2). A search meets up to 400 shapes again and again: with 256 places it would
    # spend a tenth of its time on code, with 64 a third.
    os.environ.setdefault("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "512")
    os.environ.setdefault("LRU_CACHE_CAPACITY", "64")
