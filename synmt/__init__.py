"""synmt: neural machine translation whose attention reads dependency trees."""

import os

__version__ = "0.1.0"

# torch and oneDNN cache a kernel with its buffers for each of the last 1024 shapes. Batches rarely repeat a shape, so
# this would waste gigabytes. Both read these variables when torch is loaded.
for _name in ("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "LRU_CACHE_CAPACITY"):
    os.environ.setdefault(_name, "64")
