"""synmt: neural machine translation whose attention reads dependency trees."""

import os

__version__ = "0.1.0"

# torch and its oneDNN keep a kernel, with its buffers, for each of the last 1024 shapes they have met; hardly two
# batches are alike, so that is gigabytes for nothing. Both read this when torch is loaded.
for _name in ("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "LRU_CACHE_CAPACITY"):
    os.environ.setdefault(_name, "64")
