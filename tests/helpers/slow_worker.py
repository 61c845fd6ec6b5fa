"""Loaded by the workers of tests: the shards of a corpus take some time, so that a worker can be
killed meanwhile."""

import time

from synmt.data.annotate import ShardAnnotator
from synmt.data.encoding import Encoder


def slowed(make):
    def slow(self, rows):
        time.sleep(0.1)
        return make(self, rows)

    return slow


# Dask runs this file several times
if Encoder.shard.__name__ != "slow":
    Encoder.shard = slowed(Encoder.shard)
    ShardAnnotator.shard = slowed(ShardAnnotator.shard)
