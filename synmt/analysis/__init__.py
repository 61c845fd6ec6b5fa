"""Analyses of trained systems: where they differ, which trees they learn, and how they use
syntax."""
