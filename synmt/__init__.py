"""synmt: neural machine translation whose attention reads dependency trees."""

import os

__version__ = "0.1.0"

# Threads of OpenMP spin while they wait for each other. On a machine that others use, too, they wait for a thread that
# has no core, and three quarters of the processor time do nothing; a user's own setting stays.
if "GOMP_SPINCOUNT" not in os.environ:
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")

# torch and oneDNN cache a kernel with its buffers for each of the last 1024 shapes. Batches rarely repeat a shape, so
# this would waste gigabytes. Both read these variables when torch is loaded.
for _name in ("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "LRU_CACHE_CAPACITY"):
    os.environ.setdefault(_name, "64")
