"""Trains a recipe: data, training loop, checkpoints, and the translated test sets."""
