"""Loaded by a worker of tests that has another version of synmt."""

import synmt

synmt.__version__ = "0.0.1"
