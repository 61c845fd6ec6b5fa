"""The wing for clusters: Dask, Slurm, and what travels to workers; the core works without it."""
