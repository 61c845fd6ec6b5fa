"""Parallel text: what a training text consists of."""
