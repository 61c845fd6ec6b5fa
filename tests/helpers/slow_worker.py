"""Loaded by the workers of tests: the shards of a corpus take some time, so that a worker can be
killed meanwhile."""

import time
from functools import wraps

from synmt.data.annotate import ShardAnnotator
from synmt.data.encoding import Encoder


def slowed(make):
    @wraps(make)
    def shard(self, rows):
        time.sleep(0.1)
        return make(self, rows)

    return shard


for each in (Encoder, ShardAnnotator):
    # Dask runs this file several times
    if not hasattr(each.shard, "__wrapped__"):
        each.shard = slowed(each.shard)
