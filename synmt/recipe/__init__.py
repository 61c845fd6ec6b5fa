"""Recipes: every key of an experiment, and how its YAML file is read."""
