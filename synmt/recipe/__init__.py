"""What an experiment is: every key of a recipe, and how its YAML file is read."""
