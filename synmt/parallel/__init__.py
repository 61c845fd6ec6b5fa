"""Work that falls into shards, done by this process, by processes of this machine, or by a Dask
cluster."""
