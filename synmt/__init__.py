"""synmt: neural machine translation whose attention reads dependency trees."""

import os
from contextlib import suppress

from synmt.errors import UsageError
from synmt.parallel.threads import use_threads
from synmt.speed import fast

__version__ = "0.1.0"

# for scripts, which have no option --threads; a wrong number is named when it is needed
with suppress(UsageError):
    use_threads()

if environment := fast("environment"):
    environment.set_variables()

# operators that Apple's GPUs lack run on the CPU, with a warning of torch, which reads this when it
# is loaded
os.environ.setdefault("PYTORCH_ENABLE_MPS_FALLBACK", "1")
