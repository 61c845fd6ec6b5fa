"""synmt: neural machine translation whose attention reads dependency trees."""

import os
from contextlib import suppress

from synmt.errors import UsageError
from synmt.parallel.threads import use_threads

__version__ = "0.1.0"

# for scripts, which have no option --threads; a wrong number is named when it is needed
with suppress(UsageError):
    use_threads()

# Threads of OpenMP spin while they wait for each other. On a machine that others use, too, they wait for a thread that
# has no core, and three quarters of the processor time do nothing. Threads that never spin train a fifth slower on a
# quiet machine. Here they spin for some 0.1 ms, where torch has GNU's OpenMP; a user's own setting stays.
if not {"GOMP_SPINCOUNT", "OMP_WAIT_POLICY"} & os.environ.keys():
    os.environ.update(GOMP_SPINCOUNT="4000", OMP_WAIT_POLICY="passive")

# oneDNN generates code for each shape, and keeps that of the last 1024; torch keeps shapes, too, with buffers. Batches
# of training rarely repeat a shape, so this would waste gigabytes (256 take some 0.2). A search meets up to 400 shapes
# again and again: with 256 places it would spend a tenth of its time on code, with 64 a third. Both variables are read
# when torch is loaded.
os.environ.setdefault("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "512")
os.environ.setdefault("LRU_CACHE_CAPACITY", "64")

# operators that Apple's GPUs lack run on the CPU, with a warning of torch, which reads this when it is loaded
os.environ.setdefault("PYTORCH_ENABLE_MPS_FALLBACK", "1")
