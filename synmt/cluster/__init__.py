"""Runs of a grid that workers of a Dask cluster train; nothing else needs this folder."""
